"""The current Assembly and its Workflows, kept in memory and read from the store at the start.

Doors, names and pictures come from the current Assembly. One that was published for another Kit
version is not loaded, so it counts as none (ADR-0056).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import TypeAdapter

from jr2.host_wire import LoadedWorkflow

from ..store.rows import Assembly

_WORKFLOWS: Final = TypeAdapter(list[LoadedWorkflow])


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """The Assembly under which new runs start."""

    hash: str
    workflows: Mapping[str, LoadedWorkflow]
    """By name, in the order of the names."""


def workflows_to_json(workflows: Sequence[LoadedWorkflow]) -> str:
    """Return what an Assembly process said of its Workflows, for the store."""
    return _WORKFLOWS.dump_json(sorted(workflows, key=lambda each: each.name)).decode()


class Registry:
    """Which Assembly is current, for a program of one Kit version."""

    def __init__(self, kit_version: str) -> None:
        self.kit_version = kit_version
        self._current: Current | None = None

    @property
    def current(self) -> Current | None:
        """The current Assembly; `None` before the first publish for this Kit version."""
        return self._current

    @property
    def hash(self) -> str | None:
        """The hash of the current Assembly."""
        return None if self._current is None else self._current.hash

    def take(self, assembly: Assembly) -> None:
        """Make an Assembly the current one, as the store says.

        Raises:
            pydantic.ValidationError: what the store says of its Workflows cannot be read.
        """
        if not assembly.current or assembly.kit_version != self.kit_version:
            return
        self._current = Current(
            hash=assembly.hash,
            workflows={each.name: each for each in _WORKFLOWS.validate_json(assembly.workflows)},
        )

    def forget(self) -> None:
        """Have no current Assembly."""
        self._current = None
