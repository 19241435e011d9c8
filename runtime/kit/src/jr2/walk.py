"""The walk: load an Instance folder, and say what its config and its Workflows are.

It runs in the Instance's interpreter in two places and gives one answer: on the host, in a child
process of `jr2 check` and `jr2 up`, and in the cluster, in the process that serves an Assembly.
Everything that a folder can get wrong becomes a `Problem` with the text that a person reads; a
fault of user code never ends the walk.

The modules of a folder are loaded under the synthetic package `jr2_instance`, so that relative
imports work (`from ._helpers import …` in `workflows/`) and a Workflow's name may hold a hyphen.
Packages beside `workflows/` are imported by their own names; a distribution of the environment and
the standard library win over them. Their bytecode is neither written nor read: an edit within one
second, with no change of size, must not run the code of before.

Source: spec/authoring.md §2.1 and §3.1, design §3.1 and §5.1.
"""

from __future__ import annotations

import importlib.util
import json
import linecache
import os
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
)
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from . import masking, names
from .config import Config, ConfigInvalid
from .errors import BuildRefused

if TYPE_CHECKING:
    from .machine import BuiltMachine

PACKAGE: Final = "jr2_instance"
"""The synthetic package of the folder's own modules."""
CONFIG_MODULE: Final = "jr2_config"
_WORKFLOW_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_MISSING: Final = object()


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Problem(_Shape):
    """One thing that is wrong with the folder.

    Args:
        prefix: what the command prints before the message.
        message: the whole text, over as many lines as it takes.
    """

    prefix: Literal["refusing: ", "error: "]
    message: str


class WalkedWorkflow(_Shape):
    """What the walk says of one Workflow; plain data, for another process.

    Args:
        name: the stem of its file.
        file: its path from the folder, such as `workflows/ping.py`.
        machine_id: the id of its Machine.
        input: the JSON Schema of the door; `None` without one.
        shape: the Machine's shape digest, 12 hex digits.
        document: the Machine's structure.
        agents: the Agents that the Machine carries.
        effects: the Effects that the Machine carries.
        composes_sandbox: the Machine makes a Sandbox.
        menu_only_agents: an Agent of the Machine has no workspace.
    """

    name: str
    file: str
    machine_id: str
    input: dict[str, JsonValue] | None
    shape: str
    document: dict[str, JsonValue]
    agents: list[JsonValue] = []
    effects: list[JsonValue] = []
    composes_sandbox: bool = False
    menu_only_agents: bool = False


class ConfigReport(_Shape):
    """What the walk says first to the process that started it; exactly one of the two.

    Args:
        config: the config with its secret values.
        problem: why it did not load.
    """

    config: dict[str, JsonValue] | None = None
    problem: Problem | None = None


class LoadingReport(_Shape):
    """What the walk says before it loads a Workflow, so that one which never ends has a name.

    Args:
        loading: its file, as a path from the folder.
    """

    loading: str


class WorkflowsReport(_Shape):
    """What the walk says last.

    Args:
        workflows: the Workflows, sorted by name.
        problems: what is wrong with the others.
    """

    workflows: list[WalkedWorkflow] = []
    problems: list[Problem] = []


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


def load_config(folder: Path, values: Mapping[str, str] | None = None) -> LoadedConfig:
    """Import `jr2_config.py` of an Instance folder and return its `config`.

    Args:
        folder: the absolute path of the Instance folder.
        values: the variables that were handed over for it; no value enters a problem, nor does a
            part of one.
    """
    file = folder / names.CONFIG_FILE
    values = values or {}
    _open(folder)
    try:
        module = _import_config(folder)
    except ConfigInvalid as error:
        source = "".join(linecache.getlines(str(file)))
        path = masking.names_hidden(error.path, values, source)
        said = f"{path}: {error.problem}"
        hidden = masking.quoted_parts_hidden(said, values)
        if hidden is None:
            hidden = "a field has a wrong value, which holds a part of a value of the environment"
        return LoadedConfig(problem=_error(f"{file} at {hidden}"))
    except (Exception, SystemExit) as error:
        fault = _config_fault(error, folder, values) if values else _fault(error, folder)
        return LoadedConfig(problem=_error(f"{file} did not load — {fault}"))
    config = getattr(module, "config", _MISSING)
    if config is _MISSING:
        return LoadedConfig(problem=_error(f'{file} has no "config" (use `config = Config(…)`)'))
    if not isinstance(config, Config):
        return LoadedConfig(
            problem=_error(
                f'{file}: "config" is {_what(config)}, and not a Config (use `config = Config(…)`)'
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
    _open(folder)
    workflows: list[LoadedWorkflow] = []
    problems: list[Problem] = []
    for path in _workflow_names(folder):
        if path.is_symlink() and not path.exists():
            problems.append(_dangling(path, folder))
            continue
        if not path.is_file():
            continue
        before(path.relative_to(folder).as_posix())
        loaded = _load_workflow(path, folder)
        if isinstance(loaded, Problem):
            problems.append(loaded)
        else:
            workflows.append(loaded)
    return LoadedWorkflows(workflows=tuple(workflows), problems=tuple(problems))


def workflow_files(folder: Path) -> list[Path]:
    """Return the files that name a Workflow, sorted.

    A name that starts with `_` or `.` names none, nor does a folder, a pipe or a socket.
    """
    return [path for path in _workflow_names(folder) if path.is_file()]


def _workflow_names(folder: Path) -> list[Path]:
    place = folder / names.WORKFLOWS_DIR
    try:
        found = [path for path in place.iterdir() if path.suffix == ".py"]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(
        (path for path in found if not path.name.startswith(("_", "."))),
        key=lambda path: path.stem,
    )


def _dangling(path: Path, folder: Path) -> Problem:
    return _error(
        f"{path.relative_to(folder).as_posix()} is a link to {os.readlink(path)}, and nothing is "
        "there — remove the link, or put the file there"
    )


def report_config(folder: Path, values: Mapping[str, str] | None = None) -> ConfigReport:
    """Load the config and say it as plain data, with its secret values.

    Args:
        folder: the absolute path of the Instance folder.
        values: as `load_config` takes them.
    """
    loaded = load_config(folder, values)
    if loaded.config is None:
        return ConfigReport(problem=loaded.problem)
    revealed = loaded.config.revealed()
    try:
        json.dumps(revealed, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return ConfigReport(
            problem=_error(
                f"{folder / names.CONFIG_FILE}: a value of the config is not UTF-8 — correct "
                f"{names.ENV_FILE} or the variable that it comes from"
            )
        )
    return ConfigReport(config=revealed)


def report_workflows(
    folder: Path, before: Callable[[str], None] = lambda file: None
) -> WorkflowsReport:
    """Load the Workflows and say them as plain data; the arguments are those of `load_workflows`."""
    found = load_workflows(folder, before)
    workflows: list[WalkedWorkflow] = []
    problems = list(found.problems)
    for workflow in found.workflows:
        try:
            workflows.append(describe(workflow))
        except Exception as error:
            problems.append(
                _error(
                    f'workflow "{workflow.name}": {workflow.file}: its Machine cannot be '
                    f"described — {_fault(error, folder)}"
                )
            )
    return WorkflowsReport(workflows=workflows, problems=problems)


def describe(workflow: LoadedWorkflow) -> WalkedWorkflow:
    """Return what the walk says of a Workflow."""
    machine = workflow.machine
    return WalkedWorkflow(
        name=workflow.name,
        file=workflow.file,
        machine_id=machine.id,
        input=machine.input_schema(),
        shape=machine.shape(),
        document=machine.document(),
    )


def main(arguments: Sequence[str], channel: int) -> int:
    """Walk a folder and write its reports to a file descriptor, each a line of JSON in ASCII.

    The variables of the config are taken away before a Workflow is loaded, and so are the modules
    of the folder that may keep their values: in the cluster it does not see them either, and what
    it says when it fails cannot hold one.

    Args:
        arguments: the folder, then `all` or `config`, then the variables that only the config may
            read.
        channel: the descriptor; nothing that user code prints may reach it.
    """
    folder, extent, *variables = arguments
    values = {name: os.environ.get(name, "") for name in variables}
    config = report_config(Path(folder), values)
    if config.problem is not None:
        config = ConfigReport(problem=_silent(config.problem, values))
    _write(channel, config)
    for name in variables:
        os.environ.pop(name, None)
    _forget_own(Path(folder))
    if extent == "all":
        found = report_workflows(
            Path(folder), lambda file: _write(channel, LoadingReport(loading=file))
        )
        problems = [_silent(problem, values) for problem in found.problems]
        _write(channel, WorkflowsReport(workflows=found.workflows, problems=problems))
    return 0


def _write(channel: int, report: BaseModel) -> None:
    data = json.dumps(report.model_dump(mode="json")).encode() + b"\n"
    while data:
        data = data[os.write(channel, data) :]


# --- one Workflow -------------------------------------------------------------------------------
def _load_workflow(path: Path, folder: Path) -> LoadedWorkflow | Problem:
    from .machine import BuiltMachine

    name = path.stem
    file = path.relative_to(folder).as_posix()
    if not _WORKFLOW_NAME.fullmatch(name):
        return _error(
            f"{file} cannot name a Workflow: a name has letters, digits, `_` and `-`, and starts "
            "with a letter or a digit — rename the file, or start its name with `_` when it is no "
            "Workflow"
        )
    module_name = f"{PACKAGE}.{names.WORKFLOWS_DIR}.{name}"
    spec = importlib.util.find_spec(module_name)
    if spec is None or spec.origin != str(path):
        found = Path(spec.origin) if spec is not None and spec.origin else path.with_suffix("")
        return _error(
            f'workflow "{name}": Python imports {found.relative_to(folder).as_posix()} in the '
            f"place of {file} — rename one of the two"
        )
    try:
        module = importlib.import_module(module_name)
    except BuildRefused as error:
        return Problem(prefix="refusing: ", message=f'workflow "{name}": {error}')
    except (Exception, SystemExit) as error:
        return _error(f'workflow "{name}": {file} did not load — {_fault(error, folder)}')
    machine = getattr(module, "machine", _MISSING)
    if machine is _MISSING:
        return _error(
            f'workflow "{name}": {file} has no "machine" (use `machine = Machine(…).build()`; start '
            "the file's name with `_` when it is no Workflow)"
        )
    if not isinstance(machine, BuiltMachine):
        return Problem(
            prefix="refusing: ",
            message=(
                f'workflow "{name}": `machine` is {_what(machine)}, but Machine(…).build() did not '
                "make it, so no door reads its input: a run starts with any input, and the Console "
                "start form is only a field for JSON — export what .build() returns (ADR-0033)"
            ),
        )
    return LoadedWorkflow(name=name, file=file, machine=machine)


def _what(value: object) -> str:
    """Say what a value is, never what it holds."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, types.ModuleType):
        return "a module"
    if callable(value):
        return "a function" if isinstance(value, types.FunctionType) else "a callable"
    kind = type(value)
    if kind.__module__.split(".")[0] == "jr2":
        return f"a {kind.__name__}" + (" that is not built" if kind.__name__ == "Machine" else "")
    return f"an object of type {kind.__name__}"


def _silent(problem: Problem, values: Mapping[str, str]) -> Problem:
    return Problem(prefix=problem.prefix, message=masking.without_values(problem.message, values))


def _error(message: str) -> Problem:
    return Problem(prefix="error: ", message=message)


def _fault(error: BaseException, folder: Path) -> str:
    """Say an exception of user code: its class, its words, and the user's own line."""
    words = str(error).strip()
    if isinstance(error, SyntaxError):
        words = error.msg
    said = type(error).__name__ + (f": {words}" if words else "")
    where = _own_line(error, folder)
    return f"{said} ({where})" if where else said


def _config_fault(error: BaseException, folder: Path, values: Mapping[str, str]) -> str:
    """Say an exception of a config that saw values: its class, and the user's own line.

    Its words may hold a value in any form, so they are kept only where they cannot.
    """
    place = _own_place(error, folder)
    said = type(error).__name__
    if place is None:
        return said
    relative = _own_relative(place[0], folder)
    text = "".join(linecache.getlines(place[0]))
    source = masking.harmless_source(text, place[1], values) if relative is not None else ""
    words: str | None = None
    if isinstance(error, SyntaxError):
        # Of a file, and not of a text that the config made and evaluated.
        words = error.msg if relative is not None else None
    else:
        words = masking.harmless_words(error, str(error).strip(), values, source)
    if relative is None:
        return said
    where = f"line {place[1]}"
    if relative != names.CONFIG_FILE:
        where = f"{relative} {where}"
    return said + (f": {words}" if words else "") + f" ({where}{f': {source}' if source else ''})"


def _own_line(error: BaseException, folder: Path) -> str | None:
    """Return file, line and source of the deepest line of the folder that the error came through.

    The source of the config is left out: a secret may be written there.
    """
    place = _own_place(error, folder)
    if place is None:
        return None
    relative = _own_relative(place[0], folder)
    if relative is None:
        return f"{place[0]} line {place[1]}"
    if relative == names.CONFIG_FILE:
        return f"line {place[1]}"
    source = linecache.getline(*place).strip()
    return f"{relative} line {place[1]}" + (f": {source}" if source else "")


def _own_place(error: BaseException, folder: Path) -> tuple[str, int] | None:
    """Return the file and the line that a syntax error names, else the deepest own line."""
    place: tuple[str, int] | None = None
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        made = _own_relative(error.filename, folder) is None and not os.path.isabs(error.filename)
        if not made:
            return (error.filename, error.lineno)
    for filename, line in _frames(error.__traceback__):
        if _own_relative(filename, folder) is not None:
            place = (filename, line)
    return place


def _frames(trace: types.TracebackType | None) -> Iterator[tuple[str, int]]:
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next


# --- how the folder's modules are found -----------------------------------------------------------
class _Fresh(SourceFileLoader):
    """Loads a module from its source, always."""

    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


_opened: list[Path] = []


def _open(folder: Path) -> None:
    """Make the folder the one whose modules are found; another one is forgotten."""
    if _opened == [folder]:
        return
    for name in [n for n in sys.modules if n == CONFIG_MODULE or n.split(".")[0] == PACKAGE]:
        del sys.modules[name]
    for before in _opened:
        sys.path.remove(str(before))
    if not _opened:
        sys.path_hooks.insert(0, _find_fresh)
    _opened[:] = [folder]
    for path in [p for p in sys.path_importer_cache if _own_relative(p, folder) is not None]:
        del sys.path_importer_cache[path]
    sys.path.append(str(folder))
    for name, place in (
        (PACKAGE, folder),
        (f"{PACKAGE}.{names.WORKFLOWS_DIR}", folder / names.WORKFLOWS_DIR),
    ):
        package = types.ModuleType(name)
        package.__path__ = [str(place)]
        package.__package__ = name
        sys.modules[name] = package
    setattr(
        sys.modules[PACKAGE],
        names.WORKFLOWS_DIR,
        sys.modules[f"{PACKAGE}.{names.WORKFLOWS_DIR}"],
    )


def _forget_own(folder: Path) -> None:
    """Forget the modules of the folder: each is loaded anew by who imports it next."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == __package__:
            # A checkout of the Kit may lie in the folder.
            continue
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and _own_relative(file, folder) is not None:
            del sys.modules[name]


def _find_fresh(path: str) -> FileFinder:
    if not _opened or _own_relative(path, _opened[0]) is None:
        raise ImportError(f"{path} is not of the Instance")
    return FileFinder(path, (ExtensionFileLoader, EXTENSION_SUFFIXES), (_Fresh, SOURCE_SUFFIXES))


def _own_relative(path: str, folder: Path) -> str | None:
    """Return a path from the folder when it is the Instance's own: not in `.venv` or the like."""
    try:
        relative = Path(path).relative_to(folder)
    except ValueError:
        return None
    if any(part.startswith(".") or part == "site-packages" for part in relative.parts):
        return None
    return relative.as_posix()


def _import_config(folder: Path) -> types.ModuleType:
    # By its place and not by its name: a distribution with a module of that name cannot take it.
    known = sys.modules.get(CONFIG_MODULE)
    if known is not None:
        return known
    spec = FileFinder(str(folder), (_Fresh, SOURCE_SUFFIXES)).find_spec(CONFIG_MODULE)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"there is no {names.CONFIG_FILE}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[CONFIG_MODULE] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[CONFIG_MODULE]
        raise
    return module
