"""What a step says that a run shows: of its text, as much is read as has to be known.

The text comes from a process that runs user code, and is stored as it is. Whoever reads it later
must be able to, so all of it is checked, and the status and the number of open Gates are taken from
it. There are two readers: a quick one, which takes a fifth of the time and accepts nothing that the
other one refuses, and one that says in words what is wrong.

Source: spec/runtime.md §1.7, ADR-0169.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from pydantic import ValidationError

from jr2.accepted import problems
from jr2.host_wire import View

_FLAT: Final = 64
"""Brackets of a text for the quick reader: nothing in it lies too deep for those who read it later."""
State = Literal["active", "done", "error", "cancelled"]


class _QuickGate(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    gate: str
    id: str
    path: list[str]
    accepts: list[dict[str, Any]]
    meta: Any = None


class _Quick(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The fields of a `View`; a number that is not finite or too long is refused with its text."""

    status: State
    value: Any
    context: Any = None
    output: Any = None
    children: list[Any] = msgspec.field(default_factory=list)
    fault: str | None = None
    gates: list[_QuickGate] = msgspec.field(default_factory=list)


_read_quickly: Final = msgspec.json.Decoder(_Quick).decode
_read_any: Final = msgspec.json.Decoder().decode


def look(shown: bytes) -> tuple[str, State, int]:
    """Return the text, and the status and the number of open Gates that it shows.

    Raises:
        ValueError: it is not what a run shows; the text says where, without its values.
    """
    if shown.count(b"[") + shown.count(b"{") <= _FLAT:
        try:
            quick = _read_quickly(shown)
        except msgspec.DecodeError:
            pass  # the other reader says what is wrong with it
        else:
            return shown.decode(), quick.status, len(quick.gates)
    return _look_closely(shown)


def _look_closely(shown: bytes) -> tuple[str, State, int]:
    try:
        view = View.model_validate_json(shown)
    except ValidationError as bad:
        raise ValueError(problems(bad)) from bad
    try:
        _read_any(shown)
    except msgspec.DecodeError as bad:
        raise ValueError("it holds a number that is not finite") from bad
    return shown.decode(), view.status, len(view.gates)
