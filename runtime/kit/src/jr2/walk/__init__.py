"""The walk: load an Instance folder, and say what its config and its Workflows are.

It runs in the Instance's interpreter in two places and gives one answer: on the host, in a child
process of `jr2 check` and `jr2 up`, and in the cluster, in the process that serves an Assembly.
Everything that a folder can get wrong becomes a `Problem` with the text that a person reads; a
fault of user code never ends the walk.

- `modules`: how the folder's modules are found;
- `load`: the config and the Workflows as objects;
- `problems`: the words for what does not load;
- `rules`: what a Machine must meet, in the order in which it is said;
- `carries`: what a Machine carries;
- `reports`: what another process is told, as plain data;
- `report`: the walk as a program.

Source: spec/authoring.md §2.1 and §3.1, design §3.1 and §5.1.
"""

from . import rules
from .load import (
    LoadedConfig,
    LoadedWorkflow,
    LoadedWorkflows,
    load_config,
    load_workflows,
    workflow_files,
)
from .problems import RULES, Problem
from .report import describe, main, report_config, report_workflows
from .reports import (
    ConfigReport,
    LoadingReport,
    WalkedAgent,
    WalkedEffect,
    WalkedParts,
    WalkedPush,
    WalkedRepo,
    WalkedSandbox,
    WalkedWorkflow,
    WorkflowsReport,
)

__all__ = [
    "RULES",
    "ConfigReport",
    "LoadedConfig",
    "LoadedWorkflow",
    "LoadedWorkflows",
    "LoadingReport",
    "Problem",
    "WalkedAgent",
    "WalkedEffect",
    "WalkedParts",
    "WalkedPush",
    "WalkedRepo",
    "WalkedSandbox",
    "WalkedWorkflow",
    "WorkflowsReport",
    "describe",
    "load_config",
    "load_workflows",
    "main",
    "report_config",
    "report_workflows",
    "rules",
    "workflow_files",
]
