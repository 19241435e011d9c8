"""The value of `--input`: one JSON object.

Source: spec/converge.md §2.5 (run, send).
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from jr2 import errors


def parse(text: str) -> dict[str, Any]:
    """Read the value of `--input`; the value itself enters no message.

    Raises:
        Usage: it is no JSON, or no object.
    """
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise errors.Usage(f"--input is not JSON ({error.msg} at column {error.colno})") from None
    except ValueError as error:
        raise errors.Usage(f"--input is not JSON ({error})") from None
    except RecursionError:
        raise errors.Usage("--input is nested too deeply") from None
    if not isinstance(value, dict):
        raise errors.Usage("""--input is not a JSON object, such as '{"message":"hi"}'""")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
