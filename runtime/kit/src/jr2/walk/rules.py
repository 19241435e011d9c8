"""The rules that a registered Machine must meet, with those that it composes, in their order.

The host and the Orchestrator judge by the same functions: an Open part that nobody bound, a Size
that leaves the Harness container too little, a part that has no place to run, a secret that the
config does not declare, and a Workflow that is started and is not there. What needs more than
Machines and config is the host's (`jr2_infra.check`).

Source: spec/authoring.md §5 items 9 and 10, design §3.1, seed 000 (Rules), seed 003 (Rules).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .. import quantity
from ..built import BuiltMachine
from ..chart import Chart, Node
from ..config import Config, Size
from ..parts import open_parts, sandbox_rules
from ..parts.carried import visits
from ..parts.effects import Dispatch, secret_of
from ..parts.open_parts import customize_line, place
from .load import LoadedWorkflow
from .problems import Problem, Rule

Machine = BuiltMachine[Any, Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What of a config Machines are judged by; no value of it.

    Args:
        resources: `sandbox.resources`.
        secrets: the names in `secrets`.
    """

    resources: Size | None = None
    secrets: frozenset[str] = frozenset()

    @classmethod
    def of(cls, config: Config) -> Declared:
        """Return what a config declares."""
        names = frozenset(secret.name for secret in config.secrets)
        return cls(resources=config.sandbox.resources, secrets=names)


def problems(
    workflows: Sequence[LoadedWorkflow],
    declared: Declared,
    known: Collection[str] | None = None,
) -> list[Problem]:
    """Return every rule that is not met: rule by rule, and in each by Workflow.

    Args:
        workflows: those that loaded.
        declared: what the config says.
        known: the names of all Workflows of the folder, of those that did not load too.
    """
    there = known if known is not None else [one.name for one in workflows]
    found: list[Problem] = []

    def judge(rule: Rule, refusals: Callable[[str, Machine], Iterable[str]]) -> None:
        for one in workflows:
            for message in refusals(one.name, one.machine):
                found.append(Problem(prefix="refusing: ", message=message, rule=rule))

    judge("open", open_parts.refusals)
    size = declared.resources
    judge("size", lambda name, machine: sandbox_rules.size_refusals(name, machine, size))
    judge("place", sandbox_rules.placement_refusals)
    judge("effect", lambda name, machine: _undeclared(name, machine, declared.secrets))
    judge("effect", lambda name, machine: _unknown_workflows(name, machine, there))
    return found


def warnings(workflow: LoadedWorkflow) -> list[str]:
    """Return what is legal in a Machine and still not what was meant, without the prefix."""
    found: list[str] = []
    for visit in visits(workflow.machine):
        where = f'workflow "{workflow.name}"{place(visit.path)}'
        for node, slot in _unrouted(visit.machine.chart):
            found.append(
                f'{where}: state "{node.id}" runs a Turn of Agent "{slot}", and neither it nor a '
                "state around it handles agent.fault: a Turn that cannot be saved leaves the run "
                "waiting there — add .on(AgentFault, to=…)"
            )
        sandbox = visit.machine.sandbox
        for who, fields in () if sandbox is None else sandbox.resources:
            part = quantity.part_of_a_byte(fields["memory"]) if "memory" in fields else None
            if part is not None:
                found.append(f"{where}: resources.memory of {who} {part}")
    return found


def _undeclared(workflow: str, machine: Machine, declared: frozenset[str]) -> Iterator[str]:
    for visit in visits(machine):
        for slot, effect in visit.machine.effects.items():
            secret = secret_of(effect)
            if secret is None or secret in declared:
                continue
            text = (
                f'workflow "{workflow}": Effect "{slot}"{place(visit.path)} names the secret '
                f'"{secret}", which jr2_config.py does not declare — add it there: '
                f'secrets=[…, Secret("{secret}", value=os.environ.get("{secret}"))]'
            )
            if not visit.inline and hasattr(effect, "secret"):
                line = customize_line({"effects": {slot: {"secret": "<name>"}}}, visit.path)
                text += f", or name another one where the Machine is registered: machine = {line}"
            yield f"{text}  (ADR-0059)"


def _unknown_workflows(workflow: str, machine: Machine, known: Collection[str]) -> Iterator[str]:
    """Refuse the start of a run of a Workflow that this Instance does not have."""
    for visit in visits(machine):
        for slot, effect in visit.machine.effects.items():
            if not isinstance(effect, Dispatch) or effect.target or effect.workflow in known:
                continue
            text = (
                f'workflow "{workflow}": Effect "{slot}"{place(visit.path)} starts a run of the '
                f'Workflow "{effect.workflow}", which this folder does not have '
                f"(it has: {', '.join(known)}) — name one of them"
            )
            if not visit.inline:
                line = customize_line({"effects": {slot: {"workflow": "<workflow>"}}}, visit.path)
                text += f", as where the Machine is registered: machine = {line}"
            yield text


def _unrouted(chart: Chart) -> Iterator[tuple[Node, str]]:
    """Yield each state with a Turn whose fault nothing hears, and the Turn's Agent."""
    for node in chart.nodes:
        around = (node, *(chart.nodes[index] for index in chart.above[node.index]))
        heard = {transition.event for one in around for transition in one.transitions}
        for invocation in node.invocations:
            names = {invocation.failed, "agent.fault", "agent.*", "*"}
            if invocation.kind == "turn" and not names & heard:
                yield node, invocation.slot
