"""What is chained to what a state runs, so that the type of its result flows.

    working.run(tests, lambda c: c.folder).done(to=ship).failed(to=told, assign=…)

A second statement could not know the type (design §4.2).

Source: spec/authoring.md §2.14.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Self, TypeVar

from .drafts import InvocationDraft, StateDraft, done_event, failed_event
from .events import Event, Message
from .handles import To, add
from .run_data import Context
from .tasks import ItemDone, ItemError, TaskError

C = TypeVar("C", bound=Context)
R = TypeVar("R")


class Running(Generic[C, R]):
    """What a state runs: what happens when it ends is chained to it."""

    def __init__(self, draft: StateDraft, invocation: InvocationDraft) -> None:
        self._draft = draft
        self._invocation = invocation

    def done(
        self,
        *,
        to: To[C] = None,
        guard: Callable[[C, R], bool] | None = None,
        assign: Callable[[C, R], C] | None = None,
        emit: Callable[[C, R], Message] | None = None,
        raise_: Callable[[C, R], Event] | None = None,
    ) -> Self:
        """Handle what came back; of several, the first whose guard allows it is taken."""
        name = done_event(self._draft, self._invocation)
        add(self._draft, name, to, guard, assign, emit, raise_)
        return self

    def failed(
        self,
        *,
        to: To[C] = None,
        guard: Callable[[C, TaskError], bool] | None = None,
        assign: Callable[[C, TaskError], C] | None = None,
        emit: Callable[[C, TaskError], Message] | None = None,
        raise_: Callable[[C, TaskError], Event] | None = None,
    ) -> Self:
        """Handle that it failed; without any `.failed` the run ends with a fault."""
        name = failed_event(self._draft, self._invocation)
        add(self._draft, name, to, guard, assign, emit, raise_)
        return self


class Items(Generic[C, R]):
    """The child Machines that a state runs, one for each item of its context."""

    def __init__(self, draft: StateDraft, invocation: InvocationDraft) -> None:
        self._draft = draft
        self._invocation = invocation

    def done(
        self,
        *,
        to: To[C] = None,
        guard: Callable[[C, ItemDone[R]], bool] | None = None,
        assign: Callable[[C, ItemDone[R]], C] | None = None,
        emit: Callable[[C, ItemDone[R]], Message] | None = None,
        raise_: Callable[[C, ItemDone[R]], Event] | None = None,
    ) -> Self:
        """Handle that the Machine of one item has ended; the others go on."""
        name = done_event(self._draft, self._invocation)
        add(self._draft, name, to, guard, assign, emit, raise_)
        return self

    def failed(
        self,
        *,
        to: To[C] = None,
        guard: Callable[[C, ItemError], bool] | None = None,
        assign: Callable[[C, ItemError], C] | None = None,
        emit: Callable[[C, ItemError], Message] | None = None,
        raise_: Callable[[C, ItemError], Event] | None = None,
    ) -> Self:
        """Handle that the Machine of one item failed; without it the run ends with a fault."""
        name = failed_event(self._draft, self._invocation)
        add(self._draft, name, to, guard, assign, emit, raise_)
        return self
