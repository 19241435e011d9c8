"""The Orchestrator in this process, and a worker that follows a script.

The far side is faked at its wire: a Unix socket that speaks `jr2.frames` and `jr2.host_wire`. The
store, the engine, the routes and the volume are real.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import pytest

from jr2 import frames, names
from jr2.tree_hash import Entry, tree_hash
from jr2.wire import Maps
from jr2_runtime.orchestrator.api import Services, build_app
from jr2_runtime.orchestrator.api.auth import Values
from jr2_runtime.orchestrator.assemblies.blobs import Blobs
from jr2_runtime.orchestrator.assemblies.folders import Folders
from jr2_runtime.orchestrator.assemblies.listing import Limits
from jr2_runtime.orchestrator.assemblies.publish import Publisher
from jr2_runtime.orchestrator.engine import Engine, Registry
from jr2_runtime.orchestrator.feeds import Feeds
from jr2_runtime.orchestrator.host import Processes, open_link
from jr2_runtime.orchestrator.metrics import Metrics
from jr2_runtime.orchestrator.program import take_up
from jr2_runtime.orchestrator.store import Store
from tests.waiting import LIMIT

INSTANCE_TOKEN = "instance-token"
PUBLISH_TOKEN = "publish-token"
SIGNING_KEY = b"0123456789abcdef0123456789abcdef"
START = 1_800_000_000_000
LEASE = "2026-01-01T00:00:00.000000Z unit"
"""What a publish carries when a test does not say another one."""


class FakeClock:
    """A clock that moves when the test says so."""

    def __init__(self) -> None:
        self._now = START
        self._moved = asyncio.Event()

    def now(self) -> int:
        return self._now

    async def wait(self, wake: asyncio.Event, milliseconds: int) -> None:
        end = self._now + milliseconds
        while self._now < end and not wake.is_set():
            waiting = [asyncio.ensure_future(each.wait()) for each in (wake, self._moved)]
            try:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in waiting:
                    each.cancel()
            self._moved.clear()

    def advance(self, seconds: float) -> None:
        self._now += int(seconds * 1000)
        self._moved.set()


def framed(request: dict[str, Any], head: dict[str, Any], snapshot: bytes) -> bytes:
    """Return a reply as a frame; what is shown after a step goes before the snapshot."""
    if isinstance(head.get("view"), dict):
        shown = json.dumps(head["view"], separators=(",", ":")).encode()
        head, snapshot = {**head, "view": len(shown)}, shown + snapshot
    return frames.encode({"id": request["id"], **head}, snapshot)


@dataclass
class FakeWorker:
    """Answers as an Assembly process would, from a few small Machines.

    A snapshot is the JSON of `{"state", "seen"}`. Workflows: `gate` waits for `go` at the Gate
    `review`; `timer` arms one timer with the delay of its input; `task` starts one task whose
    result ends it. A process that is given a task with the input `{"block": true}` answers nothing
    more, as one whose loop is blocked.
    """

    path: str
    workflows: tuple[str, ...] = ("gate", "task", "timer")
    problems: list[str] = field(default_factory=list)
    kit_version: str = names.KIT_VERSION
    opened: list[str] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    answer: Callable[[dict[str, Any], bytes], tuple[dict[str, Any], bytes] | None] | None = None
    """A test's own answer to a request; `None` from it means: the usual one."""
    pings: int = 0
    blocked: set[asyncio.StreamWriter] = field(default_factory=set)
    pongs: bool = False
    """Whether a blocked process answers its pings all the same: until this is taken back, nobody
    notices the block, however long it takes to put other tasks beside it."""
    tasks: asyncio.Queue[tuple[dict[str, Any], asyncio.StreamWriter]] = field(
        default_factory=asyncio.Queue
    )

    open: list[str] = field(default_factory=list)
    """The Assembly of each process that is running."""

    def is_open(self, assembly: str) -> bool:
        """Whether a process of the Assembly is running."""
        return assembly in self.open

    def leave(self) -> None:
        """Be no longer there: what is open stays open, nothing new is."""
        os.unlink(self.path)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, frames.FrameError):
                await self._serve(reader, writer)
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received = await frames.read(reader)
        if received is None:
            return  # whoever came has gone, as one that was killed
        assembly = received[0]["open"]
        self.opened.append(assembly)
        self.open.append(assembly)
        try:
            writer.write(frames.encode({"ok": True}))
            while (received := await frames.read(reader)) is not None:
                self._handle(*received, writer)
        finally:
            self.open.remove(assembly)

    def _handle(self, request: dict[str, Any], body: bytes, writer: asyncio.StreamWriter) -> None:
        if request["op"] == "ping":
            self.pings += 1
            if self.pongs or writer not in self.blocked:
                writer.write(frames.encode({"id": request["id"], "kind": "pong"}))
            return
        if request["op"] == "step" and not body:
            writer.write(frames.encode({"id": request["id"], "kind": "missing"}))
            return
        self.asked.append(request)
        scripted = self.answer(request, body) if self.answer is not None else None
        if scripted is not None:
            writer.write(framed(request, *scripted))
        elif request["op"] == "load":
            writer.write(frames.encode({"id": request["id"], **self._loaded()}))
        elif request["op"] in ("start", "step"):
            writer.write(framed(request, *self._stepped(request, body)))
        elif request["op"] == "task" and request["input"] == {"block": True}:
            self.blocked.add(writer)
        elif request["op"] == "task" and writer not in self.blocked:
            self.tasks.put_nowait((request, writer))

    def _loaded(self) -> dict[str, Any]:
        return {
            "kind": "loaded",
            "kit_version": self.kit_version,
            "instance": "unit",
            "workflows": [
                {
                    "name": name,
                    "machine_id": name,
                    "input": None,
                    "shape": "0123456789ab",
                    "document": {"machine": name},
                }
                for name in self.workflows
            ],
            "problems": self.problems,
        }

    def _stepped(self, request: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        workflow = request["workflow"]
        commands: list[dict[str, Any]] = []
        if request["op"] == "start":
            given = json.loads(body)
            state, seen = {"gate": "review", "task": "working", "timer": "waiting"}[workflow], []
            if workflow == "task":
                commands = [
                    {"kind": "start_task", "key": "k1", "machine": [], "slot": "s", "input": given}
                ]
            if workflow == "timer":
                commands = [{"kind": "arm_timer", "key": "t1", "delay": given["delay"]}]
        else:
            before = json.loads(body)
            event = request["event"]
            seen = [*before["seen"], event]
            if event["kind"] == "gate" and event["name"] != "go":
                return {"kind": "refused", "code": 400, "error": "accepts: go"}, b""
            state = "done"
            commands = [{"kind": "emit", "type": "said", "payload": {"n": len(seen)}}]
        view = {
            "status": "done" if state == "done" else "active",
            "value": state,
            "context": {"seen": seen, "secret": "context only"},
            "gates": [
                {"gate": "review", "id": "g-1", "path": ["review"], "accepts": [], "meta": None}
            ]
            if state == "review"
            else [],
        }
        snapshot = json.dumps({"state": state, "seen": seen}).encode()
        return {"kind": "stepped", "view": view, "commands": commands}, snapshot


Made = tuple[str, dict[str, bytes]]
"""The hash of an Assembly, and its files by their paths."""


def assembly_of(files: dict[str, bytes]) -> Made:
    """Return the hash of an Assembly with these files, and the files."""
    parts = [Entry(path, "file", content) for path, content in files.items()]
    return tree_hash(parts, salt="assembly"), files


def listing_of(files: dict[str, bytes]) -> dict[str, Any]:
    """Return the list of some plain files, as it is sent."""
    return {
        "files": [
            {
                "path": path,
                "kind": "file",
                "sha256": hashlib.sha256(content).hexdigest(),
                "size": len(content),
            }
            for path, content in files.items()
        ]
    }


def assembly(mark: str = "", **manifest: Any) -> Made:
    """Return the hash and the files of an Assembly that the fake worker loads."""
    stated = {
        "kitVersion": names.KIT_VERSION,
        "instance": "unit",
        "workflows": ["gate", "task", "timer"],
        "platform": "any",
        "python": "3.11",
        **manifest,
    }
    return assembly_of(
        {
            "assembly.json": json.dumps(stated).encode(),
            "instance/workflows/gate.py": f"# {mark}\n".encode(),
        }
    )


@dataclass
class Bench:
    """One Orchestrator without its process: everything but uvicorn and the real worker."""

    folder: Path
    worker: FakeWorker
    clock: FakeClock
    store: Store
    engine: Engine
    registry: Registry
    feeds: Feeds
    folders: Folders
    services: Services
    client: httpx2.AsyncClient

    def bearer(self, token: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}"}

    async def publish(self, made: Made | None = None, **headers: str) -> httpx2.Response:
        """Publish an Assembly as a sender does; the answer is the first refusal, or the last."""
        hash_, files = made or assembly()
        asked = await self.ask_missing((hash_, files), **headers)
        if not asked.is_success:
            return asked
        blobs = {hashlib.sha256(content).hexdigest(): content for content in files.values()}
        for digest in asked.json()["missing"]:
            sent = await self.client.put(
                f"/blobs/{digest}", content=blobs[digest], headers=self.bearer(PUBLISH_TOKEN)
            )
            if not sent.is_success:
                return sent
        return await self.commit((hash_, files), **headers)

    async def ask_missing(self, made: Made, **headers: str) -> httpx2.Response:
        return await self.client.post(
            f"/assemblies/{made[0]}/missing",
            json=listing_of(made[1]),
            headers={**self.bearer(PUBLISH_TOKEN), names.HEADER_LEASE: LEASE, **headers},
        )

    async def commit(self, made: Made, **headers: str) -> httpx2.Response:
        return await self.client.put(
            f"/assemblies/{made[0]}",
            json=listing_of(made[1]),
            headers={**self.bearer(PUBLISH_TOKEN), names.HEADER_LEASE: LEASE, **headers},
        )

    async def post(self, path: str, body: Any = None) -> httpx2.Response:
        return await self.client.post(path, json=body, headers=self.bearer(INSTANCE_TOKEN))

    async def get(self, path: str) -> httpx2.Response:
        return await self.client.get(path, headers=self.bearer(INSTANCE_TOKEN))

    async def start(self, workflow: str, given: Any = None) -> str:
        answer = await self.post(f"/workflows/{workflow}/runs", given or {})
        assert answer.status_code == 201, answer.text
        run = answer.json()["runId"]
        assert isinstance(run, str)
        return run

    async def status(self, run: str) -> dict[str, Any]:
        found = (await self.get(f"/runs/{run}")).json()
        assert isinstance(found, dict)
        return found

    async def eventually(self, what: Callable[[], Any]) -> None:
        async with asyncio.timeout(LIMIT):
            while True:
                found = what()
                if asyncio.iscoroutine(found):
                    found = await found
                if found:
                    return
                await asyncio.sleep(0.005)


async def says(bench: Bench, run: str, status: str) -> bool:
    """Whether a run has a status."""
    return bool((await bench.status(run))["status"] == status)


class _Done(Exception):
    pass


@contextlib.asynccontextmanager
async def open_bench(
    folder: Path,
    *,
    limits: Limits | None = None,
    ping_every: float = 1.0,
    most_tasks: int = names.MAX_TASKS,
    answer: Callable[[dict[str, Any], bytes], tuple[dict[str, Any], bytes] | None] | None = None,
) -> AsyncIterator[Bench]:
    """Open a bench over a folder; a second one over the same folder is a restart."""
    worker = FakeWorker(str(folder / "worker.sock"), answer=answer)
    (folder / "state").mkdir(exist_ok=True)
    folders = Folders(folder / "state")
    folders.prepare()
    blobs = Blobs(folder / "state")
    blobs.prepare()
    clock, registry, feeds = FakeClock(), Registry(names.KIT_VERSION), Feeds()
    metrics = Metrics()
    store = Store(folder / "state" / names.STATE_DATABASE)
    server = await asyncio.start_unix_server(worker.serve, worker.path)
    try:
        async with asyncio.TaskGroup() as group:
            processes = Processes(
                group,
                lambda hash_: open_link(worker.path, os.getuid(), hash_),
                step_deadline=0.2,
                ping_every=ping_every,
            )
            engine = Engine(
                group=group,
                store=store,
                processes=processes,
                registry=registry,
                feeds=feeds,
                clock=clock,
                metrics=metrics,
                most_tasks=most_tasks,
            )
            publisher = Publisher(
                store=store,
                engine=engine,
                processes=processes,
                registry=registry,
                folders=folders,
                blobs=blobs,
                clock=clock,
                limits=limits,
            )
            services = Services(
                store=store,
                engine=engine,
                registry=registry,
                feeds=feeds,
                publisher=publisher,
                maps=lambda: Maps(images="a" * 64),
                values=Values(
                    instance=hashlib.sha256(INSTANCE_TOKEN.encode()).hexdigest(),
                    publisher=hashlib.sha256(PUBLISH_TOKEN.encode()).hexdigest(),
                    signing_key=SIGNING_KEY,
                ),
                metrics=metrics,
                clock=clock,
                namespace="unit",
                comment_after=0.05,
            )
            taken = await take_up(store, folders, registry, clock)
            group.create_task(publisher.watch_releases())
            await engine.recover(taken.loadable, taken.lost)
            transport = httpx2.ASGITransport(build_app(services), raise_app_exceptions=False)
            async with httpx2.AsyncClient(
                transport=transport, base_url="http://localhost"
            ) as client:
                yield Bench(
                    folder=folder,
                    worker=worker,
                    clock=clock,
                    store=store,
                    engine=engine,
                    registry=registry,
                    feeds=feeds,
                    folders=folders,
                    services=services,
                    client=client,
                )
            raise _Done
    except* _Done:
        pass
    finally:
        server.close()
        store.close()


@pytest.fixture
def rig() -> ModuleType:
    """This module: tests cannot import their conftest."""
    return sys.modules[__name__]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path leaves room for a Unix socket's name."""
    folder = Path(tempfile.mkdtemp(prefix="jr2-unit-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
async def bench(short_folder: Path) -> AsyncIterator[Bench]:
    async with open_bench(short_folder) as made:
        published = await made.publish()
        assert published.status_code == 201, published.text
        yield made
