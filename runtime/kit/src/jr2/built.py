"""A Machine that can be run: its chart, its door and its tasks behind one object.

It holds no run. Each method is a function of what it is given, but for `run_task`, which does what
the author's function does.

Source: design §4.1 and §4.2, spec/runtime.md §1.4, §1.7, §1.8.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, JsonValue
from pydantic_core import to_jsonable_python

from . import accepted, host_wire, kept, kernel
from .chart import Chart, ChildMachine
from .document import document, view, view_json
from .kernel import EventRefused, Step
from .nesting import TooDeep, shallow
from .parts.providing import NOTHING, FakeAgent, FakeEffect, Fakes, FakeTask, provide
from .run_data import Context, Start
from .shape import shape_digest
from .snapshot import Snapshot, from_json, json_text
from .tasks import Task

if TYPE_CHECKING:
    from .parts.agents import AgentDefinition
    from .parts.effects import EffectDefinition
    from .parts.workspaces import BodyOf, SandboxParts

C = TypeVar("C", bound=Context)
D = TypeVar("D")
O = TypeVar("O")  # noqa: E741 - what a run ends with


class InputRefused(EventRefused):
    """The input of a run does not fit the door; the text names the accepted shape."""

    def __init__(self, message: str) -> None:
        super().__init__(400, message)


class ByName(Generic[D, C, O]):
    """Says to a checker that the slots of a Machine are names (`jr2.parts.shipped`)."""


class BuiltMachine(Generic[D, C, O]):
    """A Machine that can be run: what `Machine.build` returns and a Workflow exports.

    It is not changed by anything that is done with it; runs are snapshots, outside of it.
    """

    def __init__(
        self,
        chart: Chart,
        door: type[BaseModel] | None,
        tasks: Mapping[str, Task[Any, Any]],
        *,
        agents: Mapping[str, AgentDefinition] = MappingProxyType({}),
        effects: Mapping[str, EffectDefinition[Any, Any]] = MappingProxyType({}),
        children: Mapping[str, BuiltMachine[Any, Any, Any]] = MappingProxyType({}),
        sandbox: SandboxParts | None = None,
        inside: BodyOf | None = None,
        output: Any = None,
    ) -> None:
        self.chart = chart
        self.door = door
        """The model of what starts a run; `None`: any input does."""
        self.tasks = tasks
        """By slot."""
        self.agents = agents
        """By slot."""
        self.effects = effects
        """By slot."""
        self.children = children
        """The composed Machines, by the slot that they have in the chart, the inline ones too."""
        self.sandbox = sandbox
        """Of a `workspace()`: what its Sandbox is made of."""
        self.inside = inside
        """Of the body of a `workspace()`: the door and the Repo Slots that it is written for."""
        self.provided = NOTHING
        """The stand-ins that `provide` gave it."""

        self.output = output
        """The type of what a run ends with; `None`: it ends with nothing."""
        self.wraps: str | None = None
        """The slot of the one Machine that a composer of this one means, as in a `pool()`."""

    if TYPE_CHECKING:

        @property
        def _by(self) -> ByName[D, C, O]: ...

    def __repr__(self) -> str:
        return f"<BuiltMachine {self.id!r}>"

    @property
    def id(self) -> str:
        """The Machine's own name."""
        return self.chart.id

    @property
    def actors(self) -> dict[str, BuiltMachine[Any, Any, Any]]:
        """The composed Machines that a slot leads to: not the inline ones, nor a Workspace's body."""
        if self.sandbox is not None:
            return {}
        return {
            slot: child
            for slot, child in self.children.items()
            if not self.chart.children[slot].inline
        }

    def replaced(
        self,
        *,
        agents: Mapping[str, AgentDefinition],
        effects: Mapping[str, EffectDefinition[Any, Any]],
        children: Mapping[str, BuiltMachine[Any, Any, Any]],
    ) -> BuiltMachine[D, C, O]:
        """Return this Machine with other parts under the same slots.

        Args:
            agents: all Agents.
            effects: all Effects.
            children: the composed Machines that are others now.
        """
        charts = {
            slot: dataclasses.replace(child, chart=children[slot].chart)
            if slot in children
            else child
            for slot, child in self.chart.children.items()
        }
        made = copy.copy(self)
        made.__dict__.pop("_shape", None)
        made.chart = dataclasses.replace(self.chart, children=MappingProxyType(charts))
        made.agents = MappingProxyType(dict(agents))
        made.effects = MappingProxyType(dict(effects))
        made.children = MappingProxyType({**self.children, **children})
        return made

    def provide(
        self,
        *,
        agents: Mapping[str, FakeAgent] = MappingProxyType({}),
        effects: Mapping[str, FakeEffect] = MappingProxyType({}),
        tasks: Mapping[str, FakeTask] = MappingProxyType({}),
        actors: Mapping[str, Fakes] = MappingProxyType({}),
    ) -> BuiltMachine[D, C, O]:
        """Return this Machine with stand-ins, for a test (`jr2.parts.providing`).

        Args:
            agents: by slot, a function of the `Turn` that returns the picked event.
            effects: by slot, a function of the Effect's input that returns its result.
            tasks: by slot, a function of the task's input, `async` or not.
            actors: the same again for composed Machines, by slot.

        Raises:
            BuildRefused: a slot that it does not have, or no function; the text has a line for
                each.
        """
        return provide(
            self, {"agents": agents, "effects": effects, "tasks": tasks, "actors": actors}
        )

    def input_schema(self) -> dict[str, Any] | None:
        """Return the JSON Schema of the door, or `None` when there is no door."""
        return None if self.door is None else accepted.schema(self.door)

    def shape(self) -> str:
        """Return the shape digest, 12 hex digits (`jr2.shape`)."""
        return self._shape

    def document(self) -> dict[str, Any]:
        """Return the structure tree (`jr2.document`)."""
        return document(self.chart)

    def start(self, input: JsonValue, run_id: str) -> Step:
        """Make a run.

        Args:
            input: what the caller sent, as JSON.
            run_id: the id of the run.

        Raises:
            InputRefused: the input does not fit the door.
        """
        parsed: Any = input
        if self.door is None:
            try:
                shallow(json_text(input))
            except TooDeep as deep:
                text = f'the input of machine "{self.id}" does not fit: {deep}'
                raise InputRefused(text) from None
        else:
            try:
                parsed = accepted.parse(self.door, input)
            except accepted.Unfit as unfit:
                raise InputRefused(
                    f'the input of machine "{self.id}" does not fit: {unfit} — it takes '
                    f"{accepted.shape_line(self.door)}"
                ) from None
        return kernel.start(self.chart, Start(door=parsed, run_id=run_id))

    def as_child(self, *, inline: bool = False) -> ChildMachine:
        """Return this Machine as another one runs it."""
        return ChildMachine(chart=self.chart, start=self.child_start, inline=inline)

    def child_start(self, value: Any) -> Start[Any]:
        """Return what the Machine starts from, as a child whose parent gives it a value.

        Raises:
            TypeError: the value is no instance of the door.
            ValueError: it does not fit the door, or, without a door, has no JSON form.
        """
        if self.door is None:
            return Start(door=to_jsonable_python(value), run_id="")
        if not isinstance(value, self.door):
            raise TypeError(f"returned {type(value).__name__}, not {self.door.__name__}")
        # Read as it is for a run: a model that was made without validation goes no further.
        try:
            return Start(door=kept.read_model(self.door, kept.write_model(value)), run_id="")
        except accepted.Unfit as unfit:
            raise ValueError(str(unfit)) from None

    def step(self, snapshot: Snapshot, event: host_wire.StepEvent) -> Step:
        """Give one event to a run (`jr2.kernel.step`).

        Raises:
            EventRefused: the event is not for this run now.
        """
        return kernel.step(self.chart, snapshot, event)

    def fault(self, snapshot: Snapshot, text: str) -> Step:
        """End a run with a fault that is not its Machine's own."""
        return kernel.fault(self.chart, snapshot, text)

    def cancel(self, snapshot: Snapshot) -> Step:
        """End a run because somebody wants it to (`jr2.kernel.cancel`)."""
        return kernel.cancel(self.chart, snapshot)

    def at(self, slots: Iterable[str]) -> BuiltMachine[Any, Any, Any] | None:
        """Return the Machine that is composed at a way of slots, or `None`.

        Args:
            slots: from this Machine, as `StartTask.machine` has them; empty: this one.
        """
        found: BuiltMachine[Any, Any, Any] | None = self
        for slot in slots:
            if found is not None:
                found = found.children.get(slot)
        return found

    def view(self, snapshot: Snapshot) -> host_wire.View:
        """Return what is shown of a run."""
        return view(self.chart, snapshot)

    def view_json(self, snapshot: Snapshot) -> bytes:
        """Return what is shown of a run as the JSON text of a `host_wire.View`."""
        return view_json(self.chart, snapshot).encode()

    def dump(self, snapshot: Snapshot) -> bytes:
        """Return a snapshot as bytes for the store."""
        return snapshot.to_json(self.chart)

    def load(self, data: bytes) -> Snapshot:
        """Read a snapshot from the store.

        Raises:
            SnapshotError: it is no snapshot of this Machine.
        """
        return from_json(self.chart, data)

    async def run_task(self, slot: str, input: JsonValue) -> JsonValue:
        """Run a task on an input that a `StartTask` command carried.

        Raises:
            KeyError: there is no such task.
            Exception: whatever the task raises.
        """
        return await self.tasks[slot].run(input)

    @cached_property
    def depth(self) -> int:
        """How deep states are nested in it, those of the Machines that it composes included."""
        own = max(len(node.path) for node in self.chart.nodes)
        return own + max((child.depth for child in self.children.values()), default=0)

    @cached_property
    def _shape(self) -> str:
        return shape_digest(self.chart)
