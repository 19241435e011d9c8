"""What the pages of the authoring surface print is what the code prints, and their Machines run."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel

from jr2 import (
    OPEN,
    AgentEvent,
    BuildRefused,
    BuiltMachine,
    Command,
    Context,
    Event,
    Http,
    HttpFile,
    Machine,
    Push,
    Size,
    Turn,
    WorkspaceSpec,
    customize,
    workspace,
)
from jr2.drafts import MOST_DEEP
from jr2.host_wire import GateEvent, PickEvent
from jr2.parts import open_parts
from jr2.parts.sandbox_rules import placement_refusals, size_refusals, split_of
from jr2.quantity import format_cpu, format_memory

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)

Built = BuiltMachine[Any, Any, Any]


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def run_block(name: str, number: int = 0) -> dict[str, Any]:
    """Run one Python block of a page, and return its names."""
    blocks = [code for language, code in BLOCK.findall(page(name)) if language == "python"]
    names: dict[str, Any] = {"__name__": f"block_{number}"}
    exec(compile(blocks[number], name, "exec", dont_inherit=True), names)
    return names


# --- Write a Workflow -----------------------------------------------------------------------------
def test_the_agent_of_the_page_asks_back_and_accepts() -> None:
    machine: Built = run_block("write-a-workflow.md")["machine"]
    step = machine.start({"request": "dark mode"}, "run-1")
    (turn,) = step.commands
    assert turn.kind == "start_turn"
    assert (turn.slot, turn.picks) == ("triager", ["accept", "needs_info"])

    step = machine.step(
        step.snapshot,
        PickEvent(key=turn.key, name="needs_info", payload={"question": "where?"}),
    )
    (gate,) = machine.view(step.snapshot).gates
    assert (gate.gate, gate.meta) == ("clarify", {"question": "where?"})

    step = machine.step(
        step.snapshot, GateEvent(gate="clarify", name="answer", payload={"info": "everywhere"})
    )
    (turn,) = [one for one in step.commands if one.kind == "start_turn"]
    assert cast("dict[str, Any]", turn.input)["prompt"] == "everywhere"

    step = machine.step(
        step.snapshot, PickEvent(key=turn.key, name="accept", payload={"summary": "dark mode"})
    )
    assert machine.view(step.snapshot).status == "done"


@pytest.mark.parametrize(("name", "ends"), [("approve", "released"), ("reject", "kept")])
def test_the_composed_machine_of_the_page_asks_in_its_child(name: str, ends: str) -> None:
    machine: Built = run_block("write-a-workflow.md", 2)["machine"]
    step = machine.start("1.2", "run-1")
    (gate,) = machine.view(step.snapshot).gates
    assert (gate.path, gate.meta) == (["approval", "asking"], {"text": "Release 1.2?"})

    step = machine.step(step.snapshot, GateEvent(gate=gate.gate, name=name, payload={}))

    assert machine.view(step.snapshot).value == ends


class Door(BaseModel):
    ticket: str = ""


class Other(BaseModel):
    pass


class Ctx(Context):
    pass


class Finish(AgentEvent):
    pass


class Later(Event, semantics="deferred", output=Ctx):
    pass


def written() -> list[str]:
    """Return what builds that break a rule of the page say, one Machine for each."""
    said: list[str] = []
    for number in range(14):
        m: Machine[Any, Ctx, None] = Machine("ticket", context=Ctx, start=lambda _: Ctx())
        coder = m.agent(
            "coder",
            model="qwen" if number == 0 else "x/y",
            instructions="" if number == 1 else "x",
        )
        a = m.state("a", initial=True)
        asked: Any = lambda c: Turn(prompt="x")  # noqa: E731
        if number == 2:
            m.agent("x", model="x/y", instructions="x")
            m.effect("y", Push(repo="app"))
            m.task("x", sleep)
        if number == 3:
            a.turn(coder, asked).state("b", initial=True).on(Finish)
        if number == 4:
            other: Machine[Any, Ctx, None] = Machine("o", context=Ctx, start=lambda _: Ctx())
            a.turn(other.agent("coder", model="x/y", instructions="x"), asked)
        if number == 5:
            m.effect("tests", Command(argv="make test"))
        if number == 6:
            m.effect("tell", Http(url="https://h", secret="hunter2"))
        if number == 7:
            a.run(m.effect("up", HttpFile(url="https://h")))
        if number == 8:
            a.gate()
        if number == 9:
            a.on(Later)
        if number == 10:
            inner: Any = a
            for _ in range(MOST_DEEP):
                inner = inner.state("s", initial=True)
        if number == 11:
            a.on(Finish, assign=3, to=None)  # type: ignore[arg-type]
        if number == 12:
            a.always()
        if number == 13:
            composed = m
            for _ in range(MOST_DEEP):
                built = composed.build()
                composed = Machine("ticket", context=Ctx, start=lambda _: Ctx())
                composed.state("a", initial=True).invoke(built)
            m = composed
        with pytest.raises(BuildRefused) as refused:
            m.build()
        said += refused.value.problems
    return said


async def sleep() -> None:
    return None


def misspelt(folder: Path) -> list[str]:
    """Return what builds say of a file `workflows/ticket.py` that misspells a field twice."""
    source = """\
from __future__ import annotations
from jr2 import Context, ExternalEvent, Machine
class Go(ExternalEvent): ...
class Ctx(Context):
    notes: str = ""
    rounds: int = 0
class Own(Ctx):
    def again(self) -> Own:
        return self.set(rownds=1)
m = Machine("ticket", context=Ctx, start=lambda _: Ctx())
o = Machine("ticket", context=Own, start=lambda _: Own())
m.state("a", initial=True).on(Go, assign=lambda c, e: c.set(note=""))
o.state("a", initial=True)
"""
    file = folder / "workflows" / "ticket.py"
    file.parent.mkdir()
    file.write_text(source)
    space = runpy.run_path(str(file))
    said: list[str] = []
    for name in ("m", "o"):
        with pytest.raises(BuildRefused) as refused:
            space[name].build()
        said += refused.value.problems
    return said


def slotted(**told: Any) -> list[str]:
    from typing import TypedDict

    class Slots(TypedDict):
        docs: str

    m: Machine[Any, Any, Any] = (
        Machine("ticket", door=Door)
        if not told
        else Machine("ticket", inside=Door, slots=Slots, context=Ctx, start=lambda _: Ctx())
    )
    m.state("a", initial=True)
    with pytest.raises(BuildRefused) as refused:
        workspace(
            m.build(),
            door=Door,
            repos=told.get("repos", {"app": "https://h/a"}),
            spec=lambda door: WorkspaceSpec(branch="b"),
        )
    return list(refused.value.problems)


def test_each_refusal_of_the_page_is_said_by_a_build(tmp_path: Path) -> None:
    rows = re.findall(r"^\| `(.+?)` \| .+ \|$", page("write-a-workflow.md"), re.M)
    rows = [
        row
        for row in rows
        if re.match(r"has |is |asks |sets |runs the|handles |workspace\(\) of", row)
    ]
    said = [
        *written(),
        *misspelt(tmp_path),
        *slotted(),
        *slotted(repos={"app": "https://h/a"}),
        *slotted(repos={"docs": "https://h/a", "a b": "https://h/a"}),
    ]

    assert len(rows) == 19
    for row in rows:
        start = row.removesuffix("…").rstrip().replace("door Ticket", "door Door")
        assert any(start in one for one in said), (row, said)


def test_each_part_without_a_place_is_said_as_the_page_does() -> None:
    def body(**told: Any) -> Built:
        m: Machine[Any, Any, Any] = Machine("ticket", context=Ctx, start=lambda _: Ctx(), **told)
        m.agent("coder", model="x/y", instructions="x")
        m.effect("tests", Command(argv=["make"]))
        m.effect("ship", Push(repo="app"))
        m.state("a", initial=True)
        return m.build()

    wrapped: Built = workspace(
        body(),
        door=Door,
        repos={"target": "https://h/a"},
        spec=lambda door: WorkspaceSpec(branch="b"),
    )
    said = [
        *placement_refusals("w", body()),
        *placement_refusals("w", body(inside=Door)),
        *placement_refusals("w", wrapped),
    ]

    told = page("write-a-workflow.md").split("no place to run:")[1].split("## ")[0]
    lines = re.findall(r"^- `(.+)`$", told, re.M)
    assert len(lines) == 4
    for line in lines:
        assert f'workflow "w": {line}' in said


# --- Bind Open parts ------------------------------------------------------------------------------
def test_the_refusals_of_open_parts_are_those_of_the_page() -> None:
    fix: Built = run_block("bind-open-parts.md")["fix"]
    texts = "".join(
        code for kind, code in BLOCK.findall(page("bind-open-parts.md")) if kind == "text"
    )
    printed = [f"refusing: {text}" for text in open_parts.refusals("fix", fix)]

    assert len(printed) == 3
    for line in printed:
        assert line in texts.splitlines()


def test_the_refusals_of_customize_are_those_of_the_page() -> None:
    fix: Built = run_block("bind-open-parts.md")["fix"]
    wrong: Any = {"agents": {"codr": {}, "coder": {"modle": "x"}}, "effects": {"tel": {}}}

    with pytest.raises(BuildRefused) as refused:
        customize(fix, **wrong)

    assert str(refused.value) in page("bind-open-parts.md")


def test_the_composed_refusal_is_that_of_the_page() -> None:
    part = open_parts.OpenPart(
        kind="agent",
        what='Agent "coder"',
        binding={"agents": {"coder": {"model": "<provider>/<model>"}}},
        path=("work",),
        inline=False,
        adr="ADR-0054",
    )

    assert f"refusing: {open_parts.refusal('all', part)}\n" in page("bind-open-parts.md")


def test_the_bound_machine_of_the_page_has_nothing_open() -> None:
    fix: Built = run_block("bind-open-parts.md")["fix"]
    (code,) = [
        code
        for kind, code in BLOCK.findall(page("bind-open-parts.md"))
        if kind == "python" and "machine = customize" in code
    ]
    names: dict[str, Any] = {"fix": fix}
    exec(compile(code.replace("from ._fix import fix\n", ""), "fix.py", "exec"), names)

    assert open_parts.refusals("fix", names["machine"]) == []
    assert fix.agents == {}
    assert fix.sandbox is not None
    assert fix.sandbox.repos is OPEN


# --- Size a Workspace -----------------------------------------------------------------------------
def test_the_numbers_of_the_page_are_those_of_its_machine() -> None:
    machine: Built = run_block("size-a-workspace.md")["machine"]
    assert machine.sandbox is not None

    split = split_of(machine.sandbox, None)

    assert f"gets {format_memory(split.harness_memory)} and {format_cpu(split.harness_cpu)}." in (
        page("size-a-workspace.md")
    )
    assert size_refusals("fix", machine, None) == []


def test_the_refusal_of_the_page_is_that_of_a_size_that_is_too_small() -> None:
    source = next(
        code for kind, code in BLOCK.findall(page("size-a-workspace.md")) if kind == "python"
    )
    small = source.replace('Size(memory="4Gi", cpu="2")', 'Size(memory="1Gi")')
    names: dict[str, Any] = {"__name__": "small"}
    exec(compile(small, "small.py", "exec"), names)

    (text,) = size_refusals("fix", names["machine"], None)

    assert f"refusing: {text}\n" in page("size-a-workspace.md")
    assert size_refusals("fix", names["machine"], Size(cpu="9")) != [text]
