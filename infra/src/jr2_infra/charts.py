"""The Chart files of an Instance: `charts/<workflow>.mmd`, compared with what the walk drew.

A Workflow needs no Chart. One that is there must parse, name a Workflow and match its Machine, so
that the picture in a pull request is true.

Source: seed 000 (step 3), design §4.6, ADR-0136.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from jr2 import charts, names
from jr2.errors import StepFailed

from .report import Reporter

_SUFFIX: Final = ".mmd"
_LARGEST: Final = 4 * 1024 * 1024
"""Bytes of a Chart that is read; one of 2000 states has a tenth of it."""


def refusals(root: Path, drawings: Mapping[str, str], others: Sequence[str] = ()) -> list[str]:
    """Return what is wrong with the Charts of a folder, each with the command that mends it.

    Args:
        root: the Instance folder.
        drawings: the Chart that each Workflow's Machine has, by the Workflow's name.
        others: Workflows whose Machine is not known; their Charts are not judged.
    """
    found: list[str] = []
    for path in _files(root):
        name = path.relative_to(root).as_posix()
        workflow = path.stem
        if workflow in others:
            continue
        if workflow not in drawings:
            has = ", ".join(drawings) or "no Workflow"
            found.append(
                f"{name} names no Workflow (this folder has {has}) — name it like the file of a "
                f"Workflow, or remove it: `rm {shlex.quote(name)}`"
            )
            continue
        again = f"`jr2 chart {workflow}`"
        try:
            differs = charts.difference(_text(path), drawings[workflow])
        except (charts.Unreadable, UnicodeDecodeError, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            why = "it is no UTF-8" if isinstance(error, UnicodeDecodeError) else why
            found.append(f"{name} does not parse: {why} — {again} writes it anew")
            continue
        if differs is not None:
            found.append(
                f'{name} no longer matches the Machine of workflow "{workflow}": {differs} — '
                f"{again} draws it again"
            )
    return found


def write(root: Path, drawings: Mapping[str, str], reporter: Reporter) -> None:
    """Write the Charts of some Workflows; one that matches keeps what a person added to it.

    Args:
        root: the Instance folder.
        drawings: the Charts, by the name of the Workflow.
        reporter: gets a line for each.

    Raises:
        StepFailed: a file cannot be written.
    """
    folder = root / names.CHARTS_DIR
    for workflow, drawing in drawings.items():
        path = folder / f"{workflow}{_SUFFIX}"
        name = path.relative_to(root).as_posix()
        if _matches(path, drawing):
            reporter.line(f"{name}: unchanged", code="chart")
            continue
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        try:
            folder.mkdir(exist_ok=True)
            temporary.write_text(drawing, encoding="utf-8", newline="\n")
            temporary.replace(path)
        except FileExistsError as error:
            raise StepFailed(
                f"{name} cannot be written: {folder} is no folder — move it away"
            ) from error
        except OSError as error:
            with suppress(OSError):
                temporary.unlink()
            raise StepFailed(f"{name} cannot be written: {error.strerror}") from error
        reporter.line(f"{name}: written", code="chart")


def _files(root: Path) -> list[Path]:
    folder = root / names.CHARTS_DIR
    try:
        found = list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError) as error:
        # A link to nothing is in the way too.
        if not os.path.lexists(folder):
            return []
        raise StepFailed(
            f"{folder} is no folder — `jr2 chart` writes into a folder of that name: move what is "
            "there away"
        ) from error
    except OSError as error:
        raise StepFailed(
            f"{folder} cannot be read: {error.strerror} — make it a folder that you may read"
        ) from error
    return sorted(
        path
        for path in found
        if path.suffix == _SUFFIX and not path.name.startswith(".") and not path.is_dir()
    )


def _text(path: Path) -> str:
    if not path.is_file():
        raise charts.Unreadable("it is no file")
    with path.open("rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise charts.Unreadable(f"it has more than {_LARGEST} bytes")
    return data.decode()


def _matches(path: Path, drawing: str) -> bool:
    try:
        return charts.difference(_text(path), drawing) is None
    except (charts.Unreadable, UnicodeDecodeError, OSError):
        return False
