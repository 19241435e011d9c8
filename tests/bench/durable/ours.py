"""Durable steps of this system: events for Gates of runs, each in the store before it is answered.

The engine, the store and the worker are the real ones: the engine in this process, as it is in the
Orchestrator, and the worker with its Assembly process beside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

from jr2 import host_wire, names
from jr2.tree_hash import hash_folder
from jr2_runtime.orchestrator import interpreter
from jr2_runtime.orchestrator.clock import WallClock
from jr2_runtime.orchestrator.engine import Engine, Registry
from jr2_runtime.orchestrator.engine.registry import workflows_to_json
from jr2_runtime.orchestrator.feeds import Feeds
from jr2_runtime.orchestrator.host import Processes, open_link
from jr2_runtime.orchestrator.metrics import Metrics
from jr2_runtime.orchestrator.store import Store
from jr2_runtime.orchestrator.store import assemblies as rows
from jr2_runtime.orchestrator.store.rows import Assembly
from tests.kit_folder import link_kit
from tests.waiting import LIMIT

WORKFLOW = '''
    from __future__ import annotations

    from pydantic import BaseModel

    from jr2 import Context, ExternalEvent, Machine


    class Door(BaseModel):
        """The input."""

        weight: int = 0


    class Tick(ExternalEvent):
        """One step."""


    class Ctx(Context):
        """How far it is."""

        number: int = 0
        load: str = ""


    m = Machine("ticker", door=Door, context=Ctx, start=lambda i: Ctx(load="x" * i.door.weight))
    waiting = m.state("waiting", initial=True)
    waiting.gate(gate="tick")
    waiting.on(Tick, to=waiting, assign=lambda c, e: c.set(number=c.number + 1))
    machine = m.build()
'''


@dataclass
class Rig:
    """An engine whose current Assembly has the Workflow `ticker`."""

    engine: Engine
    store: Store

    async def start(self, weight: int = 0) -> str:
        """Start a run whose context holds `weight` characters beside the counter."""
        answer = await self.engine.start("ticker", {"weight": weight})
        run = json.loads(answer.body)["runId"]
        assert isinstance(run, str)
        return run

    async def tick(self, run: str, times: int) -> None:
        """Give a run so many events, each after the answer to the one before."""
        event = host_wire.GateEvent(gate="tick", name="tick", payload={}, id=None)
        for _ in range(times):
            await self.engine.post(run, event)


def make_assembly(folder: Path) -> str:
    """Write the Assembly below `folder` and return its hash."""
    made = folder / "making"
    workflows = made / names.ASSEMBLY_INSTANCE / names.WORKFLOWS_DIR
    workflows.mkdir(parents=True)
    (made / names.ASSEMBLY_PACKAGES).mkdir()
    (made / names.ASSEMBLY_INSTANCE / names.CONFIG_FILE).write_text(
        'from jr2 import Config\n\nconfig = Config(name="bench")\n'
    )
    (workflows / "ticker.py").write_text(textwrap.dedent(WORKFLOW))
    manifest = {
        "kitVersion": names.KIT_VERSION,
        "instance": "bench",
        "workflows": ["ticker"],
        "platform": "any",
        "python": "3.11",
    }
    (made / names.ASSEMBLY_MANIFEST).write_text(json.dumps(manifest))
    hash_ = hash_folder(made, salt="assembly")
    (folder / names.ASSEMBLIES_DIR).mkdir()
    made.rename(folder / names.ASSEMBLIES_DIR / hash_)
    return hash_


@contextlib.contextmanager
def worker(folder: Path) -> Iterator[Path]:
    """Run the worker as a process; yield its socket."""
    socket = folder / "worker.sock"
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("JR2_")},
        "JR2_STATE_PATH": str(folder),
        "JR2_WORKER_SOCKET": str(socket),
        "JR2_WORKER_ASSEMBLIES_PATH": str(folder / names.ASSEMBLIES_DIR),
        "JR2_KIT_PATH": str(folder / "kit"),
        "JR2_ORCHESTRATOR_UID": str(os.getuid()),
        "JR2_WORKER_UID": str(os.getuid()),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "jr2_runtime.worker"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        while not socket.exists():
            if process.poll() is not None:
                raise RuntimeError("the worker has ended")
            time.sleep(0.01)
        yield socket
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=LIMIT)


class _Done(Exception):
    pass


async def _make_current(store: Store, registry: Registry, processes: Processes, hash_: str) -> None:
    loaded = await processes.for_steps(hash_).loaded()
    assert not loaded.problems, loaded.problems
    row = Assembly(
        hash=hash_,
        kit_version=names.KIT_VERSION,
        instance="bench",
        workflows=workflows_to_json(loaded.workflows),
        current=True,
    )
    await store.write(lambda db: rows.make_current(db, row, 0))
    registry.take(row)


@contextlib.asynccontextmanager
async def rig() -> AsyncIterator[Rig]:
    """Open an engine over a new folder on the disk, with a worker of its own."""
    folder = Path(tempfile.mkdtemp(prefix="jr2-bench-", dir="/var/tmp"))
    try:
        hash_ = make_assembly(folder)
        link_kit(folder / "kit")
        registry, feeds, clock = Registry(names.KIT_VERSION), Feeds(), WallClock()
        store = Store(folder / names.STATE_DATABASE)
        with worker(folder) as socket:
            try:
                async with asyncio.TaskGroup() as group:
                    processes = Processes(
                        group, lambda wanted: open_link(str(socket), os.getuid(), wanted)
                    )
                    engine = Engine(
                        group=group,
                        store=store,
                        processes=processes,
                        registry=registry,
                        feeds=feeds,
                        clock=clock,
                        metrics=Metrics(),
                    )
                    await _make_current(store, registry, processes, hash_)
                    interpreter.settle()
                    yield Rig(engine, store)
                    raise _Done
            except* _Done:
                pass
            finally:
                store.close()
    finally:
        shutil.rmtree(folder)


async def steps(count: int, runs: int, weight: int = 0) -> float:
    """Return the durable steps of each second, over `runs` runs of `count` steps each."""
    async with rig() as made:
        ids = [await made.start(weight) for _ in range(runs)]
        await made.tick(ids[0], 20)
        began = time.perf_counter()
        await asyncio.gather(*(made.tick(each, count) for each in ids))
        took = time.perf_counter() - began
        shown = await made.store.read(
            lambda db: db.execute("SELECT min(seq) FROM runs").fetchone()[0]
        )
        assert shown >= count
        return count * runs / took


if __name__ == "__main__":
    print(asyncio.run(steps(*(int(each) for each in sys.argv[1:]))))
