"""A run on a desk: each step is made from the bytes of the one before, as a store would keep them."""

from __future__ import annotations

import json
from typing import Any

from pydantic import JsonValue

from jr2 import BuiltMachine, host_wire
from jr2.host_wire import GateEvent, PickEvent, TaskDone, TaskFailed, TimerFired, View


class Run:
    """One run of a Machine, and the commands of its last step."""

    def __init__(self, machine: BuiltMachine[Any, Any, Any], input: JsonValue = None) -> None:
        self.machine = machine
        self.step = machine.start(input, "run-1")

    def send(self, event: host_wire.StepEvent) -> Run:
        """Take one step."""
        stored = self.machine.dump(self.step.snapshot)
        self.step = self.machine.step(self.machine.load(stored), event)
        return self

    def gate(self, gate: str, name: str, **payload: JsonValue) -> Run:
        """Post an event to a Gate."""
        return self.send(GateEvent(gate=gate, name=name, payload=payload))

    def done(self, key: str, output: JsonValue = None) -> Run:
        """Say that a task has returned."""
        return self.send(TaskDone(key=key, output=output))

    def failed(self, key: str, reason: str = "no") -> Run:
        """Say that a task has failed."""
        return self.send(TaskFailed(key=key, reason=reason))

    def fired(self, key: str) -> Run:
        """Say that a timer came due."""
        return self.send(TimerFired(key=key))

    def pick(self, key: str, name: str, **payload: JsonValue) -> Run:
        """Deliver a pick."""
        return self.send(PickEvent(key=key, name=name, payload=payload))

    @property
    def view(self) -> View:
        """What is shown of the run."""
        return self.machine.view(self.step.snapshot)

    @property
    def value(self) -> JsonValue:
        """The active states."""
        return self.view.value

    @property
    def context(self) -> Any:
        """The context as JSON."""
        return json.loads(self.step.snapshot.context_json)

    @property
    def said(self) -> list[str]:
        """The commands of the last step, each as `<kind> <key>` or `emit <type>`."""
        return [
            f"emit {one.type}" if isinstance(one, host_wire.Emit) else f"{one.kind} {one.key}"
            for one in self.step.commands
        ]
