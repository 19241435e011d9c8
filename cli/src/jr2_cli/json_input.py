"""The value of `--input`: one JSON object, given as it is, from a file or from stdin.

Source: spec/converge.md §2.5 (run, send).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final, NoReturn

from jr2 import errors

_STDIN: Final = "-"
_FILE: Final = "@"
_NO_UNICODE: Final = "--input is not valid Unicode"


def parse(given: str) -> dict[str, Any]:
    """Read the value of `--input`; the value itself enters no message.

    Args:
        given: the JSON object, `@` and the path of a file that holds it, or `-` for stdin.

    Raises:
        Usage: it cannot be read, is no Unicode, no JSON or no object, or holds what cannot be sent.
    """
    try:
        value = json.loads(_text(given), parse_constant=_no_constant)
        # What is sent is encoded again: an escape may name half a character, and a number may be
        # too large for any float.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except json.JSONDecodeError as error:
        where = f"column {error.colno}"
        if error.lineno > 1:
            where = f"line {error.lineno} {where}"
        raise errors.Usage(f"--input is not JSON ({error.msg} at {where})") from None
    except UnicodeError:
        raise errors.Usage(_NO_UNICODE) from None
    except ValueError as error:
        raise errors.Usage(f"--input is not JSON ({error})") from None
    except RecursionError:
        raise errors.Usage("--input is nested too deeply") from None
    if not isinstance(value, dict):
        raise errors.Usage("""--input is not a JSON object, such as '{"message":"hi"}'""")
    return value


def _text(given: str) -> str:
    """Return the JSON that was given, or that stands where it points to.

    Raises:
        UnicodeError: it is no UTF-8.
        Usage: it cannot be read.
    """
    if given != _STDIN and not given.startswith(_FILE):
        given.encode()
        return given
    try:
        content = (
            sys.stdin.buffer.read()
            if given == _STDIN
            else Path(given.removeprefix(_FILE)).read_bytes()
        )
    except OSError as error:
        what = "stdin" if given == _STDIN else given.removeprefix(_FILE) or '""'
        raise errors.Usage(f"cannot read --input from {what}: {error.strerror}") from None
    return content.decode()


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
