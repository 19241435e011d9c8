"""The files of the Console: their bytes, their types, and the headers that they are sent with.

The policy lets the page run the scripts and styles of this origin and nothing else: of inline
scripts only the page's own, by its digest, no frame around it, no connection to another address. A
script that wants to make markup of a text is stopped by the browser itself
(`require-trusted-types-for`), so what a run says stays text also where somebody forgets it. The one
policy of trusted types that is allowed names the one script that runs as a worker.

Source: spec/runtime.md §1.15, design §6.3, ADR-0113.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Final

SHELL: Final = "index.html"
"""The page itself; it has addresses of its own and is no asset."""
_MEDIA: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
_STATIC: Final = resources.files(__package__) / "static"
_INLINE: Final = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """One file.

    Args:
        body: its bytes.
        media: its `Content-Type`.
        etag: a digest of its bytes, as the header `ETag` has it.
    """

    body: bytes
    media: str
    etag: str


def security(page: bytes) -> Mapping[str, str]:
    """Return the headers that the page and each of its files are sent with.

    Args:
        page: the bytes of the page, whose one inline script is allowed by its digest.
    """
    (inline,) = _INLINE.findall(page)
    digest = base64.b64encode(hashlib.sha256(inline).digest()).decode()
    policy = (
        "default-src 'none'",
        f"script-src 'self' 'sha256-{digest}'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types jr2-worker",
    )
    return {
        "Content-Security-Policy": "; ".join(policy),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }


def load() -> Mapping[str, Asset]:
    """Read every file of the package, by name; the page is one of them.

    Raises:
        KeyError: a file has a suffix without a media type.
    """
    found = {}
    for file in _STATIC.iterdir():
        if file.name[0] not in "._":
            body = file.read_bytes()
            found[file.name] = Asset(
                body=body,
                media=_MEDIA[file.name.rpartition(".")[2]],
                etag=f'"{hashlib.sha256(body).hexdigest()[:32]}"',
            )
    return found
