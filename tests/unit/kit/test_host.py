"""The Assembly process, as the Orchestrator meets it: a real process on a connected socket.

The process runs isolated, with the path that an Orchestrator's image would give it: the Kit, and
the Assembly. Its interpreter is the one of the tests.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import sysconfig
import textwrap
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pydantic
import pytest

import jr2
from jr2 import frames, host, host_wire, names

KIT = os.pathsep.join(str(Path(one.__file__ or "").parents[1]) for one in (jr2, pydantic))
DEADLINE = 20.0

PING = """
from __future__ import annotations

from pydantic import BaseModel

from jr2 import Context, Machine


class Door(BaseModel):
    message: str = "ping"


class Ctx(Context):
    message: str
    reply: str = ""


class Out(BaseModel):
    reply: str


async def respond(message: str) -> str:
    print("a line of user code")
    return f"pong: {message}"


m = Machine(
    "ping",
    door=Door,
    context=Ctx,
    output=Out,
    start=lambda i: Ctx(message=i.door.message),
)
answer = m.task("respond", respond)
responding = m.state("responding", initial=True)
done = m.final("done", lambda c: Out(reply=c.reply))
responding.run(answer, lambda c: c.message).done(to=done, assign=lambda c, r: c.set(reply=r))
machine = m.build()
"""

TASKS = """
import asyncio
import os
import sys
import time
from pathlib import Path

from jr2 import Context, Event, Machine


class Ctx(Context):
    text: str = ""


class Go(Event):
    size: int = 0


async def sleep(marker: str) -> str:
    Path(marker).write_text(str(os.getpid()))
    await asyncio.Event().wait()
    return "never"


async def fail() -> None:
    raise ValueError("no luck")


async def leave() -> None:
    sys.exit(3)


async def big(size: int) -> str:
    return "x" * size


async def paths() -> list[str]:
    return sys.path


async def environment() -> dict[str, str]:
    return dict(os.environ)


async def give_up() -> None:
    raise asyncio.CancelledError


async def stubborn(marker: str) -> str:
    Path(marker).write_text("up")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return "anyway"
    return "never"


async def block(marker: str) -> str:
    Path(marker).write_text("up")
    while not Path(marker + ".go").exists():
        time.sleep(0.01)
    return "at last"


def spin(c, e):
    while e.size < 0:
        Path(os.environ.get("HOME", "/tmp"), "spinning").touch()
    return c.set(text="x" * e.size)


m = Machine("tasks", context=Ctx, start=lambda i: Ctx(text="x" * (i.door or 0)))
a = m.state("a", initial=True)
for function in (sleep, fail, leave, give_up, big, paths, environment, stubborn, block):
    m.task(function.__name__, function)
a.gate().on(Go, assign=spin)
machine = m.build()
"""


class Assembly:
    """An Assembly's folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.instance = root / names.ASSEMBLY_INSTANCE
        (self.instance / names.WORKFLOWS_DIR).mkdir(parents=True)
        (root / names.ASSEMBLY_PACKAGES).mkdir()
        self.config('config = Config(name="demo")')
        self.workflow("ping", PING)

    def config(self, text: str) -> None:
        (self.instance / names.CONFIG_FILE).write_text(f"from jr2 import Config\n{text}\n")

    def workflow(self, name: str, text: str) -> None:
        folder = self.instance / names.WORKFLOWS_DIR
        (folder / f"{name}.py").write_text(textwrap.dedent(text))
        self.manifest()

    def manifest(self, **changes: Any) -> None:
        stems = sorted(file.stem for file in (self.instance / names.WORKFLOWS_DIR).glob("*.py"))
        manifest = {
            "kitVersion": names.KIT_VERSION,
            "instance": "demo",
            "workflows": stems,
            "platform": "any",
            "python": "3.11",
        }
        (self.root / names.ASSEMBLY_MANIFEST).write_text(json.dumps(manifest | changes))


class Process:
    """A running Assembly process and our end of its connection."""

    def __init__(self, assembly: Assembly) -> None:
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(DEADLINE)
        self.errors = assembly.root.parent / f"{assembly.root.name}.stderr"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                host.launch_argv(sys.executable, KIT, str(assembly.root), theirs.fileno()),
                pass_fds=[theirs.fileno()],
                env={"HOME": str(assembly.root.parent)},
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        theirs.close()
        self.stream = self.socket.makefile("rb")
        self.number = 0

    def send(self, body: bytes = b"", **header: Any) -> int:
        self.number += 1
        self.socket.sendall(frames.encode({"id": self.number, **header}, body))
        return self.number

    def read(self) -> tuple[dict[str, Any], bytes]:
        received = frames.read_blocking(self.stream)
        assert received is not None
        return received

    def ask(self, body: bytes = b"", **header: Any) -> tuple[dict[str, Any], bytes]:
        number = self.send(body, **header)
        reply, snapshot = self.read()
        assert reply["id"] == number
        return reply, snapshot

    def load(self) -> dict[str, Any]:
        return self.ask(op="load")[0]

    def task(self, slot: str, value: Any = None, key: str = "a#1:task.x") -> int:
        return self.send(op="task", workflow="tasks", run_id="r", key=key, slot=slot, input=value)

    def close(self) -> None:
        self.stream.close()
        self.socket.close()

    def wait(self) -> int:
        assert self.process.stdout is not None
        code = self.process.wait(DEADLINE)
        self.process.stdout.close()
        return code

    def end(self) -> None:
        with suppress(OSError):
            self.close()
        self.process.kill()
        self.wait()


@pytest.fixture
def assembly(tmp_path: Path) -> Assembly:
    return Assembly(tmp_path / "assembly")


@pytest.fixture
def start(assembly: Assembly) -> Iterator[Any]:
    started: list[Process] = []

    def begin() -> Process:
        started.append(Process(assembly))
        return started[-1]

    yield begin
    for process in started:
        process.end()


def wait_for(path: Path) -> str:
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        with suppress(FileNotFoundError):
            text = path.read_text()
            if text:
                return text
        select.select([], [], [], 0.01)
    raise AssertionError(f"{path} was not written")


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
        ("broken", "no snapshot of machine 'ping': JSONDecodeError"),
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


def test_tasks_run_beside_each_other_and_answer_when_they_end(
    assembly: Assembly, start: Any, tmp_path: Path
) -> None:
    assembly.workflow("tasks", TASKS)
    process = start()
    process.load()
    slow = process.task("sleep", str(tmp_path / "up"), key="slow")
    wait_for(tmp_path / "up")

    failed = process.task("fail", key="fail")
    assert process.read()[0] == {
        "kind": "task_failed",
        "id": failed,
        "key": "fail",
        "reason": "ValueError: no luck",
    }
    left = process.task("leave", key="leave")
    assert process.read()[0]["reason"] == "SystemExit: 3"
    assert left == failed + 1
    process.task("give_up", key="give_up")
    assert process.read()[0]["reason"] == "CancelledError"
    process.task("big", names.MAX_EVENT, key="big")
    assert process.read()[0]["reason"] == (
        f"ValueError: its output has {names.MAX_EVENT + 2} bytes, over the limit {names.MAX_EVENT}"
    )
    process.task("big", "x", key="bad")
    assert process.read()[0]["reason"].startswith("ValidationError: int: Input should be a valid")

    # The step is made while the first task still waits.
    stepped, _ = process.ask(op="start", workflow="tasks", run_id="r")
    assert stepped["kind"] == "stepped"
    twice = process.task("sleep", str(tmp_path / "up"), key="slow")
    assert process.read()[0] == {
        "kind": "task_failed",
        "id": twice,
        "key": "slow",
        "reason": "the task is running already",
    }
    process.send(op="stop_task", workflow="tasks", run_id="another", key="slow")
    process.send(op="stop_task", workflow="tasks", run_id="r", key="slow")
    assert process.read()[0] == {
        "kind": "task_failed",
        "id": slow,
        "key": "slow",
        "reason": "stopped",
    }


def test_a_task_that_is_stopped_at_once_is_answered(assembly: Assembly, start: Any) -> None:
    assembly.workflow("tasks", TASKS)
    process = start()
    process.load()
    for _ in range(20):
        number = process.task("sleep", "/dev/null")
        process.send(op="stop_task", run_id="r", key="a#1:task.x")

        reply, _ = process.read()

        assert (reply["id"], reply["reason"]) == (number, "stopped")


def test_a_task_may_clean_up_when_it_is_stopped(
    assembly: Assembly, start: Any, tmp_path: Path
) -> None:
    assembly.workflow("tasks", TASKS)
    process = start()
    process.load()
    process.task("stubborn", str(tmp_path / "up"))
    wait_for(tmp_path / "up")

    process.send(op="stop_task", run_id="r", key="a#1:task.x")

    assert process.read()[0]["output"] == "anyway"


def test_a_ping_is_answered_while_a_task_waits(
    assembly: Assembly, start: Any, tmp_path: Path
) -> None:
    assembly.workflow("tasks", TASKS)
    process = start()
    process.load()
    assert process.ask(op="ping")[0] == {"kind": "pong", "id": 2}
    process.task("sleep", str(tmp_path / "up"))
    wait_for(tmp_path / "up")

    assert process.ask(op="ping")[0]["kind"] == "pong"


def test_a_ping_is_not_answered_while_a_task_blocks(
    assembly: Assembly, start: Any, tmp_path: Path
) -> None:
    assembly.workflow("tasks", TASKS)
    process = start()
    process.load()
    task = process.task("block", str(tmp_path / "up"))
    wait_for(tmp_path / "up")

    ping = process.send(op="ping")

    # The main thread answers what comes after it, so the ping was passed on and nobody took it.
    assert process.ask(op="start", workflow="tasks", run_id="r")[0]["kind"] == "stepped"
    (tmp_path / "up.go").touch()
    answers = {reply["id"]: reply["kind"] for reply, _ in (process.read(), process.read())}
    assert answers == {task: "task_done", ping: "pong"}


def test_a_process_whose_loop_is_blocked_ends_with_its_connection(
    assembly: Assembly, start: Any, tmp_path: Path
) -> None:
    assembly.workflow("tasks", TASKS)
    process = start()
    process.load()
    process.task("block", str(tmp_path / "up"))
    wait_for(tmp_path / "up")

    process.close()

    assert process.wait() == 0


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


@pytest.mark.parametrize("where", ["idle", "task", "step"])
def test_the_process_ends_with_its_connection(
    assembly: Assembly, start: Any, tmp_path: Path, where: str
) -> None:
    assembly.workflow("tasks", TASKS)
    process = start()
    process.load()
    if where == "task":
        process.task("sleep", str(tmp_path / "up"))
        assert int(wait_for(tmp_path / "up")) == process.process.pid
    if where == "step":
        _, snapshot = process.ask(op="start", workflow="tasks", run_id="r")
        event = {"kind": "gate", "gate": "a", "name": "go", "payload": {"size": -1}}
        process.send(op="step", workflow="tasks", event=event, body=snapshot)
        end = time.monotonic() + DEADLINE
        while not (tmp_path / "spinning").exists():
            assert time.monotonic() < end
            select.select([], [], [], 0.01)

    process.close()

    assert process.wait() == 0


def test_a_broken_frame_ends_the_process(start: Any) -> None:
    process = start()
    process.load()

    process.socket.sendall(b"\xff" * 8)

    assert process.wait() == 1
    assert "is over the limit" in process.errors.read_text()


def test_a_killed_process_closes_the_connection(start: Any) -> None:
    process = start()
    process.load()

    os.kill(process.process.pid, signal.SIGKILL)

    assert frames.read_blocking(process.stream) is None


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
