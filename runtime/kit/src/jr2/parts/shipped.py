"""The types of the Machines that the Kit ships, so that a checker knows the names of their slots.

A slot is a name of its Machine, and Python's types carry no such names (ADR-0134). For the few
Machines of the Kit they are written down here, as `TypedDict`s, and `customize` has an overload for
each. To a checker such a Machine is a `BuiltMachine` that is no `Named` one, so that a name which
its overload refuses is not taken by the one for all others. At run time it is a `BuiltMachine`.

A test compares what stands here with the Machines.

Source: design §4.2, spec/authoring.md §2.13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypedDict, TypeVar

from ..built import BuiltMachine, ByName
from ..run_data import Context
from .agents import AgentOverride

C = TypeVar("C", bound=Context)
D = TypeVar("D")
O = TypeVar("O")  # noqa: E741 - what a run ends with


class Named(Protocol[D, C, O]):
    """A Machine whose slots only the build knows; each but the Kit's own is one."""

    @property
    def _by(self) -> ByName[D, C, O]: ...


class NoParts(TypedDict):
    """Of a Machine that has no part of a kind."""


class TaskAgents(TypedDict, total=False):
    """The Agents of `jr2_machines.task`."""

    coder: AgentOverride


class ByTask(Generic[D, C, O]):
    """Says to a checker that the parts are those of `jr2_machines.task`."""


if TYPE_CHECKING:

    class TaskMachine(BuiltMachine[D, C, O]):
        """`jr2_machines.task`, and what `customize` makes of it."""

        # Deliberately another type than that of the base, so that it is no `Named` Machine.
        @property
        def _by(self) -> ByTask[D, C, O]: ...  # type: ignore[override]

else:
    TaskMachine = BuiltMachine
