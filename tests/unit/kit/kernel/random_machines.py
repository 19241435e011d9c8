"""Random Machines, each from a specification of plain data, so that another process can make it too.

A specification is a tree of states with regions, history, final states, tasks, timers, Gates, child
Machines and actions, and routes between them; a route names its target by a number.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from pydantic import TypeAdapter

from jr2 import BuiltMachine, Context, Event, InternalEvent, Machine, Message, host_wire
from jr2.states import State

Spec = dict[str, Any]


class Red(Event):
    n: int = 0


class Green(Event):
    n: int = 0


class Inner(InternalEvent):
    n: int = 0


class Told(Message):
    n: int


class Ctx(Context):
    n: int = 0
    log: tuple[str, ...] = ()


async def work(n: int) -> int:
    return n


WRONG = ("guard", "assign", "emit", "raise_")
"""The function of a transition that does not do as it must."""
VALUES: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "zero": lambda: 0,
    "one": lambda: 1,
    "text": lambda: "text",
    "empty": tuple,
    "list": lambda: [Told(n=1)],
    "event": lambda: Inner(n=1),
    "message": lambda: (Told(n=2), Told(n=3)),
    "model": lambda: Red(n=1),
    "class": lambda: Ctx,
    "unchecked": lambda: Ctx.model_construct(**dict[str, Any](n="text")),
    "lacking": lambda: EVENTS["nothing"],
    "unfit": lambda: Ctx.model_validate({"n": []}),
}
"""What it gives back in place of what it must."""
EVENTS: dict[str, type[Event]] = {"red": Red, "green": Green, "inner": Inner}


@st.composite
def specs(draw: st.DrawFn, *, with_child: bool = True, wrong: bool = False) -> Spec:
    """Draw the specification of a Machine.

    Args:
        with_child: whether it may have a child Machine.
        wrong: whether functions of it may raise, or give back what they must not.
    """
    child = None
    if with_child and draw(st.booleans()):
        child = draw(specs(with_child=False, wrong=wrong))
    count = [0]
    wrongs = st.sampled_from([*[None] * 12, *WRONG]) if wrong else st.none()

    def route(**more: Any) -> Spec:
        return {
            "to": draw(st.one_of(st.none(), st.integers(0, 30))),
            "bar": draw(st.sampled_from([0, 0, 0, 1, 3])),
            "adds": draw(st.booleans()),
            "tells": draw(st.integers(0, 5)) == 0,
            "raises": draw(st.integers(0, 5)) == 0,
            "wrong": draw(wrongs),
            "what": draw(st.sampled_from(sorted(VALUES))) if wrong else "none",
            **more,
        }

    def routes(most: int) -> list[Spec]:
        return [route() for _ in range(draw(st.integers(0, most)))]

    def state(depth: int) -> Spec:
        count[0] += 1
        inner = draw(st.sampled_from(["atomic", "compound", "parallel"])) if depth < 3 else "atomic"
        many = 0 if inner == "atomic" or count[0] > 12 else draw(st.integers(1, 3))
        return {
            "parallel": inner == "parallel" and many > 0,
            "states": [state(depth + 1) for _ in range(many)],
            "final": many > 0 and inner == "compound" and draw(st.booleans()),
            "history": draw(st.sampled_from([None, "shallow", "deep"])) if many else None,
            "gate": draw(st.booleans()),
            "entry": draw(st.booleans()),
            "exit": draw(st.booleans()),
            "done": route() if many and draw(st.booleans()) else None,
            "on": [
                route(event=draw(st.sampled_from(sorted(EVENTS))), internal=draw(st.booleans()))
                for _ in range(draw(st.integers(0, 3)))
            ],
            "tasks": [
                {"done": route(), "failed": [route()] if draw(st.integers(0, 9)) else []}
                for _ in range(draw(st.integers(0, 2)))
            ],
            "timers": routes(1),
            "always": routes(1) if draw(st.integers(0, 4)) == 0 else [],
            "child": child is not None and draw(st.booleans()),
        }

    return {
        "child": child,
        "final": draw(st.booleans()),
        "states": [state(1) for _ in range(draw(st.integers(1, 3)))],
    }


def build(spec: Spec) -> BuiltMachine[Any, Ctx, None]:
    """Return the Machine of a specification."""
    m = Machine("random", context=Ctx, start=lambda _: Ctx())
    task = m.task("work", work)
    child = None if spec["child"] is None else m.child("child", build(spec["child"]))
    made: list[tuple[State[Ctx], Spec]] = []
    targets: list[Any] = []

    def grow(parent: Any, inner: Spec) -> None:
        for number, one in enumerate(inner["states"]):
            initial = number == 0 and not inner.get("parallel")
            state = parent.state(f"s{number}", initial=initial, parallel=one["parallel"])
            made.append((state, one))
            targets.append(state)
            grow(state, one)
            if one["final"]:
                targets.append(state.final("end"))
            if one["history"] is not None:
                targets.append(state.history(deep=one["history"] == "deep"))

    grow(m, spec)
    if spec["final"]:
        targets.append(m.final("end"))

    def route(one: Spec) -> dict[str, Any]:
        bar = one["bar"]
        made: dict[str, Any] = {
            "to": None if one["to"] is None else targets[one["to"] % len(targets)],
            "guard": lambda c, *_: c.n % 5 >= bar,
            "assign": (lambda c, *_: c.set(n=c.n + 1)) if one["adds"] else None,
            "emit": (lambda c, *_: Told(n=c.n)) if one["tells"] else None,
            "raise_": (lambda c, *_: Inner(n=c.n)) if one["raises"] else None,
        }
        if one["wrong"] is not None:
            made[one["wrong"]] = lambda *_: VALUES[one["what"]]()
        return made

    def writes(line: str) -> Callable[[Ctx], Ctx]:
        return lambda c: c.set(log=(*c.log, line)[-8:])

    for index, (state, one) in enumerate(made):
        if one["entry"]:
            state.entry(assign=writes(f"+{index}"))
        if one["exit"]:
            state.exit(assign=writes(f"-{index}"))
        if one["done"] is not None:
            state.done(**route(one["done"]))
        for on in one["on"]:
            state.on(EVENTS[on["event"]], internal=on["internal"], **route(on))
        for running in one["tasks"]:
            ran = state.run(task, lambda c: c.n).done(**route(running["done"]))
            for failed in running["failed"]:
                ran.failed(**route(failed))
        for number, timer in enumerate(one["timers"]):
            state.after(timedelta(seconds=number + index), **route(timer))
        for always in one["always"]:
            state.always(**route(always))
        if one["child"]:
            assert child is not None
            state.invoke(child, id=f"child{index}").done(to=targets[index % len(targets)]).failed()
        state.on(Red, assign=lambda c, e: c.set(n=c.n + e.n))
        if one["gate"]:
            state.gate()
    return m.build()


_EVENT: TypeAdapter[Any] = TypeAdapter(host_wire.StepEvent)


def answer(asked: str) -> str:
    """Make one step from a specification, the bytes of a snapshot, and an event."""
    spec, stored, event = json.loads(asked)
    machine = build(spec)
    step = machine.step(machine.load(stored.encode()), _EVENT.validate_python(event))
    said = [command.model_dump(mode="json") for command in step.commands]
    return json.dumps([machine.dump(step.snapshot).decode(), said])


if __name__ == "__main__":
    for line in sys.stdin:
        print(answer(line), flush=True)
