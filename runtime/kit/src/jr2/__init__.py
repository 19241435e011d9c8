"""What a jr2 Instance imports.

A name is loaded when it is first used: the command reads `jr2.names` to print its usage text, and
must not wait for the Machines and their models (design §8).
"""

from __future__ import annotations

import typing
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .built import BuiltMachine, InputRefused
    from .chains import Items, Running
    from .children import Child
    from .config import (
        AllowFrom,
        Config,
        ConfigInvalid,
        ConfigMapKeyRef,
        EnvFrom,
        EnvVar,
        FieldRef,
        Gateway,
        Git,
        GitCommitter,
        GitCredential,
        GitPush,
        GitSign,
        Harness,
        ModelLimits,
        Network,
        Operator,
        PriorityClasses,
        Provider,
        Sandbox,
        Secret,
        SecretKeyRef,
        Size,
        Toleration,
    )
    from .errors import BuildRefused
    from .events import (
        AgentEvent,
        AgentFault,
        Event,
        ExternalEvent,
        InternalEvent,
        Message,
        WorkspaceLost,
    )
    from .handles import Final, History
    from .kernel import EventRefused
    from .machine import Machine
    from .parts.customizing import customize
    from .parts.effect_data import (
        CommandInput,
        CommandResult,
        DispatchInput,
        DispatchResult,
        HttpFileInput,
        HttpInput,
        HttpResult,
        PushInput,
        PushResult,
    )
    from .parts.effects import Command, Dispatch, Http, HttpFile, Push, Target
    from .parts.opening import (
        OPEN,
    )
    from .parts.repos import (
        Binding,
    )
    from .parts.turns import (
        Turn,
    )
    from .parts.workspace_chart import workspace
    from .parts.workspaces import Inside, UserContainer, Workspace, WorkspaceSpec, context
    from .pools import Next, PoolOutput, Source, pool
    from .run_data import Context, Start
    from .states import OutputState, State
    from .tasks import ItemDone, ItemError, Task, TaskError

__all__ = [
    "OPEN",
    "AgentEvent",
    "AgentFault",
    "AllowFrom",
    "Binding",
    "BuildRefused",
    "BuiltMachine",
    "Child",
    "Command",
    "CommandInput",
    "CommandResult",
    "Config",
    "ConfigInvalid",
    "ConfigMapKeyRef",
    "Context",
    "Dispatch",
    "DispatchInput",
    "DispatchResult",
    "EnvFrom",
    "EnvVar",
    "Event",
    "EventRefused",
    "ExternalEvent",
    "FieldRef",
    "Final",
    "Gateway",
    "Git",
    "GitCommitter",
    "GitCredential",
    "GitPush",
    "GitSign",
    "Harness",
    "History",
    "Http",
    "HttpFile",
    "HttpFileInput",
    "HttpInput",
    "HttpResult",
    "InputRefused",
    "Inside",
    "InternalEvent",
    "ItemDone",
    "ItemError",
    "Items",
    "Machine",
    "Message",
    "ModelLimits",
    "Network",
    "Next",
    "Operator",
    "OutputState",
    "PoolOutput",
    "PriorityClasses",
    "Provider",
    "Push",
    "PushInput",
    "PushResult",
    "Running",
    "Sandbox",
    "Secret",
    "SecretKeyRef",
    "Size",
    "Source",
    "Start",
    "State",
    "Target",
    "Task",
    "TaskError",
    "Toleration",
    "Turn",
    "UserContainer",
    "Workspace",
    "WorkspaceLost",
    "WorkspaceSpec",
    "context",
    "customize",
    "pool",
    "workspace",
]

_MODULES: typing.Final = {
    "built": ("BuiltMachine", "InputRefused"),
    "config": (
        "AllowFrom",
        "Config",
        "ConfigInvalid",
        "ConfigMapKeyRef",
        "EnvFrom",
        "EnvVar",
        "FieldRef",
        "Gateway",
        "Git",
        "GitCommitter",
        "GitCredential",
        "GitPush",
        "GitSign",
        "Harness",
        "ModelLimits",
        "Network",
        "Operator",
        "PriorityClasses",
        "Provider",
        "Sandbox",
        "Secret",
        "SecretKeyRef",
        "Size",
        "Toleration",
    ),
    "errors": ("BuildRefused",),
    "events": (
        "AgentEvent",
        "AgentFault",
        "Event",
        "ExternalEvent",
        "InternalEvent",
        "Message",
        "WorkspaceLost",
    ),
    "pools": ("Next", "PoolOutput", "Source", "pool"),
    "handles": ("Final", "History"),
    "chains": ("Items", "Running"),
    "states": ("OutputState", "State"),
    "children": ("Child",),
    "kernel": ("EventRefused",),
    "machine": ("Machine",),
    "parts.effect_data": (
        "CommandInput",
        "CommandResult",
        "DispatchInput",
        "DispatchResult",
        "HttpFileInput",
        "HttpInput",
        "HttpResult",
        "PushInput",
        "PushResult",
    ),
    "parts.effects": ("Command", "Dispatch", "Http", "HttpFile", "Push", "Target"),
    "parts.opening": ("OPEN",),
    "parts.repos": ("Binding",),
    "parts.turns": ("Turn",),
    "parts.customizing": ("customize",),
    "parts.workspace_chart": ("workspace",),
    "parts.workspaces": (
        "Inside",
        "UserContainer",
        "Workspace",
        "WorkspaceSpec",
        "context",
    ),
    "run_data": ("Context", "Start"),
    "tasks": ("ItemDone", "ItemError", "Task", "TaskError"),
}
_HOMES: typing.Final = {name: module for module, held in _MODULES.items() for name in held}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
