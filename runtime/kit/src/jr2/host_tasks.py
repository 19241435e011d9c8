"""The tasks of an Assembly process: one event loop in a thread of its own.

Steps run on the main thread, so a task that blocks the loop holds up other tasks, but no step. It
also holds up the answer to a ping, by which the Orchestrator knows of it and ends the process. What
a task raises, and what it is stopped by, becomes the answer to the request that started it; nothing
of it ends the process.

Source: design §4.4.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable
from typing import Final

from pydantic import JsonValue

from . import names
from .host_wire import Pong, TaskRaised, TaskReturned
from .snapshot import json_text
from .tasks import reason

STOPPED: Final = "stopped"
"""The reason of a task that was stopped because its state was left."""

Answer = Callable[[TaskReturned | TaskRaised | Pong], None]


class TaskLoop:
    """Runs tasks, each named by run and key, and answers once for each, and for each ping.

    Args:
        answer: is called on the loop's thread.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._loop = asyncio.new_event_loop()
        self._tasks: dict[tuple[str, str], asyncio.Task[TaskReturned | TaskRaised]] = {}
        threading.Thread(target=self._serve, name="tasks", daemon=True).start()

    def start(
        self, request: int, run_id: str, key: str, call: Callable[[], Awaitable[JsonValue]]
    ) -> None:
        """Run a task.

        Args:
            request: the number that the answer carries.
            run_id: the run that the task belongs to.
            key: the command's key, unique in the run.
            call: is called on the loop's thread.
        """
        self._loop.call_soon_threadsafe(self._start, request, run_id, key, call)

    def stop(self, run_id: str, key: str) -> None:
        """Cancel a task; one that is not there has answered already."""
        self._loop.call_soon_threadsafe(self._stop, run_id, key)

    def ping(self, request: int) -> None:
        """Answer once the loop has done what it was asked before, stops included."""
        self._loop.call_soon_threadsafe(self._answer, Pong(id=request))

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        while True:
            try:
                self._loop.run_forever()
            except BaseException:
                # Something that a task left behind raised SystemExit; the other tasks go on.
                traceback.print_exc()

    def _start(
        self, request: int, run_id: str, key: str, call: Callable[[], Awaitable[JsonValue]]
    ) -> None:
        name = (run_id, key)
        if name in self._tasks:
            self._answer(TaskRaised(id=request, key=key, reason="the task is running already"))
            return
        task = self._loop.create_task(self._run(request, run_id, key, call))
        self._tasks[name] = task

        def ended(task: asyncio.Task[TaskReturned | TaskRaised]) -> None:
            # First forgotten, then answered: the answer may start the same task again.
            del self._tasks[name]
            if task.cancelled():
                # A task that cancelled itself was not stopped, and its run waits for an answer.
                why = STOPPED if task.cancelling() else "CancelledError"
                self._answer(TaskRaised(id=request, key=key, reason=why))
            else:
                self._answer(task.result())

        task.add_done_callback(ended)

    def _stop(self, run_id: str, key: str) -> None:
        task = self._tasks.get((run_id, key))
        if task is not None:
            task.cancel()

    async def _run(
        self, request: int, run_id: str, key: str, call: Callable[[], Awaitable[JsonValue]]
    ) -> TaskReturned | TaskRaised:
        try:
            output = await call()
            size = len(json_text(output).encode())
            if size > names.MAX_EVENT:
                raise ValueError(f"its output has {size} bytes, over the limit {names.MAX_EVENT}")
            return TaskReturned(id=request, key=key, output=output)
        except MemoryError:
            # Another task may have taken it. Each starts again, apart, until it is known which.
            traceback.print_exc()
            os._exit(1)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            # Also one that is no `Exception`: who never answers leaves its run waiting for ever.
            print(f"run {run_id}: task {key} raised:", file=sys.stderr)
            traceback.print_exc()
            return TaskRaised(id=request, key=key, reason=reason(error))
