"""`jr2 init`: write a new Instance folder.

It adds and never changes: a file that exists is skipped, whatever it holds. The folder pins the Kit
at one exact version; from a checkout of jr2's repository, whose version no index holds, it points
at the checkout and says so.

Source: spec/authoring.md §6, design §3.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from jr2 import names
from jr2.config import name_problem
from jr2.errors import StepFailed

from ..facts.kit import COMMAND_VERSION
from ..report import Reporter

_TEMPLATES: Final = Path(__file__).with_name("templates")
_FILES: Final[Mapping[str, str]] = {
    "pyproject.toml": "pyproject.toml.template",
    names.CONFIG_FILE: names.CONFIG_FILE,
    ".gitignore": "gitignore",
    names.AGENTS_FILE: names.AGENTS_FILE,
    "workflows/ping.py": "workflows/ping.py",
    "images/default/Dockerfile": "images/default/Dockerfile",
}
"""Each file of a new Instance, and the template that it is made of."""
_CHECKOUT_PARTS: Final[Mapping[str, str]] = {
    "jr2": "runtime/kit",
    "jr2-cli": "cli",
    "jr2-infra": "infra",
    "jr2-machines": "runtime/machines",
}
"""The distributions that an Instance installs or may add, and where a checkout holds them."""
_TAKEN: Final = frozenset({*_CHECKOUT_PARTS, "mypy"})
"""What an Instance depends on: a project of that name would depend on itself."""


def scaffold(directory: Path, name: str | None, checkout: Path | None, reporter: Reporter) -> None:
    """Write a new Instance into a folder, and leave alone what is there.

    Args:
        directory: the folder; it is made when it does not exist.
        name: the Instance's name; the folder's name when it is `None`.
        checkout: the root of the checkout that this command runs from, if it does.
        reporter: gets a line for each file.

    Raises:
        StepFailed: the name is no name for an Instance, or a file cannot be written.
    """
    target = Path(os.path.realpath(directory))
    name = target.name if name is None else name
    problem = name_problem(name)
    if problem is not None:
        raise StepFailed(f"{problem} — give it a name: jr2 init {directory} --name <name>")
    reporter.line(f"jr2 init — scaffolding {name} in {target}", code="init")
    for file, template in _FILES.items():
        text = (_TEMPLATES / template).read_text(encoding="utf-8")
        created = _create(target / file, _filled(text, name, checkout))
        reporter.line(
            f"  create {file}" if created else f"  skip   {file} (exists)",
            code="create" if created else "skip",
        )
        if created and checkout is not None and file == "pyproject.toml":
            reporter.line(
                f"  pinned to the checkout {checkout} by [tool.uv.sources]: "
                f"jr2 {COMMAND_VERSION} comes from there",
                code="checkout",
            )
    reporter.line(
        f"next: install with `uv sync` in {target}, then `jr2 up` and `jr2 run ping`", code="next"
    )


def _filled(text: str, name: str, checkout: Path | None) -> str:
    project = f"{name}-instance" if name in _TAKEN else name
    return (
        text.replace("@name@", name)
        .replace("@project@", project)
        .replace("@version@", COMMAND_VERSION)
        .replace("@sources@", _sources(checkout))
    )


def _sources(checkout: Path | None) -> str:
    """Return the table that points uv at a checkout, between two empty lines; empty without."""
    if checkout is None:
        return ""
    lines = [
        f"{part} = {{ path = {json.dumps(str(checkout / place), ensure_ascii=False)}, "
        "editable = true }"
        for part, place in _CHECKOUT_PARTS.items()
    ]
    return "\n".join(["", "[tool.uv.sources]", *lines, ""])


def _create(file: Path, text: str) -> bool:
    """Write a file that does not exist; say whether it was written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError as error:
        if Path(error.filename or file) == file:
            return False
        raise StepFailed(f"cannot write {file}: {error.filename} is no folder") from error
    except OSError as error:
        raise StepFailed(f"cannot write {file}: {error.strerror}") from error
    return True
