"""One step of a statechart, as a pure function: snapshot and event in, snapshot and commands out.

There is no clock, no I/O and no task here, and nothing random: the same snapshot and event give the
same step in any process. What has to happen outside is returned as commands, each with a key that
is the same when the step is made again after a crash. Whatever comes back for a key that is not
live any more is ignored, so a late answer never reaches a state that did not ask.

The algorithm is that of W3C SCXML (`macrostep`, `plans`); what states have running is data too
(`running`), child Machines within the same snapshot among it. A pick is judged by `picks`.

An event that is addressed to a state (of a Gate, of a pick, of an invocation) is heard by the
active states in it and by those around it, never by another region of a parallel state.

User code runs here: guards, actions and mappers. When it raises, its Machine is over with a text;
a child's text is the failure of its invocation, and the run's own ends the run with the status
`error`. It stays where it was before the step, and what was live is stopped.

Source: design §4.1 and §4.3, spec/runtime.md §1.7 and §1.9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import accepted, host_wire
from ..chart import Chart, Invocation, Timer
from ..events import AgentFault, Event, event_name
from ..host_wire import Command, PickReceipt
from ..run_data import Start
from ..snapshot import Snapshot
from ..tasks import TaskError, reason
from .faults import USER_ERRORS, Fault
from .keys import BETWEEN, gate_key, locate
from .outbox import MAX_MICROSTEPS, Outbox, stop_command
from .picks import allowed, find, may_move
from .refused import EventRefused
from .running import MachineStep, live_keys, open_addresses

__all__ = [
    "MAX_MICROSTEPS",
    "EventRefused",
    "Step",
    "allowed",
    "cancel",
    "deliver",
    "fault",
    "is_live",
    "may_move",
    "start",
    "step",
    "stop_live",
]


class Step(NamedTuple):
    """The outcome of one step."""

    snapshot: Snapshot
    commands: tuple[Command, ...] = ()
    """In the order in which they are to be acted on: what stops, what is told, what starts."""
    receipt: PickReceipt | None = None
    """Of a pick."""


def start(chart: Chart, first: Start[Any]) -> Step:
    """Make a run: its first context, and the initial states.

    Never raises for what user code does: a run whose start fails has the status `error`.
    """
    blank = Snapshot(
        machine=chart.id, run_id=first.run_id, status="active", entries={}, entry_count=0
    )

    def begin(machine: MachineStep) -> bool:
        machine.begin(first)
        return True

    return _advance(chart, blank, (), begin)


def step(chart: Chart, snapshot: Snapshot, event: host_wire.StepEvent) -> Step:
    """Give one event to a run.

    An event for a key that is not live, and one that no transition takes, gives the same snapshot
    object back and no commands.

    Raises:
        EventRefused: an event for a Gate that is not open (404), was entered again (412), does not
            accept it, or whose payload does not fit (400); a pick for a Turn that is over (404),
            that the state does not take or whose payload does not fit (400).
    """
    if isinstance(event, host_wire.GateEvent):
        return _gate_event(chart, snapshot, event)
    if isinstance(event, host_wire.PickEvent):
        return _pick(chart, snapshot, event)
    if snapshot.status != "active":
        return Step(snapshot=snapshot)
    *chain, key = event.key.split(BETWEEN)
    return _advance(
        chart, snapshot, chain, lambda machine: _hear_end(machine, key, event), heard=event.key
    )


def deliver(
    chart: Chart, snapshot: Snapshot, name: str, data: Any = None, to: Sequence[str] = ()
) -> Step:
    """Give a Machine of a run an event by its name, which each of its active states may take.

    Args:
        chart: the run's.
        snapshot: where it stands.
        name: the event.
        data: what a transition's functions get second.
        to: the keys of the child Machines on the way; empty: the root.
    """
    if snapshot.status != "active":
        return Step(snapshot=snapshot)
    return _advance(chart, snapshot, to, lambda machine: machine.hear(name, data))


def fault(chart: Chart, snapshot: Snapshot, text: str) -> Step:
    """End a run with the status `error`; it stays where it was, and what is live is stopped."""
    return Step(
        snapshot=snapshot._replace(status="error", fault=text, gates={}),
        commands=stop_live(chart, snapshot),
    )


def cancel(chart: Chart, snapshot: Snapshot) -> Step:
    """End a run because somebody wants it to: no user code runs, and what is live is stopped.

    A run that is over already is given back as it is.
    """
    if snapshot.status != "active":
        return Step(snapshot=snapshot)
    return Step(
        snapshot=snapshot._replace(status="cancelled", gates={}),
        commands=stop_live(chart, snapshot),
    )


def stop_live(chart: Chart, snapshot: Snapshot) -> tuple[Command, ...]:
    """Return the commands that stop everything live in a run, innermost state first."""
    return tuple(stop_command(kind, key) for kind, key in live_keys(chart, snapshot))


def is_live(chart: Chart, snapshot: Snapshot, key: str) -> bool:
    """Whether what a command started is still wanted, and has not ended."""
    found = find(chart, snapshot, key)
    return found is not None and key.rpartition(BETWEEN)[2] not in found.snapshot.ended


def _advance(
    chart: Chart,
    snapshot: Snapshot,
    chain: Sequence[str],
    act: Callable[[MachineStep], bool],
    heard: str = "",
) -> Step:
    """Have a Machine of the run do something, and come to rest.

    Args:
        chart: the run's.
        snapshot: where it stands.
        chain: the keys of the child Machines on the way.
        act: returns whether anything changed.
        heard: the key of what has ended, which is not stopped any more.
    """
    outbox = Outbox(open_addresses(snapshot), heard)
    machine = MachineStep(chart, snapshot, outbox)
    try:
        if not machine.receive(chain, act):
            return Step(snapshot=snapshot)
        return Step(snapshot=machine.settle(), commands=outbox.commands())
    except Fault as broken:
        if heard and not chain:
            snapshot = snapshot._replace(ended=snapshot.ended | {heard})
        over = fault(chart, snapshot, str(broken))
        stops = tuple(one for one in over.commands if getattr(one, "key", "") != heard)
        return over._replace(commands=stops)


def _hear_end(machine: MachineStep, key: str, event: Any) -> bool:
    """Hear that something of a Machine has come to an end; `False` when it is not live."""
    if key in machine.ended:
        return False
    found = locate(machine.chart, machine.active, key)
    if found is None:
        return False
    node, what = found.node, found.what
    # What came is never heard twice, also when no transition takes it.
    heard = machine.ended | {key}
    if isinstance(what, Timer):
        if not isinstance(event, host_wire.TimerFired):
            return False
        machine.ended = heard
        machine.hear(what.event, None, node.index)
        return True
    if what.kind == "turn":
        if isinstance(event, host_wire.TurnFaulted):
            machine.ended = heard
            lost = AgentFault(instance_id=event.instance_id, reason=event.reason)
            machine.hear(what.failed, lost, node.index)
            return True
        if isinstance(event, host_wire.TurnEnded):
            machine.ended = heard
            machine.has_ended(node, what, None)
            return True
        return False
    if what.kind in ("child", "pool"):
        return False
    if isinstance(event, host_wire.TaskFailed):
        machine.ended = heard
        machine.has_failed(node, what, TaskError(reason=event.reason))
        return True
    if isinstance(event, host_wire.TaskDone):
        machine.ended = heard
        try:
            output = what.decode_output(event.output)
        except USER_ERRORS as bad:
            machine.has_failed(node, what, TaskError(reason=f"its output: {reason(bad)}"))
        else:
            machine.has_ended(node, what, output)
        return True
    return False


def _gate_event(chart: Chart, snapshot: Snapshot, event: host_wire.GateEvent) -> Step:
    """Give an open Gate an event that it accepts."""
    is_active = snapshot.status == "active"
    opened = _open_gate(chart, snapshot, event.gate, "") if is_active else None
    if opened is None:
        gates = (", ".join(_addresses(snapshot)) if is_active else "") or "none"
        raise EventRefused(404, f'no open Gate "{event.gate}" (open: {gates})')
    prefix, inner, held, index = opened
    node = inner.nodes[index]
    assert node.gate is not None
    current = gate_key(prefix, node, held.entries[index])
    if event.id is not None and event.id != current:
        raise EventRefused(
            412,
            f'Gate "{event.gate}" was entered again: the event answers {event.id!r}, and '
            f"{current!r} is open",
        )
    model = node.gate.by_name.get(event.name)
    if model is None:
        names = ", ".join(event_name(one) for one in node.gate.accepts)
        raise EventRefused(
            400, f'Gate "{event.gate}" does not accept "{event.name}" (it accepts: {names})'
        )
    data = _payload(model, event.name, event.payload)
    chain = prefix.split(BETWEEN)[:-1]
    return _advance(chart, snapshot, chain, lambda machine: machine.hear(event.name, data, index))


def _open_gate(
    chart: Chart, snapshot: Snapshot, address: str, prefix: str
) -> tuple[str, Chart, Snapshot, int] | None:
    """Return where the Gate with an address is open: prefix, chart, snapshot and node."""
    for index, opened in snapshot.gates.items():
        if opened.gate == address:
            return prefix, chart, snapshot, index
    for key, child in snapshot.children.items():
        found = locate(chart, snapshot.entries, key)
        assert found is not None
        assert isinstance(found.what, Invocation)
        inner = chart.children[found.what.slot].chart
        at = _open_gate(inner, child, address, f"{prefix}{key}{BETWEEN}")
        if at is not None:
            return at
    return None


def _addresses(snapshot: Snapshot) -> list[str]:
    """Return the addresses of the open Gates, those of the run itself first."""
    found = [opened.gate for opened in snapshot.gates.values()]
    for child in snapshot.children.values():
        found += _addresses(child)
    return found


def _pick(chart: Chart, snapshot: Snapshot, event: host_wire.PickEvent) -> Step:
    """Deliver an Agent's pick to the state that asked for the Turn."""
    found = find(chart, snapshot, event.key)
    if found is None or not is_live(chart, snapshot, event.key) or found.invocation.kind != "turn":
        raise EventRefused(404, f'no Turn waits for the pick "{event.name}": it is over')
    node, invocation = found.node, found.invocation
    model = _named(invocation.picks, event.name)
    if model is None:
        names = ", ".join(event_name(one) for one in invocation.picks) or "none"
        raise EventRefused(
            400,
            f'state "{node.id}" does not take the pick "{event.name}" of Agent '
            f'"{invocation.slot}" (it takes: {names})',
        )
    data = _payload(model, event.name, event.payload)
    moved: list[bool] = []

    def hear(machine: MachineStep) -> bool:
        moved.append(machine.hear(event.name, data, node.index))
        return moved[0]

    *chain, _ = event.key.split(BETWEEN)
    made = _advance(chart, snapshot, chain, hear)
    complete = not is_live(chart, made.snapshot, event.key)
    return made._replace(
        receipt=PickReceipt(
            event=event.name,
            moved=moved == [True],
            turn_complete=complete,
            allowed=[] if complete else list(allowed(chart, made.snapshot, event.key)),
        ),
    )


def _named(events: tuple[type[Event], ...], name: str) -> type[Event] | None:
    return next((event for event in events if event_name(event) == name), None)


def _payload(model: type[Event], name: str, payload: Any) -> Event:
    try:
        return accepted.parse(model, payload)
    except accepted.Unfit as unfit:
        raise EventRefused(
            400,
            f'event "{name}" does not fit: {unfit} — it takes {accepted.shape_line(model)}',
        ) from None
