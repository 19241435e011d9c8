"""The commands of one step, gathered over all Machines of a run.

What was started in the same step and stopped again leaves no command at all. A child Machine that
fails takes back what it said in this step: a mark is made before it goes on, and undone then.

Source: design §4.3.
"""

from __future__ import annotations

from typing import Any, Final

from ..host_wire import (
    Command,
    DisarmTimer,
    StopEffect,
    StopSandbox,
    StopTask,
    StopTurn,
)

MAX_MICROSTEPS: Final = 1_000
"""How many transitions one step may take before it is said not to end."""

_STOPS: Final[dict[str, type[StopTask | StopTurn | StopEffect | StopSandbox]]] = {
    "task": StopTask,
    "effect": StopEffect,
    "turn": StopTurn,
    "sandbox": StopSandbox,
}


def stop_command(kind: str, key: str) -> Command:
    """Return the command that stops what a key stands for."""
    return DisarmTimer(key=key) if kind == "after" else _STOPS[kind](key=key)


class Outbox:
    """What one step says to the outside, and what its Machines share while it is made.

    Args:
        addresses: the open Gates of the run.
        heard: the key of what has ended by this step, which is not stopped any more.
    """

    __slots__ = ("addresses", "emits", "heard", "starts", "stops", "taken")

    def __init__(self, addresses: set[str], heard: str = "") -> None:
        self.addresses = addresses
        self.heard = heard
        self.stops: list[Command] = []
        self.emits: list[Command] = []
        self.starts: dict[str, Command] = {}
        self.taken = 0

    def start(self, key: str, command: Command) -> None:
        """Say that something begins."""
        self.starts[key] = command

    def stop(self, kind: str, key: str) -> None:
        """Say that something ends."""
        if self.starts.pop(key, None) is None and key != self.heard:
            self.stops.append(stop_command(kind, key))

    def commands(self) -> tuple[Command, ...]:
        """Return what stops, what is told, and what starts, in this order."""
        return (*self.stops, *self.emits, *self.starts.values())

    def mark(self) -> Any:
        """Return what `undo` goes back to."""
        return len(self.stops), len(self.emits), dict(self.starts), set(self.addresses)

    def undo(self, mark: Any) -> None:
        """Forget what was said since the mark."""
        stops, emits, self.starts, addresses = mark
        del self.stops[stops:]
        del self.emits[emits:]
        self.addresses.clear()
        self.addresses.update(addresses)
