"""The jr2 block of `AGENTS.md`: the index of the Kit's docs, for the user's coding assistant.

`jr2 up` writes between the two `jr2-docs` markers and nowhere else, and only when
the block changes. A file without markers is the user's alone. Markers that are no pair are a
warning, never an error: the converge goes on.

Source: seed 002 (What jr2 up does for the upgrade), seed 000 step 1, ADR-0072.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from jr2 import docs_index, names

from . import regular

START: Final = "<!-- jr2-docs:start -->"
END: Final = "<!-- jr2-docs:end -->"
_NOT_UPDATED: Final = "so the jr2 block was not updated"


def update(root: Path, package: Path, version: str) -> tuple[str | None, str | None]:
    """Bring the block of an Instance's `AGENTS.md` to the docs of a Kit.

    Args:
        root: the Instance folder.
        package: the real path of the Kit's package `jr2`.
        version: the Kit version.

    Returns:
        The line to print when the block changed, and the warning when it could not.
    """
    file = root / names.AGENTS_FILE
    try:
        before = regular.read(file).decode("utf-8")
    except FileNotFoundError:
        return None, None
    except UnicodeDecodeError:
        return None, _warning("it is not UTF-8")
    except OSError as error:
        return None, _warning(f"it cannot be read ({error.strerror})")
    if START not in before and END not in before:
        return None, None
    why = pair_problem(before)
    if why is not None:
        return None, _warning(why)
    after = replaced(before, block(root, package, version))
    if after == before:
        return None, None
    try:
        _write(file, after.encode())
    except OSError as error:
        return None, _warning(f"it cannot be written ({error.strerror})")
    return f"{names.AGENTS_FILE}: jr2 block updated for {version}", None


def pair_problem(text: str) -> str | None:
    """Return why the markers of a text are no pair, or `None` when they are one."""
    starts, ends = text.count(START), text.count(END)
    if starts > 1 or ends > 1:
        return f"it holds {starts} start markers and {ends} end markers of jr2-docs"
    if not ends:
        return f"it holds {START} and no {END}"
    if not starts:
        return f"it holds {END} and no {START}"
    if text.index(END) < text.index(START):
        return f"{END} stands before {START}"
    return None


def replaced(text: str, lines: Sequence[str]) -> str:
    """Return a text with other lines between its two markers, in the text's own line ends."""
    newline = "\r\n" if "\r\n" in text else "\n"
    head, rest = text.split(START)
    tail = rest.split(END)[1]
    return head + newline.join([START, *lines, END]) + tail


def block(root: Path, package: Path, version: str) -> list[str]:
    """Return the lines of the block: what jr2 is, how to check, and one line for each page."""
    docs = docs_index.docs_folder(package)
    pages = [] if docs is None else docs_index.pages(docs)
    listed = [
        f"- {page.title}" + (f": {page.description}" if page.description else "") + f" — `{place}`"
        for page in pages
        for place in [_place(page.file, root)]
    ]
    return [
        f"## jr2 {version}",
        "",
        "This folder is a jr2 Instance: `jr2_config.py`, and a Machine in each `workflows/*.py`.",
        "After each edit run `jr2 check`: it needs no cluster, and says what `jr2 up` would refuse.",
        "Read the page before you use what it describes; these are the docs of this Kit version.",
        *(["", *listed] if listed else []),
    ]


def _place(file: Path, root: Path) -> str:
    """Return a page's path from the Instance folder when its environment holds the Kit."""
    real_root = root.resolve()
    if file.is_relative_to(real_root):
        return file.relative_to(real_root).as_posix()
    return file.as_posix()


def _warning(why: str) -> str:
    return f"warning: {names.AGENTS_FILE}: {why}, {_NOT_UPDATED}"


def _write(file: Path, data: bytes) -> None:
    """Replace a file whole; a link to it stays a link, and its mode stays."""
    target = file.resolve()
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        os.chmod(temporary, target.stat().st_mode & 0o7777)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
