"""The walk as a program: what the process of the host runs, and says.

Source: design §5.1.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel

from .. import charts, names
from ..config import Config
from . import carries, problems, rules
from .load import LoadedWorkflow, load_config, load_workflows
from .modules import forget_own
from .reports import ConfigReport, LoadingReport, WalkedWorkflow, WorkflowsReport
from .rules import Declared


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
            problem=problems.error(
                f"{folder / names.CONFIG_FILE}: a value of the config is not UTF-8 — correct "
                f"{names.ENV_FILE} or the variable that it comes from"
            )
        )
    return ConfigReport(config=revealed)


def report_workflows(
    folder: Path,
    declared: Declared = Declared(),  # noqa: B008 - it does not change
    before: Callable[[str], None] = lambda file: None,
) -> WorkflowsReport:
    """Load the Workflows, judge them, and say them as plain data.

    Args:
        folder: the absolute path of the Instance folder.
        declared: what its config says.
        before: as `load_workflows` takes it.
    """
    found = load_workflows(folder, before)
    workflows: list[WalkedWorkflow] = []
    wrong = list(found.problems)
    for workflow in found.workflows:
        try:
            workflows.append(describe(workflow, declared))
        except Exception as error:
            wrong.append(
                problems.error(
                    f'workflow "{workflow.name}": {workflow.file}: its Machine cannot be '
                    f"described — {problems.fault(error, folder)}"
                )
            )
    wrong += rules.problems(found.workflows, declared, found.names)
    return WorkflowsReport(workflows=workflows, problems=wrong)


def describe(workflow: LoadedWorkflow, declared: Declared) -> WalkedWorkflow:
    """Return what the walk says of a Workflow."""
    machine = workflow.machine
    return WalkedWorkflow(
        name=workflow.name,
        file=workflow.file,
        machine_id=machine.id,
        input=machine.input_schema(),
        shape=machine.shape(),
        document=machine.document(),
        drawing=charts.draw(machine.chart),
        parts=carries.parts(machine, declared.resources),
        warnings=rules.warnings(workflow),
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
        config = ConfigReport(problem=problems.silent(config.problem, values))
    _write(channel, config)
    declared = Declared()
    if config.config is not None:
        declared = Declared.of(Config.model_validate(config.config))
    for name in variables:
        os.environ.pop(name, None)
    forget_own(Path(folder))
    if extent == "all":
        found = report_workflows(
            Path(folder),
            declared,
            lambda file: _write(channel, LoadingReport(loading=file)),
        )
        silent = [problems.silent(problem, values) for problem in found.problems]
        _write(channel, WorkflowsReport(workflows=found.workflows, problems=silent))
    return 0


def _write(channel: int, report: BaseModel) -> None:
    data = json.dumps(report.model_dump(mode="json")).encode() + b"\n"
    while data:
        data = data[os.write(channel, data) :]
