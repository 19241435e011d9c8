"""Finds which states of a Machine share a name and may be active at once, in one pass.

Two states may be active at once when one is inside the other, or when the innermost state around
both is parallel. So each state is compared with the states around it, and at each parallel one with
the first user of the name in another region: the work grows with the number of states and their
depth, and not with the number of pairs.

Source: spec/authoring.md §2.8 and §2.9 (addresses that are unique in a run).
"""

from __future__ import annotations

from itertools import pairwise

from .drafts import StateDraft


class Users:
    """The states that use names, added in document order."""

    def __init__(self) -> None:
        self._seen: dict[StateDraft, int] = {}
        self._at: set[tuple[str, StateDraft]] = set()
        self._below: dict[tuple[str, StateDraft], dict[StateDraft, StateDraft]] = {}
        """By name and parallel state, the first user in each of the first two regions with one."""

    def beside(self, name: str, draft: StateDraft) -> StateDraft | None:
        """Return the first user of a name in another region that may be active with a state."""
        found = [
            user
            for inner, outer in _steps(draft)
            for region, user in self._below.get((name, outer), {}).items()
            if region is not inner
        ]
        return min(found, key=self._seen.__getitem__, default=None)

    def with_(self, name: str, draft: StateDraft) -> StateDraft | None:
        """Return the first user of a name that may be active with a state, around it or beside."""
        found = [above for above in draft.up() if (name, above) in self._at]
        beside = self.beside(name, draft)
        if beside is not None:
            found.append(beside)
        return min(found, key=self._seen.__getitem__, default=None)

    def add(self, name: str, draft: StateDraft) -> None:
        """Say that a state uses a name."""
        self._seen.setdefault(draft, len(self._seen))
        self._at.add((name, draft))
        for inner, outer in _steps(draft):
            if outer.kind == "parallel":
                regions = self._below.setdefault((name, outer), {})
                # Whoever asks is in one region at most, so two tell of another one.
                if len(regions) < 2:
                    regions.setdefault(inner, draft)


def _steps(draft: StateDraft) -> list[tuple[StateDraft, StateDraft]]:
    """Return each state on the way up with the state around it."""
    return [*pairwise(draft.up())]
