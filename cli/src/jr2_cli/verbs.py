"""The verbs of `jr2`, once: what the usage text lists and where each verb's code stands.

Nothing is imported here but the standard library, so that `jr2 --help` starts fast; the code of a
verb is imported when the verb runs.

Source: spec/converge.md §2.5, design §8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """One word after `jr2`.

    Args:
        name: the word.
        group: the heading of the usage text that it stands under.
        summary: one line, no full stop.
        code: the import path of its function or of its cyclopts app.
        examples: command lines that work as they stand.
        streams: whether `--json` streams its steps as events on stdout.
        takes_paths: whether its arguments are paths, which may hold any byte.
        loads_env_file: whether it reads `.env` itself, at a later place in its order of lines.
    """

    name: str
    group: str
    summary: str
    code: str
    examples: tuple[str, ...] = ()
    streams: bool = False
    takes_paths: bool = False
    loads_env_file: bool = False


_INSTANCE: Final = "An Instance folder"
_RUNS: Final = "Runs"
_MACHINE: Final = "This machine"

VERBS: Final = (
    Verb(
        name="init",
        group=_INSTANCE,
        summary="Write a new Instance folder",
        code="jr2_cli.commands.init:init",
        examples=("jr2 init my-instance", "jr2 init . --name my-instance"),
        takes_paths=True,
    ),
    Verb(
        name="check",
        group=_INSTANCE,
        summary="Check the config, the types and the Machines, with no cluster",
        code="jr2_cli.commands.check:check",
        examples=("jr2 check", "jr2 check --json"),
        streams=True,
        loads_env_file=True,
    ),
    Verb(
        name="chart",
        group=_INSTANCE,
        summary="Draw each Machine into charts/<workflow>.mmd",
        code="jr2_cli.commands.chart:chart",
        examples=("jr2 chart", "jr2 chart ping"),
        loads_env_file=True,
    ),
    Verb(
        name="up",
        group=_INSTANCE,
        summary="Make the cluster agree with the Instance folder",
        code="jr2_cli.commands.up:up",
        examples=("jr2 up", "jr2 up --context kind-jr2 -n staging", "jr2 up --yes --json"),
        streams=True,
        loads_env_file=True,
    ),
    Verb(
        name="down",
        group=_INSTANCE,
        summary="Remove the Instance from the cluster",
        code="jr2_cli.commands.down:down",
        examples=("jr2 down", "jr2 down --all --yes"),
        streams=True,
    ),
    Verb(
        name="run",
        group=_RUNS,
        summary="Start a run of a Workflow, and follow it until it settles",
        code="jr2_cli.commands.run:run",
        examples=(
            """jr2 run ping --input '{"message":"hi"}'""",
            "jr2 run ping --input @input.json",
            "jr2 run ping --detach",
        ),
    ),
    Verb(
        name="runs",
        group=_RUNS,
        summary="List the live runs",
        code="jr2_cli.commands.runs:runs",
        examples=("jr2 runs",),
    ),
    Verb(
        name="status",
        group=_RUNS,
        summary="Show a run, or with no run the Assemblies that the Instance holds",
        code="jr2_cli.commands.status:status",
        examples=("jr2 status", "jr2 status 3f2a", "jr2 status --json"),
    ),
    Verb(
        name="logs",
        group=_RUNS,
        summary="Show where a run stands, or follow it until it settles",
        code="jr2_cli.commands.logs:logs",
        examples=("jr2 logs 3f2a", "jr2 logs 3f2a -f"),
    ),
    Verb(
        name="send",
        group=_RUNS,
        summary="Answer a Gate of a run, or cancel the run",
        code="jr2_cli.commands.send:send",
        examples=(
            """jr2 send 3f2a --gate review --event approve --input '{"by":"sam"}'""",
            "jr2 send 3f2a --event CANCEL",
        ),
    ),
    Verb(
        name="tools",
        group=_MACHINE,
        summary="Install, list and prune the programs that jr2 uses",
        code="jr2_cli.tools.command:app",
        examples=("jr2 tools install", "jr2 tools list", "jr2 tools prune"),
    ),
    Verb(
        name="cluster",
        group=_MACHINE,
        summary="Create, start, stop and delete the local cluster",
        code="jr2_cli.local_cluster.command:app",
        examples=("jr2 cluster create", "jr2 cluster status"),
    ),
    Verb(
        name="version",
        group=_MACHINE,
        summary="Show the versions of the command, the Kit and the cluster",
        code="jr2_cli.commands.version:version",
        examples=("jr2 version", "jr2 version --local", "jr2 version --json"),
    ),
)


def find(name: str) -> Verb | None:
    """Return the verb of that name."""
    return next((verb for verb in VERBS if verb.name == name), None)


def usage() -> str:
    """Return the usage text of `jr2`."""
    width = max(len(verb.name) for verb in VERBS)
    lines = [
        "jr2 — durable Workflows and their Agents, in a Kubernetes cluster",
        "",
        "Usage: jr2 <command> [options]",
    ]
    for group in dict.fromkeys(verb.group for verb in VERBS):
        lines += ["", f"{group}:"]
        lines += [f"  {v.name.ljust(width)}  {v.summary}" for v in VERBS if v.group == group]
    return "\n".join(
        [
            *lines,
            "",
            "Options:",
            "  -h, --help             show this text; `jr2 <command> --help` shows a command's own",
            "  --version              the same as `jr2 version`",
            "  --install-completion   complete the commands in bash, zsh or fish",
            "",
            "Examples:",
            "  jr2 init my-instance",
            "  jr2 up",
            """  jr2 run ping --input '{"message":"hi"}'""",
            "",
            "Results go to stdout, everything else to stderr.",
            "Exit codes: 0 done, 1 refused or failed, 2 called wrongly, 130 interrupted.",
        ]
    )
