"""The handles of states: what a Machine is written with, statement by statement.

Each handle writes into a draft (`jr2.drafts`); a statement that is wrong is noted there, and the
build says all of them. The types flow: what an event, a task or a child Machine carries is what the
functions of its transition get second.

A state that is made with `parallel=True` has regions: each state inside it is entered with it and
goes on by itself, and it is done when each of them is.

    checks = m.parallel("checks")
    lint, tests = checks.state("lint"), checks.state("tests")
    checks.done(to=ship)

Source: spec/authoring.md §2.14, design §4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Generic, Self, TypeVar, overload

from pydantic import BaseModel

from .built import BuiltMachine
from .chains import Items, Running
from .chart import InvocationKind
from .children import Child
from .drafts import GateDraft, actions
from .events import Event, Message, event_name
from .handles import Final, Handle, History, Target, To, add, first, functions
from .part_drafts import invoke, invoke_child
from .parts.agents import Agent
from .parts.effects import Effect
from .parts.turns import Turn
from .run_data import Context
from .tasks import Task

C = TypeVar("C", bound=Context)
D = TypeVar("D")
E = TypeVar("E", bound=Event)
I = TypeVar("I")  # noqa: E741 - what a task takes
O = TypeVar("O")  # noqa: E741 - what a compound state ends with
R = TypeVar("R")
EI = TypeVar("EI", bound=BaseModel)
ER = TypeVar("ER", bound=BaseModel)


class Scope(Handle[C]):
    """What a state and the Machine itself have in common: states inside, and transitions."""

    @overload
    def state(self, name: str, *, initial: bool = False, parallel: bool = False) -> State[C]: ...

    @overload
    def state(self, name: str, *, output: type[O], initial: bool = False) -> OutputState[C, O]: ...

    def state(
        self,
        name: str,
        *,
        output: type[Any] | None = None,
        initial: bool = False,
        parallel: bool = False,
    ) -> Any:
        """Make a state inside this one.

        Args:
            name: letters, digits, `_` and `-`; unique among its siblings.
            output: the type of what its final states end it with; then `.done` knows it.
            initial: whether it is entered when this one is.
            parallel: whether all states inside it are active at once.

        Raises:
            BuildRefused: the Machine is built. A bad or repeated name, or a second initial state,
                is said by the build.
        """
        draft = self._draft.add(name, kind="parallel" if parallel else "compound", initial=initial)
        return State(draft) if output is None else OutputState(draft)

    def parallel(self, name: str, *, initial: bool = False) -> State[C]:
        """Make a state whose inner states are all active at once: `state(…, parallel=True)`."""
        return self.state(name, initial=initial, parallel=True)

    def on(
        self,
        event: type[E],
        *,
        to: To[C] = None,
        guard: Callable[[C, E], bool] | None = None,
        assign: Callable[[C, E], C] | None = None,
        emit: Callable[[C, E], Message] | None = None,
        raise_: Callable[[C, E], Event] | None = None,
        internal: bool = False,
    ) -> Self:
        """Handle an event while this is active, unless a state inside does.

        Args:
            event: the event's class; the Machine's vocabulary is what its states handle.
            to: where it leads. Without it the state is not left, and what it invokes goes on.
            guard: takes context and event; the first transition that it lets pass is taken.
            assign: takes context and event, and returns the new context.
            emit: takes the new context and the event, and returns a message for watchers.
            raise_: takes the new context and the event, and returns an event that this Machine
                hears next, before any from outside.
            internal: with `to` a state inside this one, do not leave and enter this one.

        Raises:
            BuildRefused: the Machine is built. That it is no event class is said by the build.
        """
        if not isinstance(event, type) or not issubclass(event, Event):
            self._draft.change()
            self._draft.wrong(f"handles {event!r}, which is no event class")
            return self
        name = event_name(event)
        add(self._draft, name, to, guard, assign, emit, raise_, event=event, internal=internal)
        return self


class State(Scope[C], Target[C]):
    """The handle of a state that can be left."""

    def final(self, name: str, output: Callable[[C], Any] | None = None) -> Final[C]:
        """Make a final state inside this one; entering it completes this one (`.done`).

        Args:
            name: as for a state.
            output: what `.done` gets second; declare its type with `state(…, output=…)`.

        Raises:
            BuildRefused: the Machine is built. A bad or repeated name is said by the build.
        """
        draft = self._draft.add(name, kind="final")
        functions(draft, "as a final state", output=output)
        draft.output = output
        return Final(draft)

    def history(
        self, name: str = "history", *, deep: bool = False, default: Target[C] | None = None
    ) -> History[C]:
        """Make a target that enters this state where it was left last.

        Args:
            name: as for a state.
            deep: enter the innermost states again, not only the states right inside this one.
            default: what is entered when this state was never left; its initial state when absent.

        Raises:
            BuildRefused: the Machine is built. A default that is not inside this state is said by
                the build.
        """
        draft = self._draft.add(name, kind="history")
        if not isinstance(deep, bool):
            draft.wrong(f"has deep={deep!r}, which is not True or False")
        draft.deep = deep
        if isinstance(default, Target):
            draft.default = default._draft
        elif default is not None:
            draft.wrong(f"has the default {default!r}, which is no state of a Machine")
        return History(draft)

    def entry(
        self,
        *,
        assign: Callable[[C], C] | None = None,
        emit: Callable[[C], Message] | None = None,
        raise_: Callable[[C], Event] | None = None,
    ) -> Self:
        """Do something whenever this state is entered; several happen in their order.

        Args:
            assign: takes the context, and returns the new one.
            emit: returns a message for watchers.
            raise_: returns an event that this Machine hears next.

        Raises:
            BuildRefused: the Machine is built.
        """
        self._draft.change()
        functions(self._draft, "at its entry", assign=assign, emit=emit, raise_=raise_)
        self._draft.entry += actions(first(assign), first(emit), first(raise_))
        return self

    def exit(
        self,
        *,
        assign: Callable[[C], C] | None = None,
        emit: Callable[[C], Message] | None = None,
        raise_: Callable[[C], Event] | None = None,
    ) -> Self:
        """Do something whenever a transition leaves this state, before the transition's own.

        It is not done when the run is cancelled, faults, or is stopped as a child.

        Raises:
            BuildRefused: the Machine is built.
        """
        self._draft.change()
        functions(self._draft, "at its exit", assign=assign, emit=emit, raise_=raise_)
        self._draft.exit += actions(first(assign), first(emit), first(raise_))
        return self

    def done(
        self,
        *,
        to: To[C] = None,
        guard: Callable[[C, Any], bool] | None = None,
        assign: Callable[[C, Any], C] | None = None,
        emit: Callable[[C, Any], Message] | None = None,
        raise_: Callable[[C, Any], Event] | None = None,
    ) -> Self:
        """Handle that this state is complete: a final state inside was entered.

        Second comes the output of that final state. A parallel state is complete when each of its
        regions is; then nothing comes second.
        """
        name = f"done.state.{self._draft.id}"
        add(self._draft, name, to, guard, assign, emit, raise_)
        return self

    def always(
        self,
        *,
        to: To[C] = None,
        guard: Callable[[C], bool] | None = None,
        assign: Callable[[C], C] | None = None,
        emit: Callable[[C], Message] | None = None,
        raise_: Callable[[C], Event] | None = None,
    ) -> Self:
        """Go on as soon as the guard allows it, before the next event is heard.

        Without `to` the guard has to become false by what it assigns, or the run faults.

        Raises:
            BuildRefused: the Machine is built. Neither a target nor a guard is said by the build.
        """
        if to is None and guard is None:
            self._draft.change()
            self._draft.wrong(
                "has .always(…) with neither to= nor guard=, which would be taken without end"
            )
        add(self._draft, "", to, first(guard), first(assign), first(emit), first(raise_))
        return self

    def after(
        self,
        delay: timedelta | Callable[[C], timedelta],
        *,
        to: To[C] = None,
        guard: Callable[[C], bool] | None = None,
        assign: Callable[[C], C] | None = None,
        emit: Callable[[C], Message] | None = None,
        raise_: Callable[[C], Event] | None = None,
    ) -> Self:
        """Handle that this state has been active for `delay`, once for each entry.

        Raises:
            BuildRefused: the Machine is built. A delay that is negative or none is said by the
                build.
        """
        self._draft.change()
        if isinstance(delay, timedelta):
            if delay < timedelta(0):
                self._draft.wrong(f"has .after({delay!r}): a delay is not negative")
        elif not callable(delay):
            self._draft.wrong(f"has .after({delay!r}): a delay is a timedelta")
        name = f"after.{self._draft.id}.{len(self._draft.timers)}"
        add(self._draft, name, to, first(guard), first(assign), first(emit), first(raise_))
        self._draft.timers.append(delay)
        return self

    def gate(
        self,
        *,
        meta: Callable[[C], Any] | None = None,
        gate: str | Callable[[C], str] | None = None,
        accepts: tuple[type[Event], ...] | None = None,
    ) -> Self:
        """Wait here for an event from outside.

        Args:
            meta: what those who answer read: anything with a JSON form, made at the entry.
            gate: the address; by default the state's path joined with dots, in a child Machine
                with the actor path before it.
            accepts: the events; by default all that this state or one around it handles and that
                may come from outside.

        Raises:
            BuildRefused: the Machine is built. A second Gate, an address that is empty or holds a
                `/`, an empty set of events or one that is not handled is said by the build.
        """
        self._draft.change()
        if self._draft.gate is not None:
            self._draft.wrong("has two Gates")
        if isinstance(gate, str) and (not gate or "/" in gate):
            self._draft.wrong(f"has a Gate {gate!r}: its id is a text without /")
        elif gate is not None and not isinstance(gate, str) and not callable(gate):
            self._draft.wrong(f"has a Gate {gate!r}: its id is a text, or a function")
        functions(self._draft, "at its Gate", meta=meta)
        heard = () if accepts is None else accepts
        if not isinstance(heard, tuple | list):
            self._draft.wrong(f"has a Gate with accepts={accepts!r}: give a tuple of event classes")
            accepts = None
        else:
            for event in heard:
                if not isinstance(event, type) or not issubclass(event, Event):
                    self._draft.wrong(f"has a Gate that accepts {event!r}, which is no event class")
        self._draft.gate = GateDraft(
            gate=gate, meta=meta, accepts=None if accepts is None else tuple(dict.fromkeys(accepts))
        )
        return self

    def turn(self, agent: Agent, turn: Callable[[C], Turn]) -> Self:
        """Have an Agent take a Turn while this state is active; leaving the state ends it.

        What the Agent may pick is what this state and those around it handle and an Agent may
        send. A Turn that jr2 could not save comes as `AgentFault`.

        Args:
            agent: what `Machine.agent` returned.
            turn: makes the Turn from the context, at the entry.

        Raises:
            BuildRefused: the Machine is built. That it is no Agent of this Machine, or that its
                picks are handled only by states inside, is said by the build.
        """
        invoke(self._draft, "turn", agent, turn)
        return self

    @overload
    def run(self, task: Task[None, R]) -> Running[C, R]: ...

    @overload
    def run(self, task: Task[I, R], input: Callable[[C], I]) -> Running[C, R]: ...

    @overload
    def run(
        self, task: Effect[EI, ER], input: Callable[[C], EI] | None = None
    ) -> Running[C, ER]: ...

    def run(
        self, task: Task[Any, Any] | Effect[Any, Any], input: Callable[[C], Any] | None = None
    ) -> Running[C, Any]:
        """Run a task or an Effect while this state is active; leaving the state stops it.

        Args:
            task: what `Machine.task` or `Machine.effect` returned.
            input: makes the input from the context, at the entry; an Effect whose input has a
                default for each field needs none.

        Raises:
            BuildRefused: the Machine is built. A part of another Machine, or an input that is
                missing or not taken, is said by the build.
        """
        kind: InvocationKind = "effect" if isinstance(task, Effect) else "task"
        return Running(self._draft, invoke(self._draft, kind, task, input))

    @overload
    def invoke(
        self, machine: Child[D, R], input: Callable[[C], D] | None = None, *, id: str | None = None
    ) -> Running[C, R]: ...

    @overload
    def invoke(
        self,
        machine: BuiltMachine[D, Any, R],
        input: Callable[[C], D] | None = None,
        *,
        id: str | None = None,
    ) -> Running[C, R]: ...

    def invoke(
        self,
        machine: Child[Any, Any] | BuiltMachine[Any, Any, Any],
        input: Callable[[C], Any] | None = None,
        *,
        id: str | None = None,
    ) -> Running[C, Any]:
        """Run another Machine while this state is active; leaving the state stops it.

        Args:
            machine: what `Machine.child` returned. A Machine itself runs too, but then no
                `customize()` reaches it.
            input: makes the child's input from the context, at the entry; the child's door.
            id: the child's name in its run, which Gates and conversations are named by; the slot
                when absent.

        Raises:
            BuildRefused: the Machine is built. A child of another Machine, an input that is missing,
                or two children of one name that may run at once, is said by the build.
        """
        return Running(self._draft, invoke_child(self._draft, "child", machine, input, id))

    def each(self, machine: Child[D, R], items: Callable[[C], Mapping[str, D]]) -> Items[C, R]:
        """Run one child Machine for each item that the context lists while this state is active.

        The list is read whenever the Machine comes to rest: an item that is new starts a child, one
        that is gone stops its own, and one whose child has ended starts no second one while it is
        listed.

        Args:
            machine: what `Machine.child` returned.
            items: the input of each child by the id of its item, a short text without `/`.

        Raises:
            BuildRefused: the Machine is built. A child of another Machine is said by the build.
        """
        return Items(self._draft, invoke_child(self._draft, "pool", machine, items, None))


class OutputState(State[C], Generic[C, O]):
    """A state whose final states end it with a value of one type, which `.done` gets."""

    def final(self, name: str, output: Callable[[C], O] | None = None) -> Final[C]:
        """Make a final state inside this one; entering it completes this one (`.done`).

        Args:
            name: as for a state.
            output: makes what `.done` gets second.

        Raises:
            BuildRefused: the Machine is built. A bad or repeated name is said by the build.
        """
        return super().final(name, output)

    def done(
        self,
        *,
        to: To[C] = None,
        guard: Callable[[C, O], bool] | None = None,
        assign: Callable[[C, O], C] | None = None,
        emit: Callable[[C, O], Message] | None = None,
        raise_: Callable[[C, O], Event] | None = None,
    ) -> Self:
        """Handle that a final state inside this one was entered; second comes its output."""
        return super().done(to=to, guard=guard, assign=assign, emit=emit, raise_=raise_)
