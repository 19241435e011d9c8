"""The supervisor: one detached process that keeps the cluster's processes running.

It holds a lock for as long as it lives, so a second one ends at once, and whether the cluster runs
can be asked of the lock, whatever process ids say. A service starts when the services that it
needs answer their probes; one that ends is started again, after a pause that doubles while it
keeps ending. On SIGTERM each service ends before those that it needs, and the supervisor ends when
all are gone.

A supervisor that was killed leaves its services running. The next one ends them first, by the
process ids and start times that the killed one wrote down.

Run as `python -m jr2_cli.local_cluster.supervisor <plan>`.

Source: design §7.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import sys
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path

from jr2_infra import processes

from . import cgroups, plan, probes, process_table

EXIT_SECOND = 3
"""Another supervisor holds the lock."""

EXIT_NOT_STARTED = 127
"""What a service counts as having ended with when its program cannot be started."""

_PROBE_PAUSE = 0.05
_LOCK_SECONDS = 0.5
_LEFTOVER_SECONDS = 2.0
_GROUP_SETTLE_SECONDS = 3.0


@dataclass(slots=True)
class _Running:
    service: plan.Service
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    process: asyncio.subprocess.Process | None = None
    state: plan.ServiceState = field(init=False)

    def __post_init__(self) -> None:
        self.state = plan.ServiceState(name=self.service.name)


class Supervisor:
    """Runs a plan until it is told to stop.

    Args:
        work: the plan.
    """

    def __init__(self, work: plan.Plan) -> None:
        self._plan = work
        self._started_at = time.time()
        self._stopping = asyncio.Event()
        self._running = {service.name: _Running(service) for service in work.services}

    async def run(self) -> None:
        """Start everything, keep it running, and on SIGTERM or SIGINT end it."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        await asyncio.to_thread(end_leftovers, self._plan)
        self._write_state()
        async with asyncio.TaskGroup() as group:
            for running in self._running.values():
                group.create_task(self._keep(running))
        self._plan.state.unlink(missing_ok=True)

    async def _keep(self, running: _Running) -> None:
        """Keep one service running until the end of everything, and then end it in its turn."""
        service = running.service
        try:
            needed = [self._running[name].ready.wait() for name in service.after]
            if not await self._unless_stopping(asyncio.gather(*needed)):
                return
            pause = self._plan.first_pause
            while not self._stopping.is_set():
                began = time.monotonic()
                await self._run_once(running)
                if self._stopping.is_set():
                    break
                if time.monotonic() - began >= self._plan.stable_after:
                    pause = self._plan.first_pause
                _say(f"{service.name} ended with {running.state.last_exit}, again in {pause:g}s")
                if not await self._unless_stopping(asyncio.sleep(pause)):
                    break
                pause = min(pause * 2, self._plan.longest_pause)
                running.state = running.state.model_copy(
                    update={"restarts": running.state.restarts + 1}
                )
            await self._others_ended(running)
            await asyncio.to_thread(end_remains, service)
        finally:
            running.ended.set()

    async def _run_once(self, running: _Running) -> None:
        """Start the process and wait for its end, its own or ours."""
        service = running.service
        log = self._plan.logs / f"{service.name}.log"
        with contextlib.suppress(FileNotFoundError):
            if log.stat().st_size > self._plan.log_bytes:
                log.replace(log.with_suffix(".log.1"))
        try:
            process = await processes.spawn(
                service.argv, env=self._plan.environment, cwd=self._plan.folder, log=log
            )
        except OSError as error:
            _say(f"{service.name} does not start: {error}")
            running.state = running.state.model_copy(update={"last_exit": EXIT_NOT_STARTED})
            self._write_state()
            return
        running.process = process
        running.state = running.state.model_copy(
            update={
                "pid": process.pid,
                "started_ticks": process_table.start_ticks(process.pid),
                "started_at": time.time(),
            }
        )
        self._write_state()
        watch = asyncio.create_task(self._watch_ready(running))
        try:
            if not await self._unless_stopping(process.wait()):
                await self._end(running, process)
        finally:
            watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watch
            running.process = None
            running.state = running.state.model_copy(
                update={"pid": None, "started_ticks": None, "last_exit": process.returncode}
            )
            self._write_state()

    async def _watch_ready(self, running: _Running) -> None:
        """Let the services that need this one start when it answers for the first time."""
        probe = running.service.probe
        while probe is not None and not await asyncio.to_thread(probes.answers, probe):  # noqa: ASYNC110
            # The service tells nobody when it is ready: it has to be asked again and again.
            await asyncio.sleep(_PROBE_PAUSE)
        running.ready.set()

    async def _end(self, running: _Running, process: asyncio.subprocess.Process) -> None:
        """End a process after all that need it have ended."""
        await self._others_ended(running)
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        seconds = running.service.settle_seconds
        try:
            await asyncio.wait_for(process.wait(), seconds)
        except TimeoutError:
            _say(f"{running.service.name} did not end in {seconds:g}s and is killed")
            process.kill()
            await process.wait()

    async def _others_ended(self, running: _Running) -> None:
        for other in self._running.values():
            if running.service.name in other.service.after:
                await other.ended.wait()

    async def _unless_stopping(self, awaited: Awaitable[object]) -> bool:
        """Wait for something or for the end; tell whether the something came first."""
        task: asyncio.Future[object] = asyncio.ensure_future(awaited)
        stop = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((task, stop), return_when=asyncio.FIRST_COMPLETED)
            return task.done()
        finally:
            for waiting in (task, stop):
                if not waiting.done():
                    waiting.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await waiting

    def _write_state(self) -> None:
        state = plan.State(
            pid=os.getpid(),
            started_at=self._started_at,
            stopping=self._stopping.is_set(),
            services=tuple(running.state for running in self._running.values()),
        )
        part = self._plan.state.with_name(f".{self._plan.state.name}.part")
        part.write_text(state.model_dump_json())
        os.replace(part, self._plan.state)


def end_remains(service: plan.Service) -> None:
    """End what a service leaves running when it ends: its pods, or its helpers."""
    if service.group_ends is not None:
        found = cgroups.read_mounts(Path("/proc/mounts").read_text())
        if found is not None:
            process_table.end(
                cgroups.process_ids(found, service.group_ends),
                settle_seconds=_GROUP_SETTLE_SECONDS,
            )
    if service.strays is not None:
        process_table.end(process_table.find_by_argument(service.strays), settle_seconds=1.0)


def end_leftovers(work: plan.Plan) -> None:
    """End the processes of a supervisor that was killed; pods go on, as when a node restarts."""
    state = read_state(work.state)
    if state is None:
        return
    left = {
        entry.pid
        for entry in state.services
        if entry.pid is not None and process_table.lives(entry.pid, entry.started_ticks)
    }
    if left:
        _say(f"ending {len(left)} processes of the supervisor {state.pid}, which was killed")
        # They stand a crash; waiting for one that waits for another would only take long.
        process_table.end(left, settle_seconds=_LEFTOVER_SECONDS)
    work.state.unlink(missing_ok=True)


def read_state(path: Path) -> plan.State | None:
    """What a supervisor wrote down; `None` when there is nothing that can be read."""
    try:
        return plan.State.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None


def take_lock(path: Path) -> int | None:
    """Lock the file that says that a supervisor lives.

    Returns:
        The descriptor that holds the lock until it is closed; `None` when another holds it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    # `is_running` holds the lock for an instant when nobody has it.
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < deadline:
                time.sleep(0.02)
                continue
            os.close(descriptor)
            return None
        return descriptor


def is_running(path: Path) -> bool:
    """Tell whether a supervisor holds its lock.

    Args:
        path: the file that it locks.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _say(text: str) -> None:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    sys.stderr.write(f"{stamp} {text}\n")
    sys.stderr.flush()


def main(arguments: list[str]) -> int:
    """Run the plan that the one argument names."""
    work = plan.Plan.model_validate_json(Path(arguments[0]).read_bytes())
    descriptor = take_lock(work.lock)
    if descriptor is None:
        _say("another supervisor runs this cluster")
        return EXIT_SECOND
    # Pods of other users must be able to enter the folders that containerd makes for them.
    os.umask(0o022)
    _say("started")
    asyncio.run(Supervisor(work).run())
    _say("everything has ended")
    os.close(descriptor)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
