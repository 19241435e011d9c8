"""One step of a statechart, as a pure function: snapshot and event in, snapshot and commands out.

There is no clock, no I/O and no task here, and nothing random: the same snapshot and event give the
same step in any process. What has to happen outside is returned as commands, each with a key that
is the same when the step is made again after a crash. Whatever comes back for a key that is not
live any more is ignored, so a late answer never reaches a state that did not ask.

The algorithm is that of W3C SCXML: the innermost state decides, then document order; states are
exited innermost first and entered outermost first; after each event the eventless transitions and
the done events run to the end. What a state invokes starts when the step has come to rest, so a
state that is passed through starts nothing.

User code runs here: guards, assigns and mappers. When it raises, the run is over with the status
`error` and a text; it stays where it was before the step, and what was live is stopped.

Source: design §4.1 and §4.3, spec/runtime.md §1.7 and §1.9.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final, Literal, NoReturn

from pydantic import JsonValue
from pydantic_core import to_jsonable_python

from . import accepted, host_wire
from .chart import EVENTLESS, ROOT, Chart, Invocation, Node, Plan, Timer, Transition
from .errors import Refusal
from .events import Message, event_name, message_wire
from .host_wire import ArmTimer, Command, DisarmTimer, Emit, StartTask, StopTask
from .run_data import Context, Start
from .snapshot import OpenGate, Snapshot, json_text, read_context, write_context
from .tasks import TaskError, reason

MAX_MICROSTEPS: Final = 1_000
"""How many transitions one step may take before it is said not to end."""

Code = Literal[400, 404, 409, 412]
_User = (Exception, SystemExit)
"""What user code may raise; an interrupt of the process is not its own."""


class EventRefused(Refusal):
    """An event or an input is not for this run now; nothing changed.

    Args:
        code: the HTTP status that fits.
        message: says what would have been accepted.
    """

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code: Code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The outcome of one step."""

    snapshot: Snapshot
    commands: tuple[Command, ...] = ()
    """In the order in which they are to be acted on: what stops, what is told, what starts."""


class _Fault(Exception):
    """User code failed inside a step; the text is the run's fault."""


def start(chart: Chart, first: Start[Any]) -> Step:
    """Make a run: its first context, and the initial states.

    Never raises for what user code does: a run whose start fails has the status `error`.
    """
    blank = Snapshot(machine=chart.id, run_id=first.run_id, status="active", entries={}, count=0)
    macrostep = _Macrostep(chart, blank)
    try:
        macrostep.begin(first)
        return macrostep.settle()
    except _Fault as broken:
        return fault(chart, blank, str(broken))


def step(chart: Chart, snapshot: Snapshot, event: host_wire.StepEvent) -> Step:
    """Give one event to a run.

    An event for a key that is not live, and one that no transition takes, gives the same snapshot
    object back and no commands.

    Raises:
        EventRefused: an event for a Gate that is not open (404), was entered again (412), does not
            accept it, or whose payload does not fit (400).
    """
    if isinstance(event, host_wire.GateEvent):
        name, data = _read_gate_event(chart, snapshot, event)
        return _advance(chart, snapshot, name, data)
    if snapshot.status != "active" or event.key in snapshot.ended:
        return Step(snapshot=snapshot)
    found = _locate(chart, snapshot, event.key)
    # What came is never heard twice, also when no transition takes it.
    heard = replace(snapshot, ended=snapshot.ended | {event.key})
    if isinstance(event, host_wire.TimerFired):
        if isinstance(found, Timer):
            return _advance(chart, heard, found.event, None)
    elif isinstance(found, Invocation):
        if isinstance(event, host_wire.TaskFailed):
            return _task_failed(chart, heard, found, event.reason)
        try:
            output = found.decode_output(event.output)
        except _User as bad:
            return _task_failed(chart, heard, found, f"its output: {reason(bad)}")
        return _advance(chart, heard, found.done, output)
    return Step(snapshot=snapshot)


def fault(chart: Chart, snapshot: Snapshot, text: str) -> Step:
    """End a run with the status `error`; it stays where it was, and what is live is stopped."""
    return Step(
        snapshot=replace(snapshot, status="error", fault=text, gates={}),
        commands=stop_live(chart, snapshot),
    )


def stop_live(chart: Chart, snapshot: Snapshot) -> tuple[Command, ...]:
    """Return the commands that stop everything live in a run, innermost state first."""
    if snapshot.status != "active":
        return ()
    return tuple(
        command
        for index in sorted(snapshot.entries, reverse=True)
        for command in _stops(chart.nodes[index], snapshot.entries[index], snapshot.ended)
    )


def gate_id(node: Node, entry: int) -> str:
    """Return the id of one entry into a Gate (`If-Gate`)."""
    return f"{node.id}#{entry}"


def _task_key(node: Node, entry: int, invocation: Invocation) -> str:
    return f"{node.id}#{entry}:task.{invocation.id}"


def _timer_key(node: Node, entry: int, timer: Timer) -> str:
    return f"{node.id}#{entry}:after.{timer.id}"


def _locate(chart: Chart, snapshot: Snapshot, key: str) -> Invocation | Timer | None:
    """Return what a key stands for if its state is still in the entry that made the key."""
    at, _, rest = key.partition("#")
    number, _, what = rest.partition(":")
    node = chart.find(at)
    if node is None or str(snapshot.entries.get(node.index)) != number:
        return None
    kind, _, name = what.partition(".")
    if kind == "task":
        return next((one for one in node.invocations if one.id == name), None)
    if kind == "after":
        return next((one for one in node.timers if one.id == name), None)
    return None


def _stops(node: Node, entry: int, ended: frozenset[str] | set[str]) -> list[Command]:
    stops: list[Command] = []
    for invocation in node.invocations:
        key = _task_key(node, entry, invocation)
        if key not in ended:
            stops.append(StopTask(key=key))
    for timer in node.timers:
        key = _timer_key(node, entry, timer)
        if key not in ended:
            stops.append(DisarmTimer(key=key))
    return stops


def _read_gate_event(
    chart: Chart, snapshot: Snapshot, event: host_wire.GateEvent
) -> tuple[str, Any]:
    """Return the name and the parsed payload of an event that an open Gate accepts."""
    for index, opened in snapshot.gates.items():
        if opened.gate != event.gate:
            continue
        node = chart.nodes[index]
        assert node.gate is not None
        current = gate_id(node, snapshot.entries[index])
        if event.id is not None and event.id != current:
            raise EventRefused(
                412,
                f'Gate "{event.gate}" was entered again: the event answers {event.id!r}, and '
                f"{current!r} is open",
            )
        names = ", ".join(event_name(one) for one in node.gate.accepts)
        for model in node.gate.accepts:
            if event_name(model) == event.name:
                try:
                    return event.name, accepted.parse(model, event.payload)
                except accepted.Unfit as unfit:
                    raise EventRefused(
                        400,
                        f'event "{event.name}" does not fit: {unfit} — it takes '
                        f"{accepted.shape_line(model)}",
                    ) from None
        raise EventRefused(
            400, f'Gate "{event.gate}" does not accept "{event.name}" (it accepts: {names})'
        )
    gates = ", ".join(opened.gate for opened in snapshot.gates.values()) or "none"
    raise EventRefused(404, f'no open Gate "{event.gate}" (open: {gates})')


def _task_failed(chart: Chart, snapshot: Snapshot, invocation: Invocation, why: str) -> Step:
    """Take the route of a failed task; a run whose Machine has none is over."""
    leaves = _leaves(chart, snapshot.entries)
    if not any(chart.candidates(leaf, invocation.failed) for leaf in leaves):
        return fault(
            chart, snapshot, f'task "{invocation.slot}" failed and no .failed(…) takes it: {why}'
        )
    return _advance(chart, snapshot, invocation.failed, TaskError(reason=why))


def _leaves(chart: Chart, active: Mapping[int, int]) -> list[int]:
    return [index for index in sorted(active) if not chart.nodes[index].children]


def _advance(chart: Chart, snapshot: Snapshot, name: str, data: Any) -> Step:
    """Run one event to rest."""
    macrostep = _Macrostep(chart, snapshot)
    try:
        if not macrostep.hear(name, data):
            return Step(snapshot=snapshot)
        return macrostep.settle()
    except _Fault as broken:
        return fault(chart, snapshot, str(broken))


class _Macrostep:
    """The working state of one step; nothing of it outlives the step but what `settle` returns."""

    def __init__(self, chart: Chart, snapshot: Snapshot) -> None:
        self.chart = chart
        self.before = snapshot
        self.active = dict(snapshot.entries)
        self.count = snapshot.count
        self.ended = set(snapshot.ended)
        self.gates = dict(snapshot.gates)
        self.context: Any = snapshot.context
        self.entered: set[int] = set()
        self.internal: deque[tuple[str, Any]] = deque()
        self.stops: list[Command] = []
        self.emits: list[Command] = []
        self.taken = 0
        self.assigned = False
        self.output: str | None = None
        """JSON text once a final state below the root is entered."""

    # --- the parts of SCXML's main loop -----------------------------------------------------------
    def begin(self, first: Start[Any]) -> None:
        """Make the first context and enter the initial states."""
        try:
            context = self.chart.start(first)
        except _User as error:
            _broke("the start", error)
        self.context = self._checked(context, "the start")
        self.assigned = True
        for index in self.chart.initial().enters:
            self._enter(index)
        self._run_to_rest()

    def hear(self, name: str, data: Any) -> bool:
        """Take one event from outside; `False` when no transition takes it."""
        chosen = self._select(name, data)
        if not chosen:
            return False
        self._take(chosen, data)
        self._run_to_rest()
        return True

    def _run_to_rest(self) -> None:
        while self.output is None:
            chosen, data = self._select(EVENTLESS, None), None
            if not chosen:
                if not self.internal:
                    return
                name, data = self.internal.popleft()
                chosen = self._select(name, data)
            self._take(chosen, data)

    def _select(self, name: str, data: Any) -> list[Transition]:
        """Return the transitions that an event enables: for each active leaf the innermost."""
        chosen: dict[int, Transition] = {}
        for leaf in _leaves(self.chart, self.active):
            for transition in self.chart.candidates(leaf, name):
                if self._allows(transition, data):
                    chosen[id(transition)] = transition
                    break
        return list(chosen.values())

    def _take(self, chosen: list[Transition], data: Any) -> None:
        """Make one microstep: exit, act, enter."""
        if not chosen:
            return
        self.taken += 1
        if self.taken > MAX_MICROSTEPS:
            raise _Fault(
                f'the transitions of state "{self.chart.nodes[chosen[0].source].id}" do not '
                f"come to rest: more than {MAX_MICROSTEPS} in one step"
            )
        plans = [self.chart.plan(transition) for transition in chosen]
        for plan in plans:
            self._exit(plan)
        for transition in chosen:
            self._act(transition, data)
        for plan in plans:
            for index in plan.enters:
                self._enter(index)

    def _exit(self, plan: Plan) -> None:
        if plan.domain is None:
            return
        for index in sorted(self.active, reverse=True):
            if not self.chart.is_below(index, plan.domain):
                continue
            entry = self.active.pop(index)
            node = self.chart.nodes[index]
            if index in self.entered:
                self.entered.discard(index)
                continue
            self.stops.extend(_stops(node, entry, self.ended))
            self.gates.pop(index, None)
            mark = f"{node.id}#{entry}:"
            self.ended = {key for key in self.ended if not key.startswith(mark)}

    def _enter(self, index: int) -> None:
        node = self.chart.nodes[index]
        self.count += 1
        self.active[index] = self.count
        self.entered.add(index)
        if node.kind != "final":
            return
        try:
            output = None if node.output is None else node.output(self.context)
            if node.parent == ROOT:
                encode = self.chart.encode_output
                self.output = json_text(None if encode is None else encode(output))
        except _User as error:
            _broke(f'the output of final state "{node.id}"', error)
        if node.parent is not None and node.parent != ROOT:
            self.internal.append((f"done.state.{self.chart.nodes[node.parent].id}", output))

    # --- user code --------------------------------------------------------------------------------
    def _allows(self, transition: Transition, data: Any) -> bool:
        if transition.guard is None:
            return True
        try:
            answer = transition.guard(self.context, data)
        except _User as error:
            _broke(f"the guard of {self._where(transition)}", error)
        if answer is not True and answer is not False:
            raise _Fault(
                f"the guard of {self._where(transition)} returned {type(answer).__name__}, not bool"
            )
        return answer

    def _act(self, transition: Transition, data: Any) -> None:
        before = self.context
        if transition.assign is not None:
            what = f"the assign of {self._where(transition)}"
            try:
                context = transition.assign(before, data)
            except _User as error:
                _broke(what, error)
            self.context = self._checked(context, what)
            # Also when it is the same object: an author may have changed a list inside it.
            self.assigned = True
        if transition.emit is not None:
            try:
                message = transition.emit(self.context, data)
                if not isinstance(message, Message):
                    raise TypeError(f"returned {type(message).__name__}, not a Message")
                kind, payload = message_wire(message)
                self.emits.append(Emit(type=kind, payload=payload))
            except _User as error:
                _broke(f"the emit of {self._where(transition)}", error)

    def _checked(self, context: Any, what: str) -> Context:
        if type(context) is not self.chart.context:
            raise _Fault(
                f"{what} returned {type(context).__name__}, not {self.chart.context.__name__}"
            )
        checked: Context = context
        return checked

    def _where(self, transition: Transition) -> str:
        source = self.chart.nodes[transition.source]
        place = f'state "{source.id}"' if source.path else "the root"
        return f'{place} on "{transition.event}"' if transition.event else f"{place} (eventless)"

    # --- the end of the step ----------------------------------------------------------------------
    def settle(self) -> Step:
        """Return the step: what was entered starts now, in document order."""
        starts: list[Command] = []
        if self.output is None:
            for index in sorted(self.entered):
                self._open(self.chart.nodes[index], self.active[index], starts)
        context_json, context = self.before.context_json, self.before.context
        if self.assigned:
            context_json, context = self._written()
        after = Snapshot(
            machine=self.chart.id,
            run_id=self.before.run_id,
            status="active" if self.output is None else "done",
            entries={index: self.active[index] for index in sorted(self.active)},
            count=self.count,
            ended=frozenset(self.ended),
            gates=self.gates,
            context_json=context_json,
            context=context,
            output_json="null" if self.output is None else self.output,
        )
        return Step(snapshot=after, commands=(*self.stops, *self.emits, *starts))

    def _written(self) -> tuple[str, Context]:
        """Return the context as JSON, and as it will be read from it by every later step."""
        name = self.chart.context.__name__
        try:
            text = write_context(self.context)
            back = read_context(self.chart, text)
        except _User as error:
            _broke(f"the context {name}, written as JSON and read back,", error)
        if back != self.context:
            changed = [
                key for key, value in self.context.__dict__.items() if back.__dict__[key] != value
            ]
            raise _Fault(
                f"the context {name} does not come back from JSON as it was: {', '.join(changed)}"
            )
        return text, back

    def _open(self, node: Node, entry: int, starts: list[Command]) -> None:
        for invocation in node.invocations:
            try:
                value: JsonValue = None
                if invocation.input is not None:
                    value = invocation.encode_input(invocation.input(self.context))
            except _User as error:
                _broke(f'the input of task "{invocation.slot}" in state "{node.id}"', error)
            starts.append(
                StartTask(
                    key=_task_key(node, entry, invocation),
                    machine=[],
                    slot=invocation.slot,
                    input=value,
                )
            )
        for timer in node.timers:
            starts.append(
                ArmTimer(key=_timer_key(node, entry, timer), delay=self._delay(node, timer))
            )
        if node.gate is not None:
            self._open_gate(node)

    def _delay(self, node: Node, timer: Timer) -> float:
        what = f'the delay of .after(…) in state "{node.id}"'
        try:
            delay = timer.delay if isinstance(timer.delay, timedelta) else timer.delay(self.context)
            seconds = delay.total_seconds()
        except _User as error:
            _broke(what, error)
        if seconds < 0:
            raise _Fault(f"{what} is negative")
        return seconds

    def _open_gate(self, node: Node) -> None:
        assert node.gate is not None
        what = f'the Gate of state "{node.id}"'
        try:
            gate = (
                node.gate.gate if isinstance(node.gate.gate, str) else node.gate.gate(self.context)
            )
            meta = None if node.gate.meta is None else node.gate.meta(self.context)
            meta_json = "null" if meta is None else json_text(to_jsonable_python(meta))
        except _User as error:
            _broke(what, error)
        if not isinstance(gate, str) or not gate or "/" in gate:
            raise _Fault(f"{what} has the id {gate!r}: an id is a text without /")
        if any(opened.gate == gate for opened in self.gates.values()):
            raise _Fault(f'{what} has the id "{gate}", and a Gate with that id is open')
        self.gates[node.index] = OpenGate(gate, meta_json)


def _broke(what: str, error: BaseException) -> NoReturn:
    raise _Fault(f"{what} raised {reason(error)}") from error
