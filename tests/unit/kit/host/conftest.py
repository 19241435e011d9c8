"""A real Assembly process on a connected socket, as the Orchestrator meets it.

The process runs isolated, with the path that an Orchestrator's image would give it: the Kit, and
the Assembly. Its interpreter is the one of the tests.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pydantic
import pytest

import jr2
from jr2 import frames, host, names
from tests.waiting import LIMIT

KIT = os.pathsep.join(str(Path(one.__file__ or "").parents[1]) for one in (jr2, pydantic))
DEADLINE = LIMIT

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


class Own(BaseException):
    pass


async def odd() -> None:
    raise Own("no Exception")


async def shout() -> None:
    raise ValueError("x" * 10_000_000)


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
for function in (sleep, fail, leave, odd, shout, give_up, big, paths, environment, stubborn, block):
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
        self._splitter = frames.Splitter()
        self._received: list[tuple[bytes, bytes]] = []
        self.number = 0

    def send(self, body: bytes = b"", **header: Any) -> int:
        self.number += 1
        self.socket.sendall(frames.encode({"id": self.number, **header}, body))
        return self.number

    def read(self) -> tuple[dict[str, Any], bytes]:
        while not self._received:
            data = self.socket.recv(2**16)
            assert data, "the process closed the connection"
            self._received += self._splitter.feed(data)
        head, body = self._received.pop(0)
        header: dict[str, Any] = json.loads(head)
        if header["kind"] == "stepped":
            # What is shown stands before the snapshot.
            at = header["view"]
            header["view"], body = json.loads(body[:at]), body[at:]
        return header, body

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
        pass
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
