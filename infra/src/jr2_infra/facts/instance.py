"""What the Instance folder says: its config and its Workflows, read by its own interpreter.

The folder's code never runs in this process. A child of the Instance's interpreter imports it, with
an environment of PATH, HOME and the locale, and beside them only what the config reads: the
variables that `.env` names, and those that `jr2_config.py` reads by a literal name. It answers with
one JSON object on a pipe of its own, so that what the user's code prints cannot break it.

Source: design §5.1, spec/authoring.md §3.1 and §5, spec/converge.md §2.2.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from jr2 import names
from jr2.config import Config, name_problem
from jr2.errors import Jr2Error, Refusal, StepFailed
from jr2.masking import without_parts
from jr2.walk import (
    RULES,
    ConfigReport,
    LoadingReport,
    Problem,
    WalkedParts,
    WalkedWorkflow,
    WorkflowsReport,
)

from .. import processes
from ..report import Reporter
from . import kit
from .kit import INTERPRETER, check_kit_version, running_copy

__all__ = [
    "InstanceFacts",
    "ReadInstance",
    "WorkflowFacts",
    "check_kit_version",
    "find_root",
    "handed_over",
    "instance_name",
    "problem_error",
    "problems_error",
    "read_config",
    "read_instance",
]

_CHILD: Final = Path(__file__).with_name("walk_child.py")
_LIMIT: Final = 30.0
"""Seconds that the folder's code may take to load."""
_SLOW: Final = 2.0
"""Seconds until a person is told what takes long."""
_OTHER_KIT: Final = 3
"""What the child ends with when its interpreter finds another `jr2`, or none."""
_ELSEWHERE: Final = re.compile(r"jr2 resolves to (.+), and this jr2 runs against ")
_KEPT: Final = ("PATH", "HOME", "LANG", "LANGUAGE", "TMPDIR", "TZ")
_QUICK: Final = {"PYDANTIC_DISABLE_PLUGINS": "__all__"}
"""Without it, pydantic reads the metadata of each installed distribution, to look for plugins."""
_ENV_LINE: Final = re.compile(
    r"^[ \t\ufeff]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=", re.M
)
_WORDS_KEPT: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowFacts:
    """One Workflow of the Instance, as the walk saw it.

    Args:
        name: the stem of its file.
        file: its path from the Instance folder, such as `workflows/ping.py`.
        machine_id: the id of its Machine.
        input: the JSON Schema of its door; `None` without one.
        shape: the Machine's shape digest, 12 hex digits.
        document: the Machine's structure.
        drawing: its Chart, as `jr2 chart` writes it.
        parts: what the Machine carries.
        warnings: what is legal in it and still not what was meant, without the prefix.
    """

    name: str
    file: str
    machine_id: str
    input: Mapping[str, JsonValue] | None
    shape: str
    document: Mapping[str, JsonValue]
    drawing: str = ""
    parts: WalkedParts = field(default_factory=WalkedParts)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceFacts:
    """The Instance: everything that the Converge needs to know of the folder.

    Args:
        root: the folder's absolute path.
        name: the Instance's name; its default namespace.
        config: its config, with the values that `.env` gave.
        workflows: its Workflows, sorted by name.
        interpreter: its own Python.
        kit_version: the version of the `jr2` that it imports, which is the command's.
        checkout: the root of jr2's repository when that `jr2` is an editable checkout.
        ca_bundle: the certificates of `harness.ca_bundle`, PEM.
    """

    root: Path
    name: str
    config: Config
    workflows: tuple[WorkflowFacts, ...]
    interpreter: Path
    kit_version: str
    checkout: Path | None
    ca_bundle: str | None = None

    @property
    def composes_sandbox(self) -> bool:
        """Some Machine makes a Sandbox."""
        return any(workflow.parts.sandboxes for workflow in self.workflows)

    @property
    def menu_only_agents(self) -> bool:
        """Some Agent has no workspace, so there is an Instance Harness."""
        return any(workflow.parts.menu_only for workflow in self.workflows)


def find_root(cwd: Path) -> Path:
    """Return the Instance folder that a folder lies in.

    Args:
        cwd: where to start; the walk goes up.

    Raises:
        StepFailed: it lies in none.
    """
    start = cwd.resolve()
    for folder in (start, *start.parents):
        if (folder / names.CONFIG_FILE).is_file():
            return folder
    raise StepFailed(
        f"not inside a jr2 instance — no {names.CONFIG_FILE} found walking up from cwd"
    )


def read_config(root: Path) -> Config:
    """Return the config of an Instance, and load no Workflow.

    Raises:
        StepFailed: it does not load, or its shape is wrong.
    """
    return read_instance(root, config_only=True).config


def instance_name(root: Path, config: Config) -> str:
    """Return the Instance's name: what the config says, else the folder's name.

    Raises:
        StepFailed: the folder's name is no name for an Instance, and the config says none.
    """
    if config.name is not None:
        return config.name
    problem = name_problem(root.name)
    if problem is not None:
        raise StepFailed(
            f"the folder's name {problem} — give the Instance another one: name in "
            f"{root / names.CONFIG_FILE}"
        )
    return root.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadInstance:
    """What the folder's code said.

    Args:
        config: the config.
        workflows: the Workflows that loaded.
        problems: what is wrong with the others, or with all of them at once.
    """

    config: Config
    workflows: tuple[WorkflowFacts, ...]
    problems: tuple[Problem, ...]


def read_instance(
    root: Path, *, config_only: bool = False, reporter: Reporter | None = None
) -> ReadInstance:
    """Load the folder with its own interpreter, in one process, and return what it says.

    Args:
        root: the Instance folder; its Kit must be the command's (`check_kit_version`).
        config_only: load no Workflow.
        reporter: shows what takes long.

    Raises:
        StepFailed: the config did not load. What is wrong with Workflows is not raised.
    """
    handed = handed_over(root, os.environ)
    python = root / INTERPRETER
    extent = "config" if config_only else "all"
    kept = {n: v for n, v in os.environ.items() if n in _KEPT or n.startswith("LC_")}
    step = f"load: {names.CONFIG_FILE}" + ("" if config_only else " and the Workflows")
    show = (lambda text: None) if reporter is None else reporter.progress
    try:
        done = processes.run(
            [python, "-I", _CHILD, running_copy().path, root, extent, *handed],
            env={**kept, **_QUICK, **handed},
            cwd=root,
            timeout=_LIMIT,
            slow=(min(_SLOW, _LIMIT), lambda: show(step)),
        )
        if done.returncode == _OTHER_KIT and (seen := _ELSEWHERE.match(done.stderr)):
            raise StepFailed(kit.not_imported(root, seen[1]) or done.stderr)
        code = done.returncode
        how = f"code {code}" if code >= 0 else f"signal {-code}"
        said, ended = done.stdout, f"{python} ended with the {how} while it"
        words = _last_words(done.stderr, handed)
    except processes.TimeoutExpired as error:
        said = (error.stdout or b"").decode() if not isinstance(error.stdout, str) else error.stdout
        ended, words = f"{python} took more than {_LIMIT:.0f}s while it", ""
    except OSError as error:
        raise StepFailed(
            f"cannot run {python}: {error.strerror} — make {root / '.venv'} anew: install the "
            "Instance's dependencies (uv, poetry, or pdm)"
        ) from error
    finally:
        show(None)
    lines = said.splitlines()
    if not lines:
        raise StepFailed(f"{ended} loaded {root / names.CONFIG_FILE}{words}")
    config = ConfigReport.model_validate_json(lines[0])
    if config.problem is not None:
        raise problem_error(config.problem)
    found = WorkflowsReport()
    if not config_only:
        loading, last = _last_report(lines[1:])
        place = root / loading if loading else f"the Workflows of {root}"
        lost = Problem(prefix="error: ", message=f"{ended} loaded {place}{words}")
        found = last or WorkflowsReport(problems=[lost])
    return ReadInstance(
        config=Config.model_validate(config.config),
        workflows=tuple(_facts(workflow) for workflow in found.workflows),
        problems=tuple(found.problems),
    )


def _last_report(lines: Sequence[str]) -> tuple[str | None, WorkflowsReport | None]:
    """Return the file that was loaded last, and the report of the Workflows when it came."""
    loading = None
    for line in lines:
        if not line.startswith('{"loading":'):
            return loading, WorkflowsReport.model_validate_json(line)
        loading = LoadingReport.model_validate_json(line).loading
    return loading, None


def _facts(workflow: WalkedWorkflow) -> WorkflowFacts:
    return WorkflowFacts(
        name=workflow.name,
        file=workflow.file,
        machine_id=workflow.machine_id,
        input=workflow.input,
        shape=workflow.shape,
        document=workflow.document,
        drawing=workflow.drawing,
        parts=workflow.parts,
        warnings=tuple(workflow.warnings),
    )


def problem_error(problem: Problem) -> Jr2Error:
    """Return a problem of the walk as the error that the command prints."""
    return problems_error([problem])


def problems_error(problems: Sequence[Problem]) -> Jr2Error:
    """Return as one error the problems that break the first rule of the order.

    Args:
        problems: one or more.
    """
    first = min((problem.rule for problem in problems), key=RULES.index)
    same = [problem for problem in problems if problem.rule == first]
    said = "\n".join(problem.prefix + problem.message for problem in same)
    kind = Refusal if same[0].prefix == Refusal.default_prefix else StepFailed
    return kind(said.removeprefix(same[0].prefix))


def handed_over(root: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that the config may read, with their values.

    The names come from the lines of `.env` and from what `jr2_config.py` reads by a literal name,
    so that a value which CI sets needs no `.env`; the values come from the environment, which the
    command has filled from `.env`.
    """
    found: list[str] = []
    for file, reader in ((names.ENV_FILE, _env_names), (names.CONFIG_FILE, _names_read)):
        if not (root / file).is_file():
            continue
        try:
            text = (root / file).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        found += reader(text)
    return {name: environ[name] for name in dict.fromkeys(found) if name in environ}


def _env_names(text: str) -> list[str]:
    return _ENV_LINE.findall(text)


def _names_read(text: str) -> list[str]:
    """Return the names in `os.environ.get("X")`, `os.environ["X"]` and `os.getenv("X")`."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return []
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and _ends(node.func, ("get", "getenv")):
            key: ast.expr = node.args[0]
        elif isinstance(node, ast.Subscript) and _ends(node.value, ("environ",)):
            key = node.slice
        else:
            continue
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            found.append(key.value)
    return found


def _ends(node: ast.expr, words: tuple[str, ...]) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr in words) or (
        isinstance(node, ast.Name) and node.id in words
    )


def _last_words(text: str, handed: Mapping[str, str]) -> str:
    """Return the last lines of a child below the line they follow, with no value it was handed."""
    lines = without_parts(text, handed).rstrip().splitlines()[-_WORDS_KEPT:]
    return "".join([":", *(f"\n  {line}" for line in lines)]) if lines else ""
