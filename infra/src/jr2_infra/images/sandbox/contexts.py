"""The folders that Sandbox Images are built from.

A folder is built when a Machine that makes a Sandbox names it by a `file:` URL, or names no image
and the Instance has `images/default`. A ref of a registry is pulled, never built.

Source: spec/authoring.md §2.10 (image), spec/converge.md §7.4 (Contexts).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from jr2.walk import WalkedParts

DEFAULT_CONTEXT: Final = Path("images/default")
_RECIPE: Final = "Dockerfile"
_SKIPPED: Final = "sandbox images: skipped (no registered Machine composes a Sandbox)"


def is_folder(image: str) -> bool:
    """Say whether an image is a folder to build, not a ref of a registry."""
    return image.startswith("file:")


def folder_of(image: str) -> Path:
    """Return the folder of a Sandbox Image that is a `file:` URL."""
    return Path(unquote(urlsplit(image).path))


def contexts(root: Path, parts: Sequence[WalkedParts]) -> tuple[Path, ...]:
    """Return the folders that are built, each once.

    Args:
        root: the Instance folder.
        parts: what each Workflow carries.
    """
    found: dict[Path, None] = {}
    default = root / DEFAULT_CONTEXT
    if any(one.default_image for one in parts) and (default / _RECIPE).is_file():
        found[default] = None
    for one in parts:
        for image in one.images:
            if is_folder(image):
                found[folder_of(image)] = None
    return tuple(found)


def line(root: Path, parts: Sequence[WalkedParts], folders: Sequence[Path]) -> str:
    """Return what is said about Sandbox Images.

    Args:
        root: the Instance folder.
        parts: what each Workflow carries.
        folders: what `contexts` gave.
    """
    if not any(one.sandboxes for one in parts):
        return _SKIPPED
    if not folders:
        return "sandbox images: none to build (each is pulled from a registry)"
    listed = ", ".join(
        str(folder.relative_to(root)) if folder.is_relative_to(root) else str(folder)
        for folder in folders
    )
    return f"sandbox images: {listed} not built — this version of jr2 does not build them yet"
