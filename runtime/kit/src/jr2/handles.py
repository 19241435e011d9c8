"""What a transition can lead to, and how a statement becomes a transition of a draft.

Source: spec/authoring.md §2.14.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, Self, TypeAlias, TypeVar

from .drafts import StateDraft, TransitionDraft, actions
from .events import Event, Message
from .run_data import Context

C = TypeVar("C", bound=Context)


class Handle(Generic[C]):
    """A part of a Machine that is being written."""

    def __init__(self, draft: StateDraft) -> None:
        self._draft = draft

    def __repr__(self) -> str:
        state = "" if self._draft.parent is None else f"{self._draft.id!r} of machine "
        return f"<{type(self).__name__} {state}{self._draft.machine!r}>"


class Target(Handle[C]):
    """A handle that a transition can lead to: a state of the same Machine."""


To: TypeAlias = Target[C] | tuple[Target[C], ...] | None
"""Where a transition leads; several are states of different regions of a parallel state."""


class Final(Target[C]):
    """A state that completes the state around it; below the root it ends the run."""

    def entry(
        self,
        *,
        assign: Callable[[C], C] | None = None,
        emit: Callable[[C], Message] | None = None,
    ) -> Self:
        """Do something whenever this is entered, before its output is made."""
        self._draft.change()
        functions(self._draft, "at its entry", assign=assign, emit=emit)
        self._draft.entry += actions(first(assign), first(emit), None)
        return self


class History(Target[C]):
    """What was active in a state when it was left last; before that, its default."""


def add(
    draft: StateDraft,
    name: str,
    to: Any,
    guard: Callable[[Any, Any], bool] | None,
    assign: Callable[[Any, Any], Any] | None,
    emit: Callable[[Any, Any], Message] | None,
    raise_: Callable[[Any, Any], Event] | None,
    *,
    event: type[Event] | None = None,
    internal: bool = False,
) -> None:
    """Write a transition into a draft; a target that is none is noted.

    Raises:
        BuildRefused: the Machine is built.
    """
    draft.change()
    functions(draft, f'on "{name}"', guard=guard, assign=assign, emit=emit, raise_=raise_)
    targets = () if to is None else to if isinstance(to, tuple) else (to,)
    for target in targets:
        if not isinstance(target, Target):
            draft.wrong(f"leads to {target!r}, which is no state of a Machine")
            return
    draft.transitions.append(
        TransitionDraft(
            event=name,
            event_class=event,
            targets=tuple(target._draft for target in targets),
            internal=internal,
            guard=guard,
            actions=actions(assign, emit, raise_),
        )
    )


def functions(draft: StateDraft, where: str, **given: object) -> None:
    """Note what is given in the place of a function and cannot be called."""
    for what, function in given.items():
        if function is not None and not callable(function):
            draft.wrong(f"has {what}={function!r} {where}: give a function")


def first(function: Callable[[Any], Any] | None) -> Callable[[Any, Any], Any] | None:
    """Give a function of the context alone the second argument that the kernel passes."""
    if function is None or not callable(function):
        return function  # what is no function is said by the build
    called = function

    def call(context: Any, _: Any) -> Any:
        return called(context)

    # What the author wrote, for those who read it (`jr2.field_names`).
    call.__dict__["jr2_called"] = called
    return functools.wraps(called)(call) if hasattr(called, "__name__") else call
