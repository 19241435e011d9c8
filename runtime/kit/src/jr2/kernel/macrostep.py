"""The working state of one Machine in one step: W3C SCXML's main loop over a chart.

Transitions are chosen for each innermost active state, the innermost first; of two that would exit
the same state the one further in wins, else the first in document order. States are exited
innermost first and entered outermost first. Eventless transitions and internal events run to the
end; then what was entered is invoked, so a state that is passed through starts nothing. A child
Machine that ends at its start is heard in the same step.

Nothing of a macrostep outlives the step but the snapshot that `settle` returns.

Source: design §4.1, spec/runtime.md §1.7 and §1.9; W3C SCXML, appendix D.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..chart import EVENTLESS, ROOT, Action, Chart, Node, Raised, Transition
from ..events import Event, Message, event_name, message_wire
from ..host_wire import Emit
from ..run_data import Context, Start
from ..snapshot import OpenGate, Snapshot, json_text
from .faults import USER_ERRORS, Fault, WrongType, broke
from .keys import ROOT_PLACE, Place
from .outbox import MAX_MICROSTEPS, Outbox
from .plans import Plan, initial_plan, plan_of


class Macrostep(ABC):
    """One Machine while it takes a step.

    Args:
        chart: the Machine's.
        before: the Machine's part of the run, before the step.
        outbox: the step's.
        place: where the Machine is in the run.
    """

    def __init__(
        self, chart: Chart, before: Snapshot, outbox: Outbox, place: Place = ROOT_PLACE
    ) -> None:
        self.chart = chart
        self.before = before
        self.outbox = outbox
        self.place = place
        self.active = dict(before.entries)
        self.count = before.entry_count
        self.ended = before.ended
        # What a step seldom changes is copied when it does.
        self.gates: Mapping[int, OpenGate] = before.gates
        self.history: Mapping[int, tuple[int, ...]] = before.history
        self.children: dict[str, Snapshot] = dict(before.children) if before.children else {}
        self.context: Any = before.context
        self.entered: set[int] = set()
        """States that were entered and whose invocations have not begun."""
        self.internal: list[tuple[str, Any]] = []
        self.assigned = False
        self.output: str | None = None
        """JSON text once a final state below the root is entered."""

    # --- the main loop ----------------------------------------------------------------------------
    def begin(self, first: Start[Any]) -> None:
        """Make the first context, enter the initial states and come to rest."""
        try:
            self.context = self._checked(self.chart.start(first))
        except USER_ERRORS as error:
            broke("the start", error)
        self.assigned = True
        self._enter([initial_plan(self.chart)], None)
        self._to_rest()

    def hear(self, name: str, data: Any, within: int = ROOT) -> bool:
        """Take one event and come to rest; `False` when no transition takes it.

        Args:
            name: the event.
            data: what it carries.
            within: only the active states in this one hear it, and those around it.
        """
        chosen = self._select(name, data, within)
        if not chosen:
            return False
        self._take(chosen, data)
        self._to_rest()
        return True

    def _to_rest(self) -> None:
        while self.output is None:
            chosen: Sequence[Transition] = ()
            data = None
            if self.chart.is_eventless:
                chosen = self._select(EVENTLESS, None)
            if not chosen:
                if not self.internal:
                    return
                name, data = self.internal.pop(0)
                chosen = self._select(name, data)
                if not chosen:
                    continue
            self._take(chosen, data)
        for index in sorted(self.active, reverse=True):
            node = self.chart.nodes[index]
            if node.exit:
                self._act(node.exit, None, node)

    # --- choosing ---------------------------------------------------------------------------------
    def _select(self, name: str, data: Any, within: int = ROOT) -> Sequence[Transition]:
        """Return the transitions that an event enables, without conflicts, in document order."""
        candidates = self.chart.candidates
        leaves = self._leaves(within)
        if len(leaves) == 1:
            for transition in candidates(leaves[0], name):
                if transition.guard is None or self._allows(transition, data):
                    return (transition,)
            return ()
        chosen: list[Transition] = []
        refused: set[Transition] = set()
        for leaf in leaves:
            for transition in candidates(leaf, name):
                if transition in chosen:
                    break
                if transition in refused:
                    continue
                if transition.guard is None or self._allows(transition, data):
                    chosen.append(transition)
                    break
                refused.add(transition)
        return chosen if len(chosen) < 2 else self._without_conflicts(chosen)

    def _leaves(self, within: int) -> list[int]:
        is_leaf, last = self.chart.is_leaf, self.chart.last[within]
        found = [index for index in self.active if within <= index <= last and is_leaf[index]]
        return found if len(found) < 2 else sorted(found)

    def _without_conflicts(self, chosen: list[Transition]) -> list[Transition]:
        """Leave out a transition that another one, which comes first, makes impossible."""
        kept: list[tuple[Transition, set[int]]] = []
        for transition in chosen:
            exits = set(self._exits([self._plan(transition)]))
            lost: list[Transition] = []
            for other, other_exits in kept:
                if exits.isdisjoint(other_exits):
                    continue
                if self.chart.is_below(transition.source, other.source):
                    lost.append(other)
                else:
                    break
            else:
                kept = [pair for pair in kept if pair[0] not in lost]
                kept.append((transition, exits))
        return [transition for transition, _ in kept]

    def _plan(self, transition: Transition) -> Plan:
        known: Plan | None = self.chart.memo.get(transition)
        return plan_of(self.chart, transition, self.history) if known is None else known

    # --- one microstep ----------------------------------------------------------------------------
    def _take(self, chosen: Sequence[Transition], data: Any) -> None:
        """Exit, act, enter."""
        self.outbox.taken += 1
        if self.outbox.taken > MAX_MICROSTEPS:
            raise Fault(
                f"the transitions of {self._where(chosen[0])} do not come to rest: more than "
                f"{MAX_MICROSTEPS} in one step"
            )
        plans = [self._plan(transition) for transition in chosen]
        exits = self._exits(plans)
        if exits:
            self._exit(exits, data)
            if self.chart.histories:
                # What was left just now may be what a history node stands for.
                plans = [self._plan(transition) for transition in chosen]
        for transition in chosen:
            if transition.actions:
                self._act(transition.actions, data, transition)
        self._enter(plans, data)

    def _exits(self, plans: Sequence[Plan]) -> list[int]:
        """Return the active states that transitions leave, innermost first."""
        if len(plans) == 1:
            above = plans[0].domain
            if above is None:
                return []
            last = self.chart.last[above]
            left = [index for index in self.active if above < index <= last]
            return left if len(left) < 2 else sorted(left, reverse=True)
        found: set[int] = set()
        for plan in plans:
            if plan.domain is not None:
                above, last = plan.domain, self.chart.last[plan.domain]
                found.update([index for index in self.active if above < index <= last])
        return sorted(found, reverse=True)

    def _exit(self, exits: list[int], data: Any) -> None:
        nodes = self.chart.nodes
        if self.chart.histories:
            for index in exits:
                for history in self.chart.histories.get(index, ()):
                    remembered = self._remember(history, index)
                    self.history = {**self.history, history: remembered}
        for index in exits:
            node = nodes[index]
            if node.exit:
                self._act(node.exit, data, node)
            entry = self.active.pop(index)
            if index in self.entered:
                self.entered.discard(index)
            else:
                self._stop(node, entry)

    def _remember(self, history: int, parent: int) -> tuple[int, ...]:
        nodes = self.chart.nodes
        if nodes[history].deep:
            return tuple(leaf for leaf in self._leaves(parent))
        return tuple(child for child in nodes[parent].children if child in self.active)

    def _enter(self, plans: Sequence[Plan], data: Any) -> None:
        if len(plans) == 1:
            (plan,) = plans
            for index in plan.enters:
                self._enter_one(index, plan, data)
        else:
            plan_for = {index: plan for plan in plans for index in plan.enters}
            for index in sorted(plan_for):
                self._enter_one(index, plan_for[index], data)

    def _enter_one(self, index: int, plan: Plan, data: Any) -> None:
        node = self.chart.nodes[index]
        self.count += 1
        self.active[index] = self.count
        self.entered.add(index)
        if node.entry:
            self._act(node.entry, data, node)
        if node.initial_actions and index in plan.defaults:
            self._act(node.initial_actions, data, node)
        for place, history in plan.recalled:
            if place == index:
                recalled = self.chart.nodes[history]
                self._act(recalled.initial_actions, data, recalled)
        if node.kind == "final":
            self._complete(node)

    def _complete(self, node: Node) -> None:
        """Say that a final state was entered, to the states that it completes."""
        nodes = self.chart.nodes
        output = None
        try:
            if node.output is not None:
                output = node.output(self.context)
            if node.parent == ROOT:
                encode = self.chart.encode_output
                self.output = json_text(None if encode is None else encode(output))
                return
        except USER_ERRORS as error:
            broke(f'the output of final state "{node.id}"', error)
        assert node.parent is not None
        self.internal.append((f"done.state.{nodes[node.parent].id}", output))
        above = nodes[node.parent].parent
        while above is not None and nodes[above].kind == "parallel" and self._is_complete(above):
            self.internal.append((f"done.state.{nodes[above].id}", None))
            above = nodes[above].parent

    def _is_complete(self, index: int) -> bool:
        node = self.chart.nodes[index]
        if node.kind == "parallel":
            return all(
                self._is_complete(child)
                for child in node.children
                if self.chart.nodes[child].kind != "history"
            )
        return any(
            child in self.active and self.chart.nodes[child].kind == "final"
            for child in node.children
        )

    # --- user code --------------------------------------------------------------------------------
    def _allows(self, transition: Transition, data: Any) -> bool:
        assert transition.guard is not None
        try:
            answer = transition.guard(self.context, data)
            if answer is not True and answer is not False:
                raise WrongType(f"returned {type(answer).__name__}, not bool")
        except USER_ERRORS as error:
            broke(f"the guard of {self._where(transition)}", error)
        return answer is True

    def _act(self, actions: Iterable[Action], data: Any, origin: Transition | Node) -> None:
        for action in actions:
            try:
                result = action.run(self.context, data)
                if action.kind == "assign":
                    self.context = self._checked(result)
                    # Also when it is the same object: an author may have changed a list inside it.
                    self.assigned = True
                elif action.kind == "emit":
                    self._emit(result)
                else:
                    self._raise(result)
            except USER_ERRORS as error:
                broke(f"the {action.kind} of {self._where(origin)}", error)

    def _emit(self, result: Any) -> None:
        for message in result if type(result) is tuple else (result,):
            if not isinstance(message, Message):
                raise WrongType(f"returned {type(message).__name__}, not a Message")
            kind, payload = message_wire(message)
            self.outbox.emits.append(Emit(type=kind, payload=payload))

    def _raise(self, result: Any) -> None:
        for event in result if type(result) is tuple else (result,):
            if isinstance(event, Event):
                self.internal.append((event_name(type(event)), event))
            elif isinstance(event, Raised):
                self.internal.append(event)
            else:
                raise WrongType(f"returned {type(event).__name__}, not an Event")

    def _checked(self, context: Any) -> Context:
        if type(context) is not self.chart.context:
            raise WrongType(f"returned {type(context).__name__}, not {self.chart.context.__name__}")
        checked: Context = context
        return checked

    def _where(self, origin: Transition | Node) -> str:
        if isinstance(origin, Node):
            return f'state "{origin.id}"'
        source = self.chart.nodes[origin.source]
        place = f'state "{source.id}"' if source.path else "the root"
        return f'{place} on "{origin.event}"' if origin.event else f"{place} (eventless)"

    # --- what a state has running -----------------------------------------------------------------
    @abstractmethod
    def _stop(self, node: Node, entry: int) -> None:
        """Stop what runs in a state that is left (`jr2.kernel.running`)."""
