"""What the states of a Machine have running: tasks, Turns, Effects, timers, Gates, child Machines.

What is running is what the chart says of the active states, less what has ended; only child
Machines have more of a state, which is in the snapshot under the child's key. A child goes on in
the same step as its parent: what it says has the child's key before its own, and its end is an
event for the parent as soon as the parent is at rest.

A pool runs one child for each item that its mapper lists; the list is read again whenever the
Machine comes to rest. An item that is not listed any more is stopped.

Source: design §4.1, spec/authoring.md §2.8, §2.9, §2.11, spec/runtime.md §1.7 and §1.9.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, TypeVar

from pydantic import JsonValue
from pydantic_core import to_jsonable_python

from ..chart import Chart, Invocation, Node, Timer
from ..events import event_name
from ..host_wire import ArmTimer, Command, RunEffect, StartSandbox, StartTask, StartTurn
from ..nesting import shallow
from ..snapshot import OpenGate, Snapshot, json_text, read_context, write_context
from ..tasks import ItemDone, ItemError, TaskError, reason
from .faults import USER_ERRORS, Fault, WrongType, broke, is_text
from .keys import (
    BETWEEN,
    ROOT_PLACE,
    Place,
    entry_mark,
    inside,
    invocation_key,
    item_key,
    item_of,
    locate,
    timer_key,
)
from .macrostep import Macrostep
from .outbox import Outbox

_V = TypeVar("_V")
LONGEST_NAME: Final = 200
"""Characters of a Gate's address and of a pool's item."""
_WORDS: Final = {
    "task": "task",
    "effect": "Effect",
    "sandbox": "Sandbox",
    "turn": "Agent",
    "child": "Machine",
    "pool": "an item of pool",
}


class MachineStep(Macrostep):
    """A Machine that takes a step, with all that its states have running."""

    def __init__(
        self, chart: Chart, before: Snapshot, outbox: Outbox, place: Place = ROOT_PLACE
    ) -> None:
        super().__init__(chart, before, outbox, place)
        self.external: list[tuple[str, Snapshot | str]] = []
        """Children that have ended and are not heard yet: the key, and the end or the fault."""

    def receive(self, chain: Sequence[str], act: Callable[[MachineStep], bool]) -> bool:
        """Have a Machine of this run do something, and go on until all is at rest.

        Args:
            chain: the keys of the child Machines on the way to it; empty: this one.
            act: returns whether anything changed.
        """
        if not chain:
            if not act(self):
                return False
        elif not self._child_receives(chain[0], chain[1:], act):
            return False
        self.go_on()
        return True

    def go_on(self) -> None:
        """Invoke what was entered, and hear the children that have ended by it."""
        while self.output is None:
            if self.entered:
                self._invoke_entered()
            if self.chart.pools:
                self._fill_pools()
            if not self.external:
                return
            self._hear_child(*self.external.pop(0))

    def settle(self) -> Snapshot:
        """Return the Machine's part of the run after the step."""
        context_json, context = self.before.context_json, self.before.context
        if self.assigned:
            context_json, context = self._written()
        # By position, in the order of the fields: this is done in each step.
        return Snapshot(
            self.chart.id,
            self.before.run_id,
            "active" if self.output is None else "done",
            _in_order(self.active),
            self.count,
            self.ended,
            _in_order(self.gates),
            self.history,
            self.children,
            context_json,
            "null" if self.output is None else self.output,
            None,
            context,
        )

    def has_ended(self, node: Node, invocation: Invocation, output: Any) -> None:
        """Hear that an invocation has ended well."""
        self.hear(invocation.done, output, node.index)

    def has_failed(self, node: Node, invocation: Invocation, error: TaskError) -> None:
        """Hear that an invocation has ended badly.

        Raises:
            Fault: the Machine has no transition for it.
        """
        leaves = self._leaves(node.index)
        if not any(self.chart.candidates(leaf, invocation.failed) for leaf in leaves):
            raise Fault(
                f'{_WORDS[invocation.kind]} "{invocation.slot}" failed and no .failed(…) takes '
                f"it: {error.reason}"
            )
        self.hear(invocation.failed, error, node.index)

    # --- what begins ------------------------------------------------------------------------------
    def _invoke_entered(self) -> None:
        entered = sorted(self.entered)
        self.entered.clear()
        for index in entered:
            node, entry = self.chart.nodes[index], self.active[index]
            for invocation in node.invocations:
                if invocation.kind != "pool":
                    self._invoke(node, entry, invocation)
            for timer in node.timers:
                key = self.place.prefix + timer_key(node, entry, timer)
                self.outbox.start(key, ArmTimer(key=key, delay=self._delay(node, timer)))
            if node.gate is not None:
                self._open_gate(node)

    def _invoke(self, node: Node, entry: int, invocation: Invocation) -> None:
        value: Any = None
        encoded: JsonValue = None
        what = f'the input of {_WORDS[invocation.kind]} "{invocation.slot}" in state "{node.id}"'
        try:
            if invocation.input is not None:
                value = invocation.input(self.context)
                if invocation.kind != "child":
                    encoded = invocation.encode_input(value)
        except USER_ERRORS as error:
            broke(what, error)
        local = invocation_key(node, entry, invocation)
        if invocation.kind == "child":
            self._start_child(local, invocation, value, what)
            return
        key = self.place.prefix + local
        self.outbox.start(key, self._command(key, invocation, encoded))

    def _command(self, key: str, invocation: Invocation, value: JsonValue) -> Command:
        machine, actor = list(self.place.machine), list(self.place.actors)
        slot = invocation.slot
        if invocation.kind == "task":
            return StartTask(key=key, machine=machine, slot=slot, input=value)
        if invocation.kind == "effect":
            return RunEffect(key=key, machine=machine, slot=slot, actor=actor, input=value)
        if invocation.kind == "sandbox":
            return StartSandbox(key=key, machine=machine, slot=slot, actor=actor, input=value)
        return StartTurn(
            key=key,
            machine=machine,
            slot=slot,
            actor=actor,
            input=value,
            picks=[event_name(event) for event in invocation.picks],
        )

    def _delay(self, node: Node, timer: Timer) -> float:
        what = f'the delay of .after(…) in state "{node.id}"'
        try:
            delay = timer.delay if isinstance(timer.delay, timedelta) else timer.delay(self.context)
            if not isinstance(delay, timedelta):
                raise WrongType(f"returned {type(delay).__name__}, not timedelta")
            seconds = delay.total_seconds()
        except USER_ERRORS as error:
            broke(what, error)
        if seconds < 0:
            raise Fault(f"{what} is negative")
        return seconds

    def _open_gate(self, node: Node) -> None:
        gate = node.gate
        assert gate is not None
        try:
            address: object
            if gate.gate is None:
                address = ".".join((*self.place.actors, gate.named or node.id))
            else:
                address = gate.gate if isinstance(gate.gate, str) else gate.gate(self.context)
            meta = None if gate.meta is None else gate.meta(self.context)
            meta_json = "null" if meta is None else shallow(json_text(to_jsonable_python(meta)))
        except USER_ERRORS as error:
            broke(_gate_of(node), error)
        if not isinstance(address, str) or not address or "/" in address:
            raise Fault(f"{_gate_of(node)} has the id {address!r}: an id is a text without /")
        if address in self.outbox.addresses:
            raise Fault(f'{_gate_of(node)} has the id "{address}", and a Gate with that id is open')
        self.outbox.addresses.add(address)
        self.gates = {**self.gates, node.index: OpenGate(address, meta_json)}

    # --- what ends --------------------------------------------------------------------------------
    def _stop(self, node: Node, entry: int) -> None:
        prefix = self.place.prefix
        for invocation in node.invocations:
            key = invocation_key(node, entry, invocation)
            if invocation.kind == "child":
                if key in self.children:
                    self._stop_child(key)
            elif invocation.kind == "pool":
                for child in self._items(key):
                    self._stop_child(child)
            elif key not in self.ended:
                self.outbox.stop(invocation.kind, prefix + key)
        for timer in node.timers:
            key = timer_key(node, entry, timer)
            if key not in self.ended:
                self.outbox.stop("after", prefix + key)
        if node.gate is not None:
            left = dict(self.gates)
            self.outbox.addresses.discard(left.pop(node.index).gate)
            self.gates = left
        if self.ended:
            mark = entry_mark(node, entry)
            self.ended = frozenset(key for key in self.ended if not key.startswith(mark))

    def _stop_child(self, key: str) -> None:
        snapshot = self.children.pop(key)
        chart, place, _ = inside(self.chart, key, self.place)
        for kind, live in live_keys(chart, snapshot, place.prefix):
            self.outbox.stop(kind, live)
        self.outbox.addresses.difference_update(open_addresses(snapshot))

    # --- child Machines ---------------------------------------------------------------------------
    def _child_step(self, key: str, before: Snapshot) -> MachineStep:
        chart, place, _ = inside(self.chart, key, self.place)
        return MachineStep(chart, before, self.outbox, place)

    def _start_child(self, key: str, invocation: Invocation, value: Any, what: str) -> None:
        child = self.chart.children[invocation.slot]
        try:
            first = child.start(value)
        except USER_ERRORS as error:
            broke(what, error)
        blank = Snapshot(
            machine=child.chart.id, run_id="", status="active", entries={}, entry_count=0
        )
        step = self._child_step(key, blank)

        def act() -> bool:
            step.begin(first)
            step.go_on()
            return True

        self._go_on_with(key, step, act)

    def _child_receives(
        self, key: str, chain: Sequence[str], act: Callable[[MachineStep], bool]
    ) -> bool:
        before = self.children.get(key)
        if before is None:
            return False
        step = self._child_step(key, before)
        return self._go_on_with(key, step, lambda: step.receive(chain, act))

    def _go_on_with(self, key: str, step: MachineStep, act: Callable[[], bool]) -> bool:
        """Have a child go on; its end, or its fault, waits to be heard."""
        mark = self.outbox.mark()
        end: Snapshot | str
        try:
            if not act():
                return False
            after = step.settle()
        except Fault as broken:
            self.outbox.undo(mark)
            if key in self.children:
                self._stop_child(key)
            end = str(broken)
        else:
            if after.status == "active":
                self.children[key] = after
                return True
            self.children.pop(key, None)
            end = after
        self.ended |= {key}
        self.external.append((key, end))
        return True

    def _hear_child(self, key: str, end: Snapshot | str) -> None:
        found = locate(self.chart, self.active, key)
        if found is None:
            return
        invocation = found.what
        assert isinstance(invocation, Invocation)
        output: Any = None
        if isinstance(end, Snapshot):
            decode = self.chart.children[invocation.slot].chart.decode_output
            try:
                output = None if decode is None else decode(json.loads(end.output_json))
            except USER_ERRORS as bad:
                end = f"its output: {reason(bad)}"
        if isinstance(end, Snapshot):
            if found.item is not None:
                output = ItemDone(item=found.item, output=output)
            self.has_ended(found.node, invocation, output)
        elif found.item is not None:
            self.has_failed(found.node, invocation, ItemError(reason=end, item=found.item))
        else:
            self.has_failed(found.node, invocation, TaskError(reason=end))

    # --- pools ------------------------------------------------------------------------------------
    def _items(self, pool: str) -> list[str]:
        """Return the keys of a pool's running items."""
        return [key for key in self.children if key.startswith(f"{pool}@")]

    def _fill_pools(self) -> None:
        for index in self.chart.pools:
            if index in self.active:
                node = self.chart.nodes[index]
                for invocation in node.invocations:
                    if invocation.kind == "pool":
                        self._fill(node, invocation)

    def _fill(self, node: Node, invocation: Invocation) -> None:
        pool = f'pool "{invocation.slot}" in state "{node.id}"'
        what = f"the items of {pool}"
        assert invocation.input is not None
        try:
            listed = invocation.input(self.context)
            if not isinstance(listed, Mapping):
                raise WrongType(f"returned {type(listed).__name__}, not a mapping")
        except USER_ERRORS as error:
            broke(what, error)
        prefix = invocation_key(node, self.active[node.index], invocation)
        known = {item_of(key): key for key in self._items(prefix)}
        over = {item_of(key): key for key in self.ended if key.startswith(f"{prefix}@")}
        for item, key in known.items():
            if item not in listed:
                self._stop_child(key)
        gone = {key for item, key in over.items() if item not in listed}
        if gone:
            self.ended -= gone
        for wanted, value in listed.items():
            if wanted in known or wanted in over:
                continue
            if not is_text(wanted, LONGEST_NAME):
                raise Fault(f"{what} have the id {wanted!r}: an id is a short text without /")
            self.count += 1
            key = item_key(prefix, self.count, wanted)
            self._start_child(key, invocation, value, f'the input of item "{wanted}" of {pool}')

    # --- the context ------------------------------------------------------------------------------
    def _written(self) -> tuple[str, Any]:
        """Return the context as JSON, and as it will be read from it by every later step."""
        name = self.chart.context.__name__
        try:
            text = write_context(self.context)
            back = read_context(self.chart, text)
        except USER_ERRORS as error:
            broke(f"the context {name}, written as JSON and read back,", error)
        # Most contexts are their fields alone, which is asked first for it is quick.
        plain = self.context.__pydantic_private__ is None and (
            self.context.__pydantic_extra__ is None
        )
        if not (plain and back.__dict__ == self.context.__dict__):
            _compare(name, self.context, back)
        return text, back


def _compare(name: str, context: Any, back: Any) -> None:
    """Compare a context with what its JSON gave; most are the same, and are not compared here.

    Raises:
        Fault: they differ, or the context was given something that is no field.
    """
    given: dict[str, Any] = context.__dict__
    if back != context:
        changed = [key for key, value in back.__dict__.items() if given.get(key) != value]
        raise Fault(
            f"the context {name} does not come back from JSON as it was: {', '.join(changed)}"
        )
    # `model_copy` takes any name; what a cached property keeps has the name of one.
    strange = [key for key in given if key not in back.__dict__ and not hasattr(back, key)]
    if strange:
        raise Fault(f"the context {name} has no field {', '.join(map(repr, strange))}")


def _gate_of(node: Node) -> str:
    """Return how a fault names a Gate; few steps need it."""
    return f'the Gate of state "{node.id}"'


def _in_order(by_node: Mapping[int, _V]) -> Mapping[int, _V]:
    """Return what nodes have, in document order."""
    return by_node if len(by_node) < 2 else {index: by_node[index] for index in sorted(by_node)}


def live_keys(chart: Chart, snapshot: Snapshot, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the kind and the key of all that runs in a Machine, innermost state first."""
    if snapshot.status != "active":
        return
    for index in sorted(snapshot.entries, reverse=True):
        node, entry = chart.nodes[index], snapshot.entries[index]
        for invocation in node.invocations:
            key = invocation_key(node, entry, invocation)
            if invocation.kind in ("child", "pool"):
                inner = chart.children[invocation.slot].chart
                for child, held in snapshot.children.items():
                    if child == key or child.startswith(f"{key}@"):
                        yield from live_keys(inner, held, f"{prefix}{child}{BETWEEN}")
            elif key not in snapshot.ended:
                yield invocation.kind, prefix + key
        for timer in node.timers:
            key = timer_key(node, entry, timer)
            if key not in snapshot.ended:
                yield "after", prefix + key


def open_addresses(snapshot: Snapshot) -> set[str]:
    """Return the addresses of the open Gates of a Machine and of its children."""
    found = {opened.gate for opened in snapshot.gates.values()}
    for child in snapshot.children.values():
        found |= open_addresses(child)
    return found
