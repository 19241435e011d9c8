"""Loads the config and the Workflows of a folder; a fault of user code never ends it.

Source: spec/authoring.md §2.1 and §3.1.
"""

from __future__ import annotations

import importlib.util
import linecache
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .. import masking, names
from ..config import Config, ConfigInvalid
from ..errors import BuildRefused
from . import problems
from .modules import PACKAGE, import_config, open_folder
from .problems import Problem, Rule

if TYPE_CHECKING:
    from ..machine import BuiltMachine

_WORKFLOW_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_MISSING: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedConfig:
    """A config, or why there is none; exactly one of the two."""

    config: Config | None = None
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedWorkflow:
    """A Workflow whose module loaded and whose `machine` is a built Machine."""

    name: str
    file: str
    machine: BuiltMachine[Any, Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedWorkflows:
    """The Workflows of a folder, sorted by name, and what is wrong with the others."""

    workflows: tuple[LoadedWorkflow, ...]
    problems: tuple[Problem, ...]
    names: tuple[str, ...] = ()
    """Of all files that can name one, those that did not load too."""


def load_config(folder: Path, values: Mapping[str, str] | None = None) -> LoadedConfig:
    """Import `jr2_config.py` of an Instance folder and return its `config`.

    Args:
        folder: the absolute path of the Instance folder.
        values: the variables that were handed over for it; no value enters a problem, nor does a
            part of one.
    """
    file = folder / names.CONFIG_FILE
    values = values or {}
    open_folder(folder)
    try:
        config = getattr(import_config(folder), "config", _MISSING)
    except ConfigInvalid as error:
        source = "".join(linecache.getlines(str(file)))
        path = masking.names_hidden(error.path, values, source)
        said = f"{path}: {error.problem}"
        hidden = masking.quoted_parts_hidden(said, values)
        if hidden is None:
            hidden = "a field has a wrong value, which holds a part of a value of the environment"
        return LoadedConfig(problem=problems.error(f"{file} at {hidden}"))
    except BaseException as error:
        fault = (
            problems.config_fault(error, folder, values)
            if values
            else problems.fault(error, folder)
        )
        return LoadedConfig(problem=problems.error(f"{file} did not load — {fault}"))
    if config is _MISSING:
        return LoadedConfig(
            problem=problems.error(f'{file} has no "config" (use `config = Config(…)`)')
        )
    if not isinstance(config, Config):
        return LoadedConfig(
            problem=problems.error(
                f'{file}: "config" is {problems.what(config)}, and not a Config (use `config = Config(…)`)'
            )
        )
    return LoadedConfig(config=config)


def load_workflows(
    folder: Path, before: Callable[[str], None] = lambda file: None
) -> LoadedWorkflows:
    """Import every Workflow of an Instance folder.

    Args:
        folder: the absolute path of the Instance folder; without `workflows/` it has none.
        before: told which file is loaded next, as a path from the folder.
    """
    open_folder(folder)
    workflows: list[LoadedWorkflow] = []
    named: list[str] = []
    found, wrong = _listed(folder)
    for path in found:
        if path.is_symlink() and not path.exists():
            wrong.append(_dangling(path, folder))
            continue
        if not path.is_file():
            continue
        if not _WORKFLOW_NAME.fullmatch(path.stem):
            wrong.append(_misnamed(path, folder))
            continue
        named.append(path.stem)
        before(path.relative_to(folder).as_posix())
        loaded = _load_workflow(path, folder)
        if isinstance(loaded, LoadedWorkflow):
            workflows.append(loaded)
        else:
            wrong += loaded
    return LoadedWorkflows(workflows=tuple(workflows), problems=tuple(wrong), names=tuple(named))


def workflow_files(folder: Path) -> list[Path]:
    """Return the files that name a Workflow, sorted.

    A name that starts with `_` or `.` names none, nor does a folder, a pipe or a socket.
    """
    return [path for path in _listed(folder)[0] if path.is_file()]


def _listed(folder: Path) -> tuple[list[Path], list[Problem]]:
    """Return what is named like a Workflow, sorted, or why the folder cannot be read.

    When there is no such folder, there is neither.
    """
    place = folder / names.WORKFLOWS_DIR
    try:
        found = [path for path in place.iterdir() if path.suffix == ".py"]
    except FileNotFoundError:
        return [], [_dangling(place, folder, "folder")] if place.is_symlink() else []
    except NotADirectoryError:
        return [], _failed(
            f"{place} is no folder — each Workflow is a file in a folder of that name: move what "
            "is there away, and make the folder"
        )
    except OSError as error:
        return [], _failed(
            f"{place} cannot be read: {error.strerror} — make it a folder that you may read"
        )
    named = [path for path in found if not path.name.startswith(("_", "."))]
    return sorted(named, key=lambda path: path.stem), []


def _dangling(path: Path, folder: Path, kind: str = "file") -> Problem:
    return problems.error(
        f"{_shown(path, folder)} is a link to {os.readlink(path)}, and nothing is "
        f"there — remove the link, or put the {kind} there"
    )


def _misnamed(path: Path, folder: Path) -> Problem:
    return problems.error(
        f"{_shown(path, folder)} cannot name a Workflow: a name has letters, digits, `_` and `-`, "
        "and starts with a letter or a digit — rename the file, or start its name with `_` when "
        "it is no Workflow"
    )


def _shown(path: Path, folder: Path) -> str:
    """Return a path from the folder on one line, also when its name holds what no line can."""
    relative = path.relative_to(folder).as_posix()
    return relative if relative.isprintable() else ascii(relative)


def _load_workflow(path: Path, folder: Path) -> LoadedWorkflow | list[Problem]:
    from ..machine import BuiltMachine

    name = path.stem
    file = path.relative_to(folder).as_posix()
    module_name = f"{PACKAGE}.{names.WORKFLOWS_DIR}.{name}"
    spec = importlib.util.find_spec(module_name)
    if spec is None or spec.origin != str(path):
        found = Path(spec.origin) if spec is not None and spec.origin else path.with_suffix("")
        return _failed(
            f'workflow "{name}": Python imports {found.relative_to(folder).as_posix()} in the '
            f"place of {file} — rename one of the two"
        )
    try:
        # A module may have a `__getattr__` of its own, which is user code too.
        machine = getattr(importlib.import_module(module_name), "machine", _MISSING)
    except BuildRefused as error:
        return [
            Problem(prefix="refusing: ", message=f'workflow "{name}": {problem}')
            for problem in error.problems
        ]
    except BaseException as error:
        return _failed(f'workflow "{name}": {file} did not load — {problems.fault(error, folder)}')
    if machine is _MISSING:
        return _failed(
            f'workflow "{name}": {file} has no "machine" (use `machine = Machine(…).build()`; start '
            "the file's name with `_` when it is no Workflow)"
        )
    if not isinstance(machine, BuiltMachine):
        return _refused(
            "door",
            (
                f'workflow "{name}": `machine` is {problems.what(machine)}, but Machine(…).build() did not '
                "make it, so no door reads its input: a run starts with any input, and the Console "
                "start form is only a field for JSON — export what .build() returns (ADR-0033)"
            ),
        )
    return LoadedWorkflow(name=name, file=file, machine=machine)


def _failed(message: str) -> list[Problem]:
    return [problems.error(message)]


def _refused(rule: Rule, message: str) -> list[Problem]:
    return [Problem(prefix="refusing: ", message=message, rule=rule)]
