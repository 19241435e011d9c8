"""Child Machines: the handle of a Machine that another one carries under a slot.

A child runs inside the run of its parent: one run, one snapshot, one run id. Its events stay its
own; its Gates are listed under the run, with the actor path before their names.

Source: spec/authoring.md §2.9 and §2.11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from .built import BuiltMachine

D = TypeVar("D")
O = TypeVar("O")  # noqa: E741 - what the child ends with


@dataclass(frozen=True, slots=True, eq=False)
class Child(Generic[D, O]):
    """The handle of a child Machine, made by `Machine.child`; it is given to `State.invoke`."""

    machine: object
    """The Machine that carries it, compared by identity."""
    slot: str
    built: BuiltMachine[D, Any, O]
