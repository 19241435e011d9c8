"""What the walk says to the process that started it: plain data, each report a line of JSON.

Source: spec/authoring.md §5, design §5.1.
"""

from __future__ import annotations

from pydantic import Field, JsonValue

from .problems import Problem, Shape


class WalkedWorkflow(Shape):
    """What the walk says of one Workflow; plain data, for another process.

    Args:
        name: the stem of its file.
        file: its path from the folder, such as `workflows/ping.py`.
        machine_id: the id of its Machine.
        input: the JSON Schema of the door; `None` without one.
        shape: the Machine's shape digest, 12 hex digits.
        document: the Machine's structure.
        drawing: its Chart, as `jr2 chart` writes it.
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
    drawing: str
    agents: list[JsonValue] = Field(default_factory=list)
    effects: list[JsonValue] = Field(default_factory=list)
    composes_sandbox: bool = False
    menu_only_agents: bool = False


class ConfigReport(Shape):
    """What the walk says first to the process that started it; exactly one of the two.

    Args:
        config: the config with its secret values.
        problem: why it did not load.
    """

    config: dict[str, JsonValue] | None = None
    problem: Problem | None = None


class LoadingReport(Shape):
    """What the walk says before it loads a Workflow, so that one which never ends has a name.

    Args:
        loading: its file, as a path from the folder.
    """

    loading: str


class WorkflowsReport(Shape):
    """What the walk says last.

    Args:
        workflows: the Workflows, sorted by name.
        problems: what is wrong with the others.
    """

    workflows: list[WalkedWorkflow] = Field(default_factory=list)
    problems: list[Problem] = Field(default_factory=list)
