"""What `headers` and `paths` of a held secret may say.

A header that frames a request, or that a proxy reads, cannot carry a secret. A path prefix that a
server could read as another one would open more than it says.

Source: spec/authoring.md §3.5 (refusals 6 and 12), spec/runtime.md §3.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

_TOKEN: Final = re.compile(r"[a-z0-9!#$%&'*+.^`|~-]+")
"""A header name in lower case. A `_` is legal in HTTP, and a Custodian refuses it."""
_FRAMING: Final = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
        "trailer",
        "keep-alive",
        "cookie",
    }
)
_OF_PROXIES: Final = "proxy-"
_IN_PATHS: Final = ("..", ";", "\\", "%2e", "%2f", "%5c", "?", "#")


def header_problems(headers: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Give the position and the problem of each header that cannot carry a secret."""
    for index, header in enumerate(headers):
        if not _TOKEN.fullmatch(header):
            yield index, f'"{header}" is no header name in lower case'
        elif header in _FRAMING or header.startswith(_OF_PROXIES):
            yield (
                index,
                f'"{header}" frames the request or is read on its way: it carries no secret',
            )
        elif header in headers[:index]:
            yield index, f'"{header}" stands there twice'


def path_problems(paths: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Give the position and the problem of each path prefix that could be read in two ways."""
    for index, path in enumerate(paths):
        if not path.startswith("/"):
            yield index, f'"{path}" does not start with "/"'
        elif not path.isascii() or not path.isprintable() or " " in path:
            yield index, "holds a character that a path does not have; encode it"
        elif found := [sign for sign in _IN_PATHS if sign in path.lower()]:
            yield index, f'"{path}" holds "{found[0]}", which a server may read as another path'
