"""The trace that a command belongs to, as the header `traceparent` of what it sends.

A CI job that traces its steps sets `TRACEPARENT`, and the command goes on with that trace; else it
begins one. So the log of the Orchestrator says which command a line belongs to.

Source: design §6.6, W3C Trace Context.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Final

HEADER: Final = "traceparent"
VARIABLE: Final = "TRACEPARENT"
_FORM: Final = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def traceparent(environment: Mapping[str, str]) -> str:
    """Return the header's value: that of the environment when it is one, else a new trace.

    Args:
        environment: read for `TRACEPARENT`.
    """
    given = environment.get(VARIABLE, "")
    if _FORM.fullmatch(given):
        return given
    return f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"
