"""Several blobs in one body: before each stands one line with its digest and its length.

A line is `<64 hex digits> <bytes>` and a line feed; the bytes follow as they are. So many small
files cost one request, and hardly more than their bytes.

Source: design §5.5, ADR-0118.
"""

from __future__ import annotations

import re
from typing import Final

LONGEST_LINE: Final = 64 + 1 + 10 + 1
_LINE: Final = re.compile(rb"([0-9a-f]{64}) (0|[1-9][0-9]{0,9})")


def encode(digest: str, content: bytes) -> bytes:
    """Return one blob as it stands in a bundle."""
    return b"%s %d\n%s" % (digest.encode(), len(content), content)


def split_line(buffer: bytes) -> tuple[str, int, int] | None:
    """Read the line at the start of what came.

    Args:
        buffer: what came and was not read.

    Returns:
        The digest, the length, and where the blob begins; `None` while the line is not whole.

    Raises:
        ValueError: it is no such line.
    """
    end = buffer.find(b"\n", 0, LONGEST_LINE)
    if end < 0:
        if len(buffer) >= LONGEST_LINE:
            raise ValueError("a line of the bundle is too long")
        return None
    found = _LINE.fullmatch(buffer, 0, end)
    if found is None:
        raise ValueError("a line of the bundle is not `<digest> <bytes>`")
    return found[1].decode(), int(found[2]), end + 1


__all__ = ["LONGEST_LINE", "encode", "split_line"]
