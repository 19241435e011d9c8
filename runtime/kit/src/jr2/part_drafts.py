"""What a Machine that is being written carries: tasks, Agents, Effects, children by slot.

A slot is a name of the Machine, whatever its kind, so one name has one part. What is wrong is noted
for the build; the handle is given in any case, so that the statements after it can be read too.

Source: spec/authoring.md §2.2, §2.4, §2.12.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel, TypeAdapter

from .built import BuiltMachine
from .chart import ChildMachine, InvocationKind
from .children import Child
from .drafts import InvocationDraft, StateDraft
from .errors import BuildRefused
from .events import NAME
from .parts import agents, effect_rules
from .parts.agents import Agent, AgentDefinition
from .parts.effects import Effect, EffectDefinition
from .parts.turns import encode_turn
from .tasks import Task, make_task

EI = TypeVar("EI", bound=BaseModel)
ER = TypeVar("ER", bound=BaseModel)
CD = TypeVar("CD")
CO = TypeVar("CO")
PartKind = Literal["task", "Agent", "Effect", "child Machine"]

_ARTICLE: Final[dict[str, str]] = {
    "task": "a",
    "Agent": "an",
    "Effect": "an",
    "child Machine": "a",
}


class PartDrafts:
    """The parts of one Machine.

    Args:
        root: the root of the Machine that is being written.
    """

    def __init__(self, root: StateDraft) -> None:
        self._root = root
        self._kinds: dict[str, PartKind] = {}
        self.tasks: dict[str, Task[Any, Any]] = {}
        self.agents: dict[str, AgentDefinition] = {}
        self.effects: dict[str, EffectDefinition[Any, Any]] = {}
        self.children: dict[str, BuiltMachine[Any, Any, Any]] = {}

    def task(self, slot: str, function: Callable[..., Any]) -> Task[Any, Any]:
        """Add a task, and return its handle."""
        slot = self.claim("task", slot)
        try:
            task = make_task(self._root, self._root.machine, slot, function)
        except BuildRefused as refused:
            self._root.problems += refused.problems
            anything = TypeAdapter(Any)
            task = Task(self._root, slot, True, function, anything, anything)
        self.tasks[slot] = task
        return task

    def agent(self, slot: str, definition: AgentDefinition) -> Agent:
        """Add an Agent, and return its handle."""
        slot = self.claim("Agent", slot)
        for problem in agents.problems(slot, definition):
            self._root.wrong(problem)
        self.agents[slot] = definition
        return Agent(self._root, slot)

    def effect(self, slot: str, definition: EffectDefinition[EI, ER]) -> Effect[EI, ER]:
        """Add an Effect, and return its handle."""
        slot = self.claim("Effect", slot)
        for problem in effect_rules.problems(slot, definition):
            self._root.wrong(problem)
        self.effects[slot] = definition
        return Effect(self._root, slot, definition)

    def child(self, slot: str, built: BuiltMachine[CD, Any, CO]) -> Child[CD, CO]:
        """Add a child Machine, and return its handle."""
        slot = self.claim("child Machine", slot)
        if not isinstance(built, BuiltMachine):
            self._root.wrong(
                f'has the child Machine "{slot}" {built!r}: give what .build() returned'
            )
        else:
            self.children[slot] = built
        return Child(self._root, slot, built)

    def child_charts(self) -> dict[str, ChildMachine]:
        """Return the child Machines as the kernel runs them."""
        return {slot: built.as_child() for slot, built in self.children.items()}

    def claim(self, kind: PartKind, slot: str) -> str:
        """Take a slot for a part, and return it as a text; a bad or repeated name is noted.

        Raises:
            BuildRefused: the Machine is built.
        """
        self._root.change()
        if not isinstance(slot, str) or not NAME.fullmatch(slot):
            self._root.wrong(
                f"has {_ARTICLE[kind]} {kind} {slot!r}: a name has letters, digits, _ and - only"
            )
            return str(slot)
        first = self._kinds.setdefault(slot, kind)
        if first == kind and slot in self._known():
            self._root.wrong(f'has two {kind}s "{slot}"')
        elif first != kind:
            self._root.wrong(
                f'has {_ARTICLE[first]} {first} and {_ARTICLE[kind]} {kind} called "{slot}"'
            )
        return slot

    def _known(self) -> set[str]:
        return {*self.tasks, *self.agents, *self.effects, *self.children}


def invoke(
    draft: StateDraft,
    kind: InvocationKind,
    part: Task[Any, Any] | Agent | Effect[Any, Any],
    input: Callable[[Any], Any] | None,
) -> InvocationDraft:
    """Have a state run a part of its Machine; what is wrong with that is noted.

    Raises:
        BuildRefused: the Machine is built.
    """
    draft.change()
    made = _invocation(draft, kind, part, input)
    same = sum(1 for other in draft.invocations if other.slot == made.slot)
    made.id = made.slot if not same else f"{made.slot}.{same}"
    draft.invocations.append(made)
    return made


def invoke_child(
    draft: StateDraft,
    kind: InvocationKind,
    part: Child[Any, Any] | BuiltMachine[Any, Any, Any],
    input: Callable[[Any], Any] | None,
    name: str | None,
) -> InvocationDraft:
    """Have a state run another Machine, or one for each item; what is wrong with it is noted.

    Raises:
        BuildRefused: the Machine is built.
    """
    draft.change()
    made = _nothing(kind)
    built: Any = part.built if isinstance(part, Child) else part
    if isinstance(part, Child):
        _own(draft, "invokes the child Machine", part)
        made.slot = made.actor = made.id = part.slot
    elif isinstance(built, BuiltMachine):
        made.actor = made.id = built.id
        made.slot = _inline_slot(draft.root, built)
    if not isinstance(built, BuiltMachine):
        if not isinstance(part, Child):
            draft.wrong(f"invokes {part!r}: give what .child(…) or .build() returned")
    elif built.inside is not None:
        draft.wrong(
            f'invokes the Machine "{built.id}", which is the body of a workspace(): invoke what '
            "workspace() returned"
        )
    elif built.door is not None and input is None:
        draft.wrong(f'invokes the Machine "{built.id}" without its {built.door.__name__}')
    if input is not None and not callable(input):
        draft.wrong(f"gives the input {input!r} to a Machine: give a function of the context")
    if name is not None:
        made.actor = name
        if not isinstance(name, str) or not NAME.fullmatch(name):
            draft.wrong(f"has the child {name!r}: a name has letters, digits, _ and - only")
    made.input = input
    same = sum(1 for other in draft.invocations if other.slot == made.slot)
    made.id = made.id if not same else f"{made.id}.{same}"
    draft.invocations.append(made)
    return made


def _inline_slot(root: StateDraft, built: BuiltMachine[Any, Any, Any]) -> str:
    """Return the slot of a Machine that is invoked without one, the same for each invocation."""
    slot = f"inline:{built.id}"
    number = 0
    while root.inline.setdefault(slot, built) is not built:
        number += 1
        slot = f"inline:{built.id}.{number}"
    return slot


def _invocation(
    draft: StateDraft, kind: InvocationKind, part: Any, input: Callable[[Any], Any] | None
) -> InvocationDraft:
    if kind == "turn":
        if not isinstance(part, Agent):
            draft.wrong(f"asks {part!r}: give what .agent(…) returned")
            return _nothing(kind)
        _own(draft, "asks the Agent", part)
        if not callable(input):
            draft.wrong(
                f'asks the Agent "{part.slot}" {input!r}: give a function of the context that '
                "returns a Turn"
            )
        slot = part.slot
        return _made(kind, slot, input, lambda turn: encode_turn(slot, turn), _same)
    if isinstance(part, Effect):
        _own(draft, "runs the Effect", part)
        takes = part.definition.takes
        _callable(draft, "Effect", part.slot, input)
        if input is None:
            if any(field.is_required() for field in takes.model_fields.values()):
                draft.wrong(f'runs the Effect "{part.slot}" without its {takes.__name__}')
            else:
                input = lambda _: takes()  # noqa: E731 - the default of a parameter
        return _made(kind, part.slot, input, part.encode_input, part.decode_output)
    if not isinstance(part, Task):
        draft.wrong(f"runs {part!r}: give what .task(…) or .effect(…) returned")
        return _nothing(kind)
    _own(draft, "runs the task", part)
    _callable(draft, "task", part.slot, input)
    if part.takes_input and input is None:
        draft.wrong(f'runs the task "{part.slot}" without its input')
    if not part.takes_input and input is not None:
        draft.wrong(f'gives an input to the task "{part.slot}", which takes none')
    return _made(kind, part.slot, input, part.encode_input, part.decode_output)


def _callable(draft: StateDraft, what: str, slot: str, input: object) -> None:
    if input is not None and not callable(input):
        draft.wrong(
            f'gives the input {input!r} to the {what} "{slot}": give a function of the context'
        )


def _own(
    draft: StateDraft, what: str, part: Task[Any, Any] | Agent | Effect[Any, Any] | Child[Any, Any]
) -> None:
    if part.machine is not draft.root:
        draft.wrong(f'{what} "{part.slot}" of another machine')


def _made(
    kind: InvocationKind,
    slot: str,
    input: Callable[[Any], Any] | None,
    encode_input: Callable[[Any], Any],
    decode_output: Callable[[Any], Any],
) -> InvocationDraft:
    return InvocationDraft(
        id=slot,
        kind=kind,
        slot=slot,
        input=input,
        encode_input=encode_input,
        decode_output=decode_output,
    )


def _nothing(kind: InvocationKind) -> InvocationDraft:
    return _made(kind, "nothing", None, _same, _same)


def _same(value: Any) -> Any:
    return value
