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
(the id of the run; empty in a child Machine). A nested state is made from its parent:
`parent.state("child", initial=True)`, and `parent.done(to=…)` is taken when a final child is entered.
The handles are in `jr2.states`.

Source: spec/authoring.md §2.14, design §4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar, is_typeddict, overload

from pydantic import BaseModel, TypeAdapter
from pydantic.errors import PydanticUserError

from . import defined, kept, rules
from .built import BuiltMachine as BuiltMachine
from .children import Child
from .drafts import MOST_DEEP, StateDraft, compile_chart
from .errors import BuildRefused as BuildRefused
from .events import NAME
from .handles import Final as Final
from .handles import History as History
from .handles import functions
from .part_drafts import PartDrafts
from .parts.agents import Access, Agent, AgentDefinition, ThinkingLevel
from .parts.effects import Effect, EffectDefinition
from .parts.opening import Opening
from .parts.workspaces import BodyOf, Inside, Worktrees, slots_of
from .run_data import Context, Start
from .states import Scope
from .states import State as State
from .tasks import Task

C = TypeVar("C", bound=Context)
D = TypeVar("D")
O = TypeVar("O")  # noqa: E741 - what a run ends with
I = TypeVar("I")  # noqa: E741 - what a task takes
R = TypeVar("R")
EI = TypeVar("EI", bound=BaseModel)
ER = TypeVar("ER", bound=BaseModel)
S = TypeVar("S")
W = TypeVar("W")
CD = TypeVar("CD")
CO = TypeVar("CO")


class Machine(Scope[C], Generic[D, C, O]):
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
        if start is not None and not callable(start):
            raise BuildRefused(
                self._draft.said(f"has start={start!r}: give a function that makes the context")
            )
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
        self._output_type = output
        self._output = None if output is None else self._adapter(output)
        self._parts = PartDrafts(self._draft)

    def final(self, name: str, output: Callable[[C], O] | None = None) -> Final[C]:
        """Make a final state: entering it ends the run.

        Args:
            name: as for a state.
            output: makes what the run ends with; needed exactly when the Machine has `output=`.

        Raises:
            BuildRefused: a bad or repeated name; the rule on `output` is checked by `build`.
        """
        draft = self._draft.add(name, kind="final")
        functions(draft, "as a final state", output=output)
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

    def child(self, slot: str, machine: BuiltMachine[CD, Any, CO]) -> Child[CD, CO]:
        """Name a Machine that states can invoke; a composer reaches its parts by the slot.

        Args:
            slot: letters, digits, `_` and `-`; unique in the Machine.
            machine: what `.build()`, `workspace()`, `customize()` or `pool()` returned.

        Raises:
            BuildRefused: the Machine is built. A bad or repeated name, or something that is no
                Machine, is said by the build.
        """
        return self._parts.child(slot, machine)

    def build(self) -> BuiltMachine[D, C, O]:
        """Return the Machine, checked; after this, nothing can be added to it.

        Raises:
            BuildRefused: rules of the authoring surface are not met; the text has a line for each,
                which names the Machine and the state.
        """
        self._draft.change()
        output = self._output
        problems = self._draft.problems or [
            *defined.problems(
                self._draft, context=self._context, output=output, tasks=self._parts.tasks
            ),
            *rules.problems(
                self._draft,
                with_output=output is not None,
                door=self._door,
                context=self._context,
                charts={
                    slot: child.chart
                    for slot, child in (*self._parts.children.items(), *self._draft.inline.items())
                },
            ),
        ]
        if problems:
            raise BuildRefused(*problems)
        chart = compile_chart(
            self._draft,
            context=self._context,
            start=self._start,
            encode_output=None if output is None else lambda value: kept.write(output, value),
            decode_output=None if output is None else lambda value: kept.read(output, value),
            children={**self._parts.child_charts(), **self._draft.inline_charts()},
        )
        built: BuiltMachine[D, C, O] = BuiltMachine(
            chart,
            self._door,
            self._parts.tasks,
            agents=self._parts.agents,
            effects=self._parts.effects,
            children={**self._parts.children, **self._draft.inline},
            inside=self._inside,
            output=self._output_type,
        )
        if built.depth > MOST_DEEP:
            raise BuildRefused(
                self._draft.said(
                    f"is {built.depth} states deep with the Machines that it composes, and a "
                    f"snapshot of more than {MOST_DEEP} is not read back"
                )
            )
        self._draft.built = True
        return built

    def _adapter(self, output: Any) -> TypeAdapter[Any]:
        try:
            return TypeAdapter(output)
        except (PydanticUserError, TypeError, ValueError, NameError) as bad:
            raise BuildRefused(
                self._draft.said(f"has output={output!r}, which is no type with a JSON form")
            ) from bad


def _is_model(candidate: Any) -> bool:
    return isinstance(candidate, type) and issubclass(candidate, BaseModel)
