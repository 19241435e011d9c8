"""The supervisor: one detached process that keeps the cluster's processes running.

It holds a lock for as long as it lives, so a second one ends at once, and whether the cluster runs
can be asked of the lock, whatever process ids say. A service starts when the services that it
needs answer their probes; one that ends is started again, after a pause that doubles while it
keeps ending. On SIGTERM each service ends before those that it needs, and the supervisor ends when
all are gone.

Beside that it keeps the logs short, and runs the chores of its plan.

A supervisor that was killed leaves its services running. The next one ends them first (`remains`).

Run as `python -m jr2_cli.local_cluster.supervision.supervisor <plan>`.

Source: design §7.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path

from jr2_infra import process_table as identity
from jr2_infra import processes

from . import logs, plan, probes, remains

EXIT_SECOND = 3
"""Another supervisor holds the lock."""

EXIT_NOT_STARTED = 127
"""What a service counts as having ended with when its program cannot be started."""

_PROBE_PAUSE = 0.05


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
        name, _, value = work.mark.partition("=")
        self._environment = {**work.environment, name: value}
        self._started_at = time.time()
        self._stopping = asyncio.Event()
        self._running = {service.name: _Running(service) for service in work.services}

    async def run(self) -> None:
        """Start everything, keep it running, and on SIGTERM or SIGINT end it."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        left = await asyncio.to_thread(remains.end_leftovers, self._plan)
        if left:
            _say(f"ended {left} processes of an earlier supervisor, which was killed")
        self._write_state()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep_logs_short())
            for chore in self._plan.chores:
                group.create_task(self._repeat(chore))
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
            gate = service.starts_when
            if gate is not None and not await self._unless_stopping(_answer(gate)):
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
            await asyncio.to_thread(remains.end_remains, service)
        finally:
            running.ended.set()

    async def _run_once(self, running: _Running) -> None:
        """Start the process and wait for its end, its own or ours."""
        service = running.service
        log = self._plan.logs / f"{service.name}.log"
        try:
            process = await processes.spawn(
                service.argv, env=self._environment, cwd=self._plan.folder, log=log
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
                "start": identity.start_of(process.pid),
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
                update={"pid": None, "start": None, "last_exit": process.returncode}
            )
            self._write_state()

    async def _watch_ready(self, running: _Running) -> None:
        """Let the services that need this one start when it answers for the first time."""
        if running.service.probe is not None:
            await _answer(running.service.probe)
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

    async def _keep_logs_short(self) -> None:
        while await self._unless_stopping(asyncio.sleep(self._plan.log_pause)):
            await asyncio.to_thread(logs.rotate_all, self._plan.logs, self._plan.log_bytes)

    async def _repeat(self, chore: plan.Chore) -> None:
        """Run a chore after each pause; one that fails is run again after the next."""
        while await self._unless_stopping(asyncio.sleep(chore.every_seconds)):
            try:
                process = await processes.spawn(
                    chore.argv,
                    env=self._environment,
                    cwd=self._plan.folder,
                    log=self._plan.logs / f"{chore.name}.log",
                )
            except OSError as error:
                _say(f"{chore.name} does not start: {error}")
                continue
            await self._unless_stopping(_end_within(process, chore.longest_seconds))
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
            if process.returncode != 0:
                _say(f"{chore.name} ended with {process.returncode}")

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
            start=identity.start_of(os.getpid()),
            started_at=self._started_at,
            stopping=self._stopping.is_set(),
            services=tuple(running.state for running in self._running.values()),
        )
        part = self._plan.state.with_name(f".{self._plan.state.name}.part")
        try:
            part.write_text(state.model_dump_json())
            os.replace(part, self._plan.state)
        except OSError as error:
            # On a full disk the processes go on; their mark finds them when the note does not.
            _say(f"cannot write {self._plan.state}: {error.strerror}")


async def _answer(probe: plan.Probe) -> None:
    """Wait until something answers; it tells nobody when, so it is asked again and again."""
    while not await asyncio.to_thread(probes.answers, probe):  # noqa: ASYNC110
        await asyncio.sleep(_PROBE_PAUSE)


async def _end_within(process: asyncio.subprocess.Process, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), seconds)


def _say(text: str) -> None:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{stamp} {text}\n")
        sys.stderr.flush()


def main(arguments: list[str]) -> int:
    """Run the plan that the one argument names."""
    work = plan.Plan.model_validate_json(Path(arguments[0]).read_bytes())
    descriptor = remains.take_lock(work.lock)
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
