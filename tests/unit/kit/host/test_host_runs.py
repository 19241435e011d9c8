"""What an Assembly process loads, and the steps of its runs."""

from __future__ import annotations

import json
import os
import sysconfig
from typing import Any

import pytest

from jr2 import host_wire, names
from jr2.host import stepped_json
from jr2.kernel import Step
from jr2.snapshot import Snapshot
from tests.unit.kit.host.conftest import KIT, PING, TASKS, Assembly


def test_a_run_from_load_to_output(start: Any) -> None:
    process = start()
    loaded = process.load()
    assert loaded["problems"] == []
    assert (loaded["kit_version"], loaded["instance"]) == (names.KIT_VERSION, "demo")
    (workflow,) = loaded["workflows"]
    assert (workflow["name"], workflow["machine_id"]) == ("ping", "ping")
    assert workflow["input"]["properties"]["message"]["default"] == "ping"
    assert len(workflow["shape"]) == 12
    assert workflow["document"]["initial"] == "responding"

    stepped, snapshot = process.ask(
        op="start", workflow="ping", run_id="run-1", body=b'{"message": "hi"}'
    )
    assert stepped["view"]["status"] == "active"
    (command,) = stepped["commands"]
    returned, _ = process.ask(
        op="task",
        workflow="ping",
        run_id="run-1",
        key=command["key"],
        machine=command["machine"],
        slot=command["slot"],
        input=command["input"],
    )
    assert returned == {
        "kind": "task_done",
        "id": 3,
        "key": command["key"],
        "output": "pong: hi",
    }
    event = {"kind": "task_done", "key": command["key"], "output": returned["output"]}
    stepped, snapshot = process.ask(
        op="step", workflow="ping", run_id="run-1", event=event, body=snapshot
    )

    view = host_wire.View.model_validate(stepped["view"])
    assert view.status == "done"
    assert view.output == {"reply": "pong: hi"}
    assert json.loads(snapshot)["status"] == "done"
    assert "a line of user code" in process.errors.read_text()


def test_an_empty_body_is_no_input(start: Any) -> None:
    process = start()
    process.load()

    refused, _ = process.ask(op="start", workflow="ping", run_id="run-1")

    assert (refused["kind"], refused["code"]) == ("refused", 400)
    assert refused["error"].endswith("it takes {message?: string}")


def test_what_cannot_be_served_is_answered_and_the_process_goes_on(start: Any) -> None:
    process = start()

    replies = [
        process.ask(op="start", workflow="ping", run_id="run-1")[0],
        process.ask(op="dance")[0],
        process.ask(op="step", workflow="ping")[0],
        process.load(),
        process.ask(op="step", workflow="ping", event={"kind": "timer", "key": "x"})[0],
        process.ask(op="step", workflow="ping", body=b"{}")[0],
        process.ask(op="task", workflow="ping", key="k", slot="none")[0],
        process.ask(op="task", workflow="ping", key="k", slot="respond", machine=["child"])[0],
        process.ask(op="start", workflow="ping", body=b"{}")[0],
        process.ask(op="start", workflow="ping", run_id="run-1", body=b"{")[0],
    ]

    assert [(reply["kind"], reply.get("error")) for reply in replies] == [
        ("broken", 'no Workflow "ping" is loaded (loaded: none)'),
        (
            "broken",
            "no request: op: Input should be 'load', 'start', 'step', 'task', 'stop_task' or "
            "'ping'",
        ),
        ("broken", 'no Workflow "ping" is loaded (loaded: none)'),
        ("loaded", None),
        ("broken", "no request: run_id is missing"),
        ("broken", "no snapshot of machine 'ping': KeyError"),
        ("broken", 'machine "ping" has no task "none"'),
        ("broken", "no child Machine at 'child'"),
        ("broken", "no request: run_id is missing"),
        ("refused", "the input is not JSON"),
    ]


def test_a_gate_is_refused_with_its_code(assembly: Assembly, start: Any) -> None:
    assembly.workflow("tasks", TASKS)
    process = start()
    process.load()
    _, snapshot = process.ask(op="start", workflow="tasks", run_id="r")

    def refused(**event: Any) -> tuple[int, str]:
        reply, body = process.ask(
            op="step", workflow="tasks", event={"kind": "gate", **event}, body=snapshot
        )
        assert (reply["kind"], body) == ("refused", b"")
        return reply["code"], reply["error"]

    assert refused(gate="b", name="go", payload={}) == (404, 'no open Gate "b" (open: a)')
    assert refused(gate="a", name="no", payload={})[0] == 400
    assert refused(gate="a", name="go", payload={"size": "x"})[0] == 400
    assert refused(gate="a", name="go", payload={}, id="a#7")[0] == 412


def test_the_process_imports_the_kit_and_the_assembly_and_nothing_else(
    assembly: Assembly, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    assembly.workflow("tasks", TASKS)
    process = start()
    process.load()

    process.task("paths")
    paths = process.read()[0]["output"]
    process.task("environment")
    environment = process.read()[0]["output"]

    own = [*KIT.split(os.pathsep), str(assembly.root / "packages"), str(assembly.instance)]
    assert [path for path in paths if path in own] == own
    standard = sysconfig.get_path("stdlib")
    others = [path for path in paths if path not in own]
    assert all(path.startswith(standard) or path.endswith(".zip") for path in others)
    assert environment.keys() <= {"HOME", "LC_CTYPE"}


def test_a_workflow_imports_a_package_of_its_assembly(assembly: Assembly, start: Any) -> None:
    (assembly.root / "packages" / "greeting.py").write_text('WORD = "moin"\n')
    assembly.workflow(
        "ping",
        PING.replace('f"pong', 'f"{greeting.WORD}').replace(
            "from pydantic", "import greeting\nfrom pydantic", 1
        ),
    )
    process = start()
    assert process.load()["problems"] == []

    process.send(op="task", workflow="ping", run_id="r", key="k", slot="respond", input="hi")

    assert process.read()[0]["output"] == "moin: hi"


def test_a_snapshot_over_the_limit_is_a_fault_of_the_run(assembly: Assembly, start: Any) -> None:
    assembly.workflow("tasks", TASKS)
    process = start()
    process.load()
    _, snapshot = process.ask(op="start", workflow="tasks", run_id="r")
    event = {"kind": "gate", "gate": "a", "name": "go", "payload": {"size": names.MAX_SNAPSHOT}}

    stepped, after = process.ask(op="step", workflow="tasks", event=event, body=snapshot)

    assert stepped["view"]["status"] == "error"
    assert stepped["view"]["fault"].startswith("the run's snapshot would have 10")
    assert json.loads(after)["context"] == {"text": ""}


def test_a_start_over_the_limit_is_refused(assembly: Assembly, start: Any) -> None:
    assembly.workflow("tasks", TASKS)
    process = start()
    process.load()

    refused, _ = process.ask(
        op="start", workflow="tasks", run_id="r", body=str(names.MAX_SNAPSHOT).encode()
    )

    assert (refused["kind"], refused["code"]) == ("refused", 400)
    assert f"over the limit of {names.MAX_SNAPSHOT} bytes" in refused["error"]


def load_problems(start: Any) -> list[str]:
    loaded = start().load()
    assert loaded["kind"] == "loaded"
    problems: list[str] = loaded["problems"]
    return problems


def test_another_kit_version_is_not_loaded(assembly: Assembly, start: Any) -> None:
    assembly.manifest(kitVersion="0.9.9")
    assembly.config("raise SystemExit('imported')")

    assert load_problems(start) == [
        f"the Assembly cannot be loaded: it is for Kit version 0.9.9; "
        f"this Orchestrator is {names.KIT_VERSION}"
    ]


def test_an_assembly_without_a_manifest_is_not_loaded(assembly: Assembly, start: Any) -> None:
    (assembly.root / names.ASSEMBLY_MANIFEST).unlink()

    assert load_problems(start) == ["assembly.json cannot be read: No such file or directory"]


def test_a_manifest_that_is_none_is_not_loaded(assembly: Assembly, start: Any) -> None:
    (assembly.root / names.ASSEMBLY_MANIFEST).write_text("{}")

    (problem,) = load_problems(start)
    assert problem.startswith("assembly.json is no manifest: kitVersion: Field required")


def test_all_problems_of_an_assembly_are_listed(assembly: Assembly, start: Any) -> None:
    assembly.config("")
    assembly.workflow("bad", "from jr2 import Machine\nmachine = Machine('bad').build()\n")
    assembly.workflow("plain", "machine = 3\n")
    assembly.workflow("raises", "1 / 0\n")
    assembly.manifest(workflows=["bad", "gone", "ping", "plain", "raises"])

    problems = load_problems(start)

    assert len(problems) == 5
    assert 'has no "config"' in problems[0]
    assert problems[1] == 'workflow "gone": the Assembly does not hold workflows/gone.py'
    assert problems[2] == 'workflow "bad": machine "bad": has no states'
    assert problems[3].startswith('workflow "plain": `machine` is an object of type int, but')
    assert problems[4].startswith('workflow "raises": workflows/raises.py did not load — Zero')


CARRIES = """
from jr2 import *


class Submit(AgentEvent):
    pass


m = Machine("m")
coder = m.agent("coder", model=OPEN, instructions="x", workspace="none")
m.effect("notify", Http(url="https://h/x", secret="OTHER"))
m.effect("other", Http(url="https://h/x", secret="TOKEN"))
s, d = m.state("s", initial=True), m.final("d")
s.turn(coder, lambda c: Turn(prompt="x")).on(Submit, to=d).on(AgentFault, to=d)
machine = m.build()
"""


def test_what_a_machine_carries_is_judged_as_on_the_host(assembly: Assembly, start: Any) -> None:
    assembly.config(
        'from jr2 import Secret\nconfig = Config(name="demo", secrets=[Secret("TOKEN")])'
    )
    assembly.workflow("w", CARRIES)

    is_open, undeclared = load_problems(start)

    assert is_open.startswith('workflow "w" leaves Agent "coder" open — bind it where the Machine')
    assert undeclared.startswith('workflow "w": Effect "notify" names the secret "OTHER", which')


def test_a_step_without_a_body_starts_from_what_the_process_kept(
    assembly: Assembly, start: Any
) -> None:
    """Sticky snapshots: only the number that was answered last is there, and only in memory."""
    assembly.workflow("tasks", TASKS)
    process = start()
    process.load()
    go = {"kind": "gate", "gate": "a", "name": "go", "payload": {"size": 1}}
    _, first = process.ask(op="start", workflow="tasks", run_id="r", seq=0)
    expected = process.ask(op="step", workflow="tasks", run_id="r", event=go, body=first)

    kept = process.ask(op="step", workflow="tasks", run_id="r", seq=1, event=go)
    assert kept[1] == expected[1]
    assert (kept[0]["view"], kept[0]["commands"]) == (
        expected[0]["view"],
        expected[0]["commands"],
    )
    # The step that was just made is the kept one now; the one before is gone, as another run is.
    for run, seq in (("r", 1), ("r", 3), ("other", 2)):
        reply, _ = process.ask(op="step", workflow="tasks", run_id=run, seq=seq, event=go)
        assert reply["kind"] == "missing"


@pytest.mark.parametrize("commands", [(), (host_wire.StartTask(key="k", machine=[], slot="s"),)])
def test_the_reply_to_a_step_is_written_as_its_model_writes_it(
    commands: tuple[host_wire.StartTask, ...],
) -> None:
    snapshot = Snapshot(machine="m", run_id="r", status="active", entries={}, entry_count=0)
    text = stepped_json(7, 12, Step(snapshot=snapshot, commands=commands))

    reply = host_wire.Stepped(id=7, view=12, commands=list(commands))
    assert text.decode() == reply.model_dump_json()


MEDDLES = """
from jr2 import Context, ExternalEvent, Machine


class Ctx(Context):
    seen: list[str] = []
    taken: int = 0


class Go(ExternalEvent):
    ...


class Look(ExternalEvent):
    ...


def first(c, _) -> bool:
    c.seen.append("x")
    return c.seen == ["x"]


def never(c, _) -> bool:
    c.seen.append("y")
    return False


m = Machine("m", context=Ctx, start=lambda _: Ctx())
s = m.state("s", initial=True)
s.gate(gate="g")
s.on(Go, to=s, guard=first, assign=lambda c, _: c.set(seen=[], taken=c.taken + 1))
s.on(Look, to=s, guard=never)
machine = m.build()
"""


def test_what_a_guard_changes_inside_a_context_is_gone_at_the_next_step(
    assembly: Assembly, start: Any
) -> None:
    """A kept context may be used as it is only when nobody has seen it since it was read."""
    assembly.workflow("m", MEDDLES)
    process = start()
    process.load()
    process.ask(op="start", workflow="m", run_id="r", seq=0)

    taken = []
    for seq, name in enumerate(["go", "look", "go", "go", "look", "look", "go"], start=1):
        event = {"kind": "gate", "gate": "g", "name": name, "payload": {}}
        reply, _ = process.ask(op="step", workflow="m", run_id="r", seq=seq, event=event)
        assert reply["kind"] == "stepped", reply
        taken.append(reply["view"]["context"]["taken"])

    assert taken == [1, 1, 2, 3, 3, 3, 4]
