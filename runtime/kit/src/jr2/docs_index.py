"""The docs that ship inside the Kit: where they lie, and one line for each page.

An installed Kit holds them as package data, `jr2/docs`; in an editable checkout they are the
checkout's own `docs/`. The records of decisions (`adr/`) are not shipped.

Source: design §2 (runtime/kit), spec/authoring.md §6, ADR-0072.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_DOCS: Final = "docs"
_NOT_SHIPPED: Final = "adr"
_FRONT: Final = re.compile(r"\A---\n(.*?)^---$", re.DOTALL | re.MULTILINE)
_FIELD: Final = re.compile(r"^(title|description):[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_HEADING: Final = re.compile(r"^#[ \t]+(.+?)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of the docs.

    Args:
        file: where it lies.
        title: from its front matter, else its first heading, else the file's name.
        description: from its front matter; empty when it says none.
    """

    file: Path
    title: str
    description: str


def docs_folder(package: Path) -> Path | None:
    """Return the folder of the docs of a Kit, or `None` when it has none.

    Args:
        package: the real path of its package `jr2`.
    """
    shipped = package / _DOCS
    if shipped.is_dir():
        return shipped
    # An editable checkout: <checkout>/runtime/kit/src/jr2.
    checkout = package.parents[3] if len(package.parents) > 3 else package
    if (checkout / "runtime" / "kit" / "src" / "jr2") == package:
        docs = checkout / _DOCS
        return docs if docs.is_dir() else None
    return None


def pages(docs: Path) -> list[Page]:
    """Return the pages of a docs folder in the order of their paths, without the ADRs."""
    files = [
        file for file in docs.rglob("*.md") if _NOT_SHIPPED not in file.relative_to(docs).parts[:-1]
    ]
    files.sort(key=lambda file: file.relative_to(docs).as_posix())
    return [_page(file) for file in files]


def _page(file: Path) -> Page:
    text = file.read_text(encoding="utf-8").replace("\r\n", "\n")
    front = _FRONT.match(text)
    fields = {k: v.strip("\"'") for k, v in _FIELD.findall(front[1])} if front else {}
    heading = _HEADING.search(text, front.end() if front else 0)
    title = fields.get("title") or (heading[1] if heading else file.stem)
    return Page(file=file, title=title, description=fields.get("description", ""))
