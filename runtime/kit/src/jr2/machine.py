"""The authoring surface: a Machine is written with state handles and event classes, then built.

A Workflow of one task:

    from jr2 import Context, Machine
    from pydantic import BaseModel, Field


    class Door(BaseModel):
        message: str = Field(default="ping", description="What to answer.")


    class Ctx(Context):
        message: str
        reply: str = ""


    class Out(BaseModel):
        reply: str


    async def respond(message: str) -> str:
        return f"pong: {message}"


    m = Machine(
        "ping",
        door=Door,
        context=Ctx,
        output=Out,
        start=lambda i: Ctx(message=i.door.message),
    )
    answer = m.task("respond", respond)
    responding = m.state("responding", initial=True)
    done = m.final("done", lambda c: Out(reply=c.reply))

    responding.run(answer, lambda c: c.message).done(to=done, assign=lambda c, r: c.set(reply=r))

    machine = m.build()

A Machine that waits at a Gate, for at most a week:

    from datetime import timedelta

    from jr2 import Context, ExternalEvent, Machine
    from pydantic import BaseModel


    class Door(BaseModel):
        ticket: str


    class Approve(ExternalEvent):
        '''Ship it.'''


    class RequestChanges(ExternalEvent):
        '''Send it back.'''

        notes: str


    class Ctx(Context):
        ticket: str
        notes: str | None = None
        run: str


    m = Machine(
        "review", door=Door, context=Ctx, start=lambda i: Ctx(ticket=i.door.ticket, run=i.run_id)
    )
    review, changes = m.state("review", initial=True), m.state("changes")
    shipped, lapsed = m.final("shipped"), m.final("lapsed")

    review.gate(meta=lambda c: {"ticket": c.ticket})
    review.on(Approve, to=shipped)
    review.on(RequestChanges, to=changes, assign=lambda c, e: c.set(notes=e.notes))
    review.after(timedelta(days=7), to=lapsed)
    changes.after(timedelta(seconds=1), to=review)

    machine = m.build()

`start` gets `i.door` (the parsed input, or the raw JSON value when there is no door) and `i.run_id`
(the id of the run). A nested state is made from its parent: `parent.state("child", initial=True)`,
and `parent.done(to=…)` is taken when a final child is entered.

Source: spec/authoring.md §2.14, design §4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, Generic, Self, TypeVar, is_typeddict, overload

from pydantic import BaseModel, TypeAdapter

from . import rules
from .built import BuiltMachine as BuiltMachine
from .chart import InvocationKind
from .drafts import (
    GateDraft,
    InvocationDraft,
    StateDraft,
    TransitionDraft,
    compile_chart,
    done_event,
    failed_event,
)
from .errors import BuildRefused as BuildRefused
from .events import NAME, Event, Message, event_name
from .part_drafts import PartDrafts, invoke
from .parts.agents import Access, Agent, AgentDefinition, ThinkingLevel
from .parts.effects import Effect, EffectDefinition
from .parts.opening import Opening
from .parts.turns import Turn
from .parts.workspaces import BodyOf, Inside, Worktrees, slots_of
from .run_data import Context, Start
from .snapshot import json_text
from .tasks import Task, TaskError

C = TypeVar("C", bound=Context)
D = TypeVar("D")
O = TypeVar("O")  # noqa: E741 - what a run ends with
E = TypeVar("E", bound=Event)
I = TypeVar("I")  # noqa: E741 - what a task takes
R = TypeVar("R")
EI = TypeVar("EI", bound=BaseModel)
ER = TypeVar("ER", bound=BaseModel)
S = TypeVar("S")
W = TypeVar("W")


class _Handle(Generic[C]):
    """A part of a Machine that is being written."""

    def __init__(self, draft: StateDraft) -> None:
        self._draft = draft

    def __repr__(self) -> str:
        state = "" if self._draft.parent is None else f"{self._draft.id!r} of machine "
        return f"<{type(self).__name__} {state}{self._draft.machine!r}>"


class Target(_Handle[C]):
    """A handle that a transition can lead to: a `State` or a `Final` of the same Machine."""


class Final(Target[C]):
    """A state that completes the state around it; below the root it ends the run."""


class _Scope(_Handle[C]):
    """What a state and the Machine itself have in common: states inside, and transitions."""

    def state(self, name: str, *, initial: bool = False) -> State[C]:
        """Make a state inside this one.

        Args:
            name: letters, digits, `_` and `-`; unique among its siblings.
            initial: whether it is entered when this one is.

        Raises:
            BuildRefused: a bad or repeated name, or a second initial state.
        """
        return State(self._draft.add(name, final=False, initial=initial))

    def on(
        self,
        event: type[E],
        *,
        to: Target[C] | None = None,
        guard: Callable[[C, E], bool] | None = None,
        assign: Callable[[C, E], C] | None = None,
        emit: Callable[[C, E], Message] | None = None,
        internal: bool = False,
    ) -> Self:
        """Handle an event while this is active, unless a state inside does.

        Args:
            event: the event's class; the Machine's vocabulary is what its states handle.
            to: where it leads. Without it the state is not left, and what it invokes goes on.
            guard: takes context and event; the first transition that it lets pass is taken.
            assign: takes context and event, and returns the new context.
            emit: takes the new context and the event, and returns a message for watchers.
            internal: with `to` a state inside this one, do not leave and enter this one.

        Raises:
            BuildRefused: it is no event class, or the Machine is built.
        """
        if not isinstance(event, type) or not issubclass(event, Event):
            self._draft.change()
            self._draft.wrong(f"handles {event!r}, which is no event class")
            return self
        self._add(event_name(event), to, guard, assign, emit, event=event, internal=internal)
        return self

    def _add(
        self,
        name: str,
        to: Target[Any] | None,
        guard: Callable[[Any, Any], bool] | None,
        assign: Callable[[Any, Any], Any] | None,
        emit: Callable[[Any, Any], Message] | None,
        *,
        event: type[Event] | None = None,
        internal: bool = False,
    ) -> None:
        self._draft.change()
        if to is not None and not isinstance(to, Target):
            self._draft.wrong(f"leads to {to!r}, which is no state of a Machine")
            return
        self._draft.transitions.append(
            TransitionDraft(
                event=name,
                event_class=event,
                target=None if to is None else to._draft,
                internal=internal,
                guard=guard,
                assign=assign,
                emit=emit,
            )
        )


class State(_Scope[C], Target[C]):
    """The handle of a state that can be left."""

    def final(self, name: str, output: Callable[[C], Any] | None = None) -> Final[C]:
        """Make a final state inside this one; entering it completes this one (`.done`).

        Args:
            name: as for a state.
            output: what `.done` gets second.

        Raises:
            BuildRefused: a bad or repeated name.
        """
        draft = self._draft.add(name, final=True, initial=False)
        draft.output = output
        return Final(draft)

    def done(
        self,
        *,
        to: Target[C] | None = None,
        guard: Callable[[C, Any], bool] | None = None,
        assign: Callable[[C, Any], C] | None = None,
        emit: Callable[[C, Any], Message] | None = None,
    ) -> Self:
        """Handle that a final state inside this one was entered; second comes its output."""
        self._add(f"done.state.{self._draft.id}", to, guard, assign, emit)
        return self

    def always(
        self,
        *,
        to: Target[C],
        guard: Callable[[C], bool] | None = None,
        assign: Callable[[C], C] | None = None,
        emit: Callable[[C], Message] | None = None,
    ) -> Self:
        """Go on as soon as the guard allows it, before the next event is heard."""
        self._add("", to, _first(guard), _first(assign), _first(emit))
        return self

    def after(
        self,
        delay: timedelta | Callable[[C], timedelta],
        *,
        to: Target[C] | None = None,
        guard: Callable[[C], bool] | None = None,
        assign: Callable[[C], C] | None = None,
        emit: Callable[[C], Message] | None = None,
    ) -> Self:
        """Handle that this state has been active for `delay`, once for each entry.

        Raises:
            BuildRefused: the delay is negative or no duration.
        """
        self._draft.change()
        if isinstance(delay, timedelta):
            if delay < timedelta(0):
                self._draft.wrong(f"has .after({delay!r}): a delay is not negative")
        elif not callable(delay):
            self._draft.wrong(f"has .after({delay!r}): a delay is a timedelta")
        name = f"after.{self._draft.id}.{len(self._draft.timers)}"
        self._add(name, to, _first(guard), _first(assign), _first(emit))
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
            gate: the address; by default the state's path joined with dots.
            accepts: the events; by default all that this state or one around it handles and that
                may come from outside.

        Raises:
            BuildRefused: a second Gate, or an address that is empty or holds a `/`. An empty set
                of events, or one that is not handled, is refused by `Machine.build`.
        """
        self._draft.change()
        if self._draft.gate is not None:
            self._draft.wrong("has two Gates")
        if isinstance(gate, str) and (not gate or "/" in gate):
            self._draft.wrong(f"has a Gate {gate!r}: its id is a text without /")
        self._draft.gate = GateDraft(gate=gate, meta=meta, accepts=accepts)
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
        return Running(self, invoke(self._draft, kind, task, input))


class Running(Generic[C, R]):
    """What a state runs: what happens when it ends is chained to it."""

    def __init__(self, state: State[C], invocation: InvocationDraft) -> None:
        self._state = state
        self._invocation = invocation

    def done(
        self,
        *,
        to: Target[C] | None = None,
        guard: Callable[[C, R], bool] | None = None,
        assign: Callable[[C, R], C] | None = None,
        emit: Callable[[C, R], Message] | None = None,
    ) -> Self:
        """Handle what came back; of several, the first whose guard allows it is taken."""
        name = done_event(self._state._draft, self._invocation)
        self._state._add(name, to, guard, assign, emit)
        return self

    def failed(
        self,
        *,
        to: Target[C] | None = None,
        guard: Callable[[C, TaskError], bool] | None = None,
        assign: Callable[[C, TaskError], C] | None = None,
        emit: Callable[[C, TaskError], Message] | None = None,
    ) -> Self:
        """Handle that it failed; without any `.failed` the run ends with a fault."""
        name = failed_event(self._state._draft, self._invocation)
        self._state._add(name, to, guard, assign, emit)
        return self


class Machine(_Scope[C], Generic[D, C, O]):
    """A Machine that is being written.

    Args:
        id: the Machine's own name; letters, digits, `_` and `-`.
        door: the model of what starts a run; without it any input starts one.
        inside: in place of a door, of the body of a `workspace()`: that one's door.
        slots: of such a body, a `TypedDict` with each Repo Slot that it names; without it a
            misspelt slot is found when the body starts.
        context: the model of a run's data; without it a run has none.
        output: the type of what a run ends with; without it a run ends with nothing.
        start: makes the first context from the input and the run's id.

    Raises:
        BuildRefused: a bad name, or a door, context or output that is no such type.
    """

    @overload
    def __init__(self: Machine[Any, Context, None], id: str) -> None: ...

    @overload
    def __init__(self: Machine[D, Context, None], id: str, *, door: type[D]) -> None: ...

    @overload
    def __init__(self: Machine[Any, Context, O], id: str, *, output: type[O]) -> None: ...

    @overload
    def __init__(
        self: Machine[D, Context, O], id: str, *, door: type[D], output: type[O]
    ) -> None: ...

    @overload
    def __init__(
        self: Machine[Any, C, None],
        id: str,
        *,
        context: type[C],
        start: Callable[[Start[Any]], C],
    ) -> None: ...

    @overload
    def __init__(
        self: Machine[D, C, None],
        id: str,
        *,
        door: type[D],
        context: type[C],
        start: Callable[[Start[D]], C],
    ) -> None: ...

    @overload
    def __init__(
        self: Machine[Any, C, O],
        id: str,
        *,
        context: type[C],
        output: type[O],
        start: Callable[[Start[Any]], C],
    ) -> None: ...

    @overload
    def __init__(
        self: Machine[D, C, O],
        id: str,
        *,
        door: type[D],
        context: type[C],
        output: type[O],
        start: Callable[[Start[D]], C],
    ) -> None: ...

    @overload
    def __init__(
        self: Machine[Inside[W, Worktrees], C, None],
        id: str,
        *,
        inside: type[W],
        context: type[C],
        start: Callable[[Inside[W, Worktrees]], C],
    ) -> None: ...

    @overload
    def __init__(
        self: Machine[Inside[W, Worktrees], C, O],
        id: str,
        *,
        inside: type[W],
        context: type[C],
        output: type[O],
        start: Callable[[Inside[W, Worktrees]], C],
    ) -> None: ...

    @overload
    def __init__(
        self: Machine[Inside[W, S], C, None],
        id: str,
        *,
        inside: type[W],
        slots: type[S],
        context: type[C],
        start: Callable[[Inside[W, S]], C],
    ) -> None: ...

    @overload
    def __init__(
        self: Machine[Inside[W, S], C, O],
        id: str,
        *,
        inside: type[W],
        slots: type[S],
        context: type[C],
        output: type[O],
        start: Callable[[Inside[W, S]], C],
    ) -> None: ...

    def __init__(
        self,
        id: str,
        *,
        door: type[Any] | None = None,
        inside: type[Any] | None = None,
        slots: type[Any] | None = None,
        context: type[Any] | None = None,
        output: type[Any] | None = None,
        start: Callable[[Any], Any] | None = None,
    ) -> None:
        if not isinstance(id, str) or not NAME.fullmatch(id):
            raise BuildRefused(f"a machine's id has letters, digits, _ and - only: {id!r}")
        super().__init__(StateDraft(machine=id, key="", parent=None))
        for what, model in (("the door", door), ("inside=", inside)):
            if model is not None and not _is_model(model):
                raise BuildRefused(
                    self._draft.said(f"has {what} {model!r}: a door is a pydantic model")
                )
        if door is not None and inside is not None:
            raise BuildRefused(
                self._draft.said(
                    "has a door and inside=: the body of a workspace() has no door of its own"
                )
            )
        if context is not None and not (_is_model(context) and issubclass(context, Context)):
            raise BuildRefused(
                self._draft.said(f"has the context {context!r}: it is no subclass of Context")
            )
        if (context is None) is not (start is None):
            raise BuildRefused(self._draft.said("needs start= exactly when it has a context="))
        self._door = door
        if slots is not None and (inside is None or not is_typeddict(slots)):
            raise BuildRefused(
                self._draft.said(
                    f"has slots={slots!r}: beside inside=, slots= is a TypedDict of Repo Slots"
                )
            )
        self._inside = None if inside is None else BodyOf(inside, slots_of(slots))
        self._context: type[Context] = Context if context is None else context
        self._start = (lambda _: Context()) if start is None else start
        self._output = None if output is None else TypeAdapter(output)
        self._parts = PartDrafts(self._draft)

    def final(self, name: str, output: Callable[[C], O] | None = None) -> Final[C]:
        """Make a final state: entering it ends the run.

        Args:
            name: as for a state.
            output: makes what the run ends with; needed exactly when the Machine has `output=`.

        Raises:
            BuildRefused: a bad or repeated name; the rule on `output` is checked by `build`.
        """
        draft = self._draft.add(name, final=True, initial=False)
        draft.output = output
        return Final(draft)

    @overload
    def task(self, name: str, function: Callable[[], Coroutine[Any, Any, R]]) -> Task[None, R]: ...

    @overload
    def task(self, name: str, function: Callable[[I], Coroutine[Any, Any, R]]) -> Task[I, R]: ...

    def task(self, name: str, function: Callable[..., Any]) -> Task[Any, Any]:
        """Name an async function that states can run.

        A task is run at least once: one that was under way when a process died is run again, with
        the same input.

        Args:
            name: the slot; letters, digits, `_` and `-`; unique in the Machine.
            function: takes one argument or none. Argument and result cross a process as JSON, by
                the types of its annotations.

        Raises:
            BuildRefused: a bad or repeated name, or a function that cannot be a task.
        """
        return self._parts.task(name, function)

    def agent(
        self,
        name: str,
        *,
        model: str | Opening,
        instructions: str,
        description: str | None = None,
        workspace: Access = "write",
        thinking_level: ThinkingLevel | None = None,
    ) -> Agent:
        """Name an Agent that states can ask.

        Args:
            name: the slot, and the Agent's name wherever it is named.
            model: `<provider>/<model id>`, or `OPEN` for a composer to bind.
            instructions: the system prompt.
            description: for people alone.
            workspace: `write`; `read`, without the tools that write; or `none`, without any tool
                but the Menu, and outside of the Workspace.
            thinking_level: how hard the model thinks; its own default when absent.

        Raises:
            BuildRefused: the Machine is built. A bad or repeated name, or a field that breaks its
                rule, is said by the build.
        """
        return self._parts.agent(
            name,
            AgentDefinition(
                model=model,
                instructions=instructions,
                description=description,
                workspace=workspace,
                thinking_level=thinking_level,
            ),
        )

    def effect(self, name: str, definition: EffectDefinition[EI, ER]) -> Effect[EI, ER]:
        """Name an Effect that states can run.

        Args:
            name: the slot; letters, digits, `_` and `-`; unique in the Machine.
            definition: a `Command`, an `Http`, an `HttpFile`, a `Push` or a `Dispatch`.

        Raises:
            BuildRefused: the Machine is built. A bad or repeated name, or a field that breaks its
                rule, is said by the build.
        """
        return self._parts.effect(name, definition)

    def build(self) -> BuiltMachine[D, C, O]:
        """Return the Machine, checked; after this, nothing can be added to it.

        Raises:
            BuildRefused: rules of the authoring surface are not met; the text has a line for each,
                which names the Machine and the state.
        """
        self._draft.change()
        output = self._output
        problems = self._draft.problems or list(
            rules.problems(self._draft, with_output=output is not None, door=self._door)
        )
        if problems:
            raise BuildRefused(*problems)
        chart = compile_chart(
            self._draft,
            context=self._context,
            start=self._start,
            encode_output=None
            if output is None
            else lambda value: output.dump_python(output.validate_python(value), mode="json"),
            decode_output=None
            if output is None
            else lambda value: output.validate_json(json_text(value)),
        )
        self._draft.built = True
        return BuiltMachine(
            chart,
            self._door,
            self._parts.tasks,
            agents=self._parts.agents,
            effects=self._parts.effects,
            inside=self._inside,
        )


def _is_model(candidate: Any) -> bool:
    return isinstance(candidate, type) and issubclass(candidate, BaseModel)


def _first(function: Callable[[Any], Any] | None) -> Callable[[Any, Any], Any] | None:
    """Give a function of the context alone the second argument that the kernel passes."""
    if function is None:
        return None
    called = function
    return lambda context, _: called(context)
