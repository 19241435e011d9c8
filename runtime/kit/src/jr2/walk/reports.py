"""What the walk says to the process that started it: plain data, each report a line of JSON.

Source: spec/authoring.md §5, design §5.1.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from .problems import Problem, Shape


class WalkedAgent(Shape):
    """An Agent that a Machine carries.

    Args:
        slot: its name.
        model: `<provider>/<model>`; `None` while it is Open.
        workspace: what it may do in one.
    """

    slot: str
    model: str | None
    workspace: Literal["write", "read", "none"]


class WalkedEffect(Shape):
    """An Effect that a Machine carries.

    Args:
        slot: its name.
        kind: what it does.
        place: where it runs.
        secret: the secret of the config that it uses; `None` without one, or while it is Open.
    """

    slot: str
    kind: Literal["command", "http", "push", "dispatch"]
    place: Literal["harness", "sandbox-effector", "instance-effector", "orchestrator"]
    secret: str | None


class WalkedRepo(Shape):
    """A Repo that a Machine binds.

    Args:
        url: the first spelling that the walk met.
        identity: host and path (`jr2.repo_identity`).
        key: its name in Kubernetes.
        way: how its url reaches it.
    """

    url: str
    identity: str
    key: str
    way: Literal["https", "http", "ssh", "git", "file"]


class WalkedPush(Shape):
    """A Repo Slot that an Effect pushes.

    Args:
        slot: the Repo Slot.
        url: the url that it is bound to; `None` when it comes with each run.
    """

    slot: str
    url: str | None


class WalkedSandbox(Shape):
    """A `workspace()` on the walk.

    Args:
        path: the actor slots that lead to it.
        route: the states that invoke the Machines on the way.
        image: a `file:` URL or a registry ref; `None`: the Instance's own.
        user: the image of its User Container.
        effector: it has an Effector.
        memory: of its Size, as it was written.
        cpu: of its Size, as it was written.
        pushes: what is pushed from it.
    """

    path: list[str]
    route: list[str]
    image: str | None
    user: str | None
    effector: bool
    memory: str
    cpu: str
    pushes: list[WalkedPush] = Field(default_factory=list)


class WalkedParts(Shape):
    """What a Machine and those that it composes carry, each thing once.

    Args:
        agents: by slot and definition.
        effects: by slot and definition.
        repos: the bound ones, by identity.
        sandboxes: each `workspace()`.
        images: the Sandbox Images that a `workspace()` names.
        default_image: a `workspace()` names none.
        users: the images of User Containers.
        effector_images: the images that a `workspace()` names for its Effector.
        menu_only: an Agent runs on the Instance Harness.
        instance_effector: an Effect runs in the Instance Effector.
    """

    agents: list[WalkedAgent] = Field(default_factory=list)
    effects: list[WalkedEffect] = Field(default_factory=list)
    repos: list[WalkedRepo] = Field(default_factory=list)
    sandboxes: list[WalkedSandbox] = Field(default_factory=list)
    images: list[str] = Field(default_factory=list)
    default_image: bool = False
    users: list[str] = Field(default_factory=list)
    effector_images: list[str] = Field(default_factory=list)
    menu_only: bool = False
    instance_effector: bool = False


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
        parts: what the Machine carries.
        warnings: what is legal in it and still not what was meant.
    """

    name: str
    file: str
    machine_id: str
    input: dict[str, JsonValue] | None
    shape: str
    document: dict[str, JsonValue]
    drawing: str
    parts: WalkedParts = Field(default_factory=WalkedParts)
    warnings: list[str] = Field(default_factory=list)


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
