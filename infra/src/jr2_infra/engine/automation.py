"""The engine over an inline program, as the Automation API runs one, and nothing around it.

The library's own `Stack.up` starts five programs beside the engine, for its version, to select the
stack, and for outputs and history that nobody reads here; and when the engine is ended from outside
it prints warnings and leaves an event loop open. So the two servers that the engine talks to, the
program and the listener for events, are served here with the library's parts.

This module imports Pulumi; it is imported where the engine runs and nowhere else.

Source: libraries.md §2.2, field case 4f.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import grpc
from google.protobuf import empty_pb2  # type: ignore[import-untyped]
from pulumi import log, runtime
from pulumi.automation import EngineEvent
from pulumi.runtime.proto import (
    LanguageRuntimeServicer,
    events_pb2_grpc,
    language_pb2,
    language_pb2_grpc,
    plugin_pb2,
)

from ..resources import Program
from .environment import RunPaths
from .minded import Minded, Started

_MESSAGE_BYTES: Final = 400 * 2**20
"""The engine's own limit for one message; a CRD is far below it."""
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", _MESSAGE_BYTES),
    ("grpc.max_send_message_length", _MESSAGE_BYTES),
)
_LAST_EVENTS_SECONDS: Final = 5.0
_ENDING_SECONDS: Final = 1.0
_PROGRAM_FAILED: Final = "the program of the converge failed"


class EngineFailed(Exception):
    """The engine ended with an error; its events say which."""

    def __init__(self, code: int, stderr: str) -> None:
        super().__init__(f"the engine ended with {code}")
        self.code = code
        self.stderr = stderr


def run(
    program: Program,
    declare: Callable[[], None],
    *,
    paths: RunPaths,
    engine: Path,
    env: Mapping[str, str],
    preview: bool,
    on_event: Callable[[Any], None],
    started: Started,
) -> None:
    """Run the engine once over an inline program.

    Args:
        program: names the stack.
        declare: declares its resources.
        paths: where the run's files are.
        engine: the program `pulumi`.
        env: its whole environment.
        preview: compute only.
        on_event: takes each event, in order and from one thread.
        started: is told session and start of the engine's processes.

    Raises:
        EngineFailed: it ended with an error.
    """
    listener, inline = _Listener(on_event), _Inline(declare)
    with _quiet(), _served(inline, listener) as (program_port, events_port):
        verb = ["preview"] if preview else ["up", "--yes", "--skip-preview"]
        minded = Minded(
            [
                engine,
                *verb,
                "--non-interactive",
                "--color=never",
                "--suppress-outputs",
                "--suppress-progress",
                f"--stack={program.stack}",
                f"--client=127.0.0.1:{program_port}",
                "--exec-kind=auto.inline",
                f"--event-log=tcp://127.0.0.1:{events_port}",
            ],
            cwd=paths.project,
            # Without it the engine does not know the flag for events.
            env={**env, "PULUMI_DEBUG_COMMANDS": "true"},
        )
        try:
            started(minded.session, minded.start)
            code, _, stderr = minded.wait()
        finally:
            minded.end()
            inline.cut_off()
        listener.over.wait(_LAST_EVENTS_SECONDS)
        if code != 0:
            raise EngineFailed(code, stderr)


class _Listener(events_pb2_grpc.EventsServicer):
    """Takes the events of one engine."""

    def __init__(self, on_event: Callable[[Any], None]) -> None:
        self._on_event = on_event
        self.over = threading.Event()

    def StreamEvents(self, request_iterator: Iterator[Any], context: Any) -> Any:
        try:
            for request in request_iterator:
                self._on_event(EngineEvent.from_json(json.loads(request.event)))
        except grpc.RpcError:
            # The engine was ended in the middle of its words.
            pass
        finally:
            self.over.set()
        return empty_pb2.Empty()


class _Inline(LanguageRuntimeServicer):  # type: ignore[misc]
    """The language host of one program that is a function of this process."""

    def __init__(self, declare: Callable[[], None]) -> None:
        self._declare = declare
        self._loop: asyncio.AbstractEventLoop | None = None

    def cut_off(self) -> None:
        """Stop a program that waits for an engine that is gone; one that has ended is left alone."""
        loop = self._loop
        if loop is not None:
            # A loop that closed meanwhile has nothing to stop.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(loop.stop)

    def GetRequiredPlugins(self, request: Any, context: Any) -> Any:
        return language_pb2.GetRequiredPluginsResponse()

    def GetRequiredPackages(self, request: Any, context: Any) -> Any:
        return language_pb2.GetRequiredPackagesResponse()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo()

    def Run(self, request: Any, context: Any) -> Any:
        runtime.reset_options(
            project=request.project,
            monitor_address=request.monitor_address,
            engine_address=request.args[0] if request.args else "",
            stack=request.stack,
            parallel=request.parallel,
            preview=request.dryRun,
            organization=request.organization or "organization",
        )
        loop = self._loop = asyncio.new_event_loop()
        # A call to an engine that is gone fails in a task of its own, and the program would wait.
        loop.set_exception_handler(lambda failed, _context: failed.stop())
        with ThreadPoolExecutor(max(request.parallel, 1) * 4) as pool:
            loop.set_default_executor(pool)
            try:
                ended = loop.create_task(runtime.run_in_stack(self._declare))
                ended.add_done_callback(lambda _: loop.stop())
                loop.run_forever()
                if ended.done():
                    ended.result()
                    return language_pb2.RunResponse()
            except grpc.RpcError:
                # The engine refused a resource, and said so itself, or is gone.
                pass
            except Exception as error:
                with contextlib.suppress(grpc.RpcError):
                    log.error(f"{_PROGRAM_FAILED}: {type(error).__name__}: {error}")
            finally:
                self._loop = None
                _close(loop)
        return language_pb2.RunResponse(bail=True)


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """End what still waits in a loop, so that nothing of it is left when the command goes on."""
    loop.set_exception_handler(lambda _loop, _context: None)
    pending = asyncio.all_tasks(loop)
    for task in pending:
        task.cancel()
    try:
        if pending:
            _finish(loop, lambda: asyncio.wait(pending, timeout=_ENDING_SECONDS))
        _finish(loop, loop.shutdown_asyncgens)
    finally:
        loop.close()


def _finish(loop: asyncio.AbstractEventLoop, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
    """Run a piece of work to its end, also on a loop that was told to stop in the last moment."""
    task = loop.create_task(work())
    # A stop that came late ends one round; nobody sends a second one.
    with contextlib.suppress(RuntimeError):
        loop.run_until_complete(task)
    if not task.done():
        loop.run_until_complete(task)


@contextlib.contextmanager
def _served(program: _Inline, listener: _Listener) -> Iterator[tuple[int, int]]:
    """Serve program and listener on ports of this machine alone; give the two ports."""
    with ThreadPoolExecutor(4) as first, ThreadPoolExecutor(4) as second:
        servers = [grpc.server(pool, options=_OPTIONS) for pool in (first, second)]
        language_pb2_grpc.add_LanguageRuntimeServicer_to_server(program, servers[0])
        events_pb2_grpc.add_EventsServicer_to_server(listener, servers[1])
        ports = [server.add_insecure_port("127.0.0.1:0") for server in servers]
        for server in servers:
            server.start()
        try:
            yield ports[0], ports[1]
        finally:
            for server in servers:
                server.stop(0).wait()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the words of gRPC and asyncio about an engine that was ended away from the person."""
    loggers = [logging.getLogger(name) for name in ("grpc", "asyncio")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
