"""The private keys of the person's computer: those in `~/.ssh`, and one whose path was typed.

Source: spec/converge.md §9.5, seed 003 (Let jr2 up make the key).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from jr2.errors import StepFailed

_HEADER: Final = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_HEADER_BYTES: Final = 64
_LONGEST: Final = 64 * 1024
"""Bytes; the largest key that ssh-keygen makes has a fifth of it."""


def find_keys(folder: Path) -> tuple[Path, ...]:
    """Return the private keys of a folder, sorted by name; what cannot be read is none.

    A name that a line of the menu cannot show is left out: its path can be typed.

    Args:
        folder: the person's `.ssh`.
    """
    try:
        files = sorted(folder.iterdir())
    except OSError:
        return ()
    return tuple(
        path
        for path in files
        if path.suffix != ".pub" and path.name.isprintable() and _is_key(path)
    )


def read_file(path: Path) -> str:
    """Return the text of a key file.

    Raises:
        StepFailed: it cannot be read, or it is far too large for a key.
    """
    try:
        # A device or a pipe could block, or never end.
        if not path.is_file():
            raise StepFailed(f"cannot read the key {path}: it is no file. Nothing was applied")
        with path.open("rb") as file:
            data = file.read(_LONGEST + 1)
    except OSError as error:
        raise StepFailed(
            f"cannot read the key {path}: {error.strerror}. Nothing was applied"
        ) from error
    if len(data) > _LONGEST:
        raise StepFailed(f"cannot read the key {path}: it is too large. Nothing was applied")
    return data.decode("utf-8", errors="replace")


def typed_path(text: str, home: Path) -> Path:
    """Return the path that a person typed; `~/` is their home folder."""
    text = text.strip()
    return home / text[2:] if text.startswith("~/") else Path(text)


def _is_key(path: Path) -> bool:
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return _HEADER.match(file.read(_HEADER_BYTES)) is not None
    except OSError:
        return False
