"""Accept, start, reap: one Assembly process for each connection of the Orchestrator.

The supervisor keeps a copy of each connection without ever reading it, for two reasons. It sees
when the Orchestrator hangs up, and kills the process then, whatever user code does with the
interpreter at that moment. And it closes the connection when the process ends, even when something
that the process started still holds it. So the connection lives exactly as long as the process.

Source: design §4.4.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import select
import signal
import socket
import struct
from dataclasses import dataclass
from typing import Any

from jr2 import frames, own_process
from jr2.host import launch_argv

from . import spawn
from .settings import Settings

OPEN_DEADLINE = 5.0
"""Seconds in which a new connection must say which Assembly it is for."""
LONGEST_OPEN = 4096
_HASH = re.compile(r"[0-9a-f]{64}")
_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True, slots=True)
class _Child:
    assembly: str
    connection: socket.socket


def log(message: str, **facts: object) -> None:
    """Write one JSON line to standard error."""
    line = json.dumps({"message": message, "program": "jr2-worker", **facts})
    with contextlib.suppress(OSError):
        os.write(2, line.encode() + b"\n")


def peer_uid(connection: socket.socket) -> int:
    """Return the user id of the process at the other end of a Unix socket."""
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(packed)[1])


def listen(path: str, group: int | None) -> socket.socket:
    """Listen on a Unix socket that its owner and its group may use, in place of a left one."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o117)
    try:
        listener.bind(path)
    finally:
        os.umask(mask)
    if group is not None:
        with contextlib.suppress(PermissionError):
            os.chown(path, -1, group)
    listener.listen(64)
    listener.setblocking(False)
    return listener


class Supervisor:
    """The program of the worker container; `serve` returns after SIGTERM or SIGINT.

    Args:
        settings: where it listens and what it starts.
        is_program: every process below this one is an Assembly's, so what is left of one is ended.
    """

    def __init__(self, settings: Settings, *, is_program: bool = False) -> None:
        self._settings = settings
        self._is_program = is_program
        self._children: dict[int, _Child] = {}
        self._by_descriptor: dict[int, int] = {}
        self._hangups = select.epoll()
        self._stop = asyncio.Event()
        self.listening = asyncio.Event()
        """Set once connections are accepted."""

    def stop(self) -> None:
        """Have `serve` return."""
        self._stop.set()

    async def serve(self) -> None:
        """Accept connections until a signal says to stop, then end every Assembly process."""
        loop = asyncio.get_running_loop()
        if self._is_program:
            spawn.adopt_orphans()
            own_process.hide()
        listener = listen(self._settings.socket, self._settings.socket_group)
        loop.add_signal_handler(signal.SIGTERM, self.stop)
        loop.add_signal_handler(signal.SIGINT, self.stop)
        loop.add_signal_handler(signal.SIGCHLD, self._reap)
        loop.add_reader(self._hangups.fileno(), self._hung_up)
        log("listening", socket=self._settings.socket)
        self.listening.set()
        try:
            async with asyncio.TaskGroup() as group:
                accepting = group.create_task(self._accept(listener, group))
                await self._stop.wait()
                accepting.cancel()
        finally:
            listener.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._settings.socket)
            for process in self._children:
                spawn.end(process)
            loop.remove_reader(self._hangups.fileno())
            self._hangups.close()
        log("stopped")

    async def _accept(self, listener: socket.socket, group: asyncio.TaskGroup) -> None:
        loop = asyncio.get_running_loop()
        while True:
            connection, _ = await loop.sock_accept(listener)
            connection.setblocking(False)
            uid = peer_uid(connection)
            if uid != self._settings.peer_uid:
                log("refused a connection", uid=uid)
                connection.close()
                continue
            group.create_task(self._open(connection))

    async def _open(self, connection: socket.socket) -> None:
        """Read which Assembly is wanted, start its process, and say so."""
        try:
            async with asyncio.timeout(OPEN_DEADLINE):
                wanted = await self._read_open(connection)
        except (TimeoutError, OSError, frames.FrameError) as bad:
            log("a connection did not say what it is for", error=str(bad))
            connection.close()
            return
        # The process shares the connection's flags with this one, and it reads blocking.
        connection.setblocking(True)
        problem = self._start(wanted, connection)
        answer = {"ok": True} if problem is None else {"error": problem}
        with contextlib.suppress(OSError):
            connection.sendall(frames.encode(answer))  # the first bytes: they never wait
        if problem is not None:
            log("did not open an Assembly", error=problem)
            connection.close()

    async def _read_open(self, connection: socket.socket) -> Any:
        loop = asyncio.get_running_loop()
        received = b""
        while True:
            chunk = await loop.sock_recv(connection, LONGEST_OPEN)
            received += chunk
            if not chunk or len(received) > LONGEST_OPEN:
                raise frames.FrameError("the peer sent no opening frame")
            if len(received) >= 8:
                head, body = struct.unpack_from(">II", received)
                if body or head > LONGEST_OPEN:
                    raise frames.FrameError("the opening frame is too long")
                if len(received) >= 8 + head:
                    break
        try:
            header = json.loads(received[8 : 8 + head])
        except ValueError as bad:
            raise frames.FrameError("the opening frame is not JSON") from bad
        return header.get("open") if isinstance(header, dict) else None

    def _start(self, wanted: object, connection: socket.socket) -> str | None:
        """Start the process of an Assembly; return what is wrong, or `None`."""
        if not isinstance(wanted, str) or not _HASH.fullmatch(wanted):
            return "an Assembly is named by 64 hex digits"
        folder = os.path.join(self._settings.assemblies, wanted)
        if not os.path.isdir(folder):
            return f"there is no Assembly {wanted[:12]}"
        argv = launch_argv(self._settings.python, self._settings.kit_path, folder, spawn.CONNECTION)
        try:
            process = spawn.start(argv, connection.fileno())
        except OSError as failed:
            return f"the Assembly process could not be started: {failed.strerror}"
        # It runs no user code before the Orchestrator asks it to, which is after the answer.
        spawn.limit(process, self._settings.memory)
        self._children[process] = _Child(wanted, connection)
        self._by_descriptor[connection.fileno()] = process
        self._hangups.register(
            connection.fileno(), select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLONESHOT
        )
        log("started an Assembly process", assembly=wanted[:12], pid=process)
        return None

    def _hung_up(self) -> None:
        for descriptor, _ in self._hangups.poll(0):
            process = self._by_descriptor.get(descriptor)
            if process is not None:
                spawn.end(process)

    def _reap(self) -> None:
        for process, code in spawn.reap():
            child = self._children.pop(process, None)
            if child is None:
                continue
            spawn.end(process)
            descriptor = child.connection.fileno()
            self._by_descriptor.pop(descriptor, None)
            with contextlib.suppress(OSError):
                self._hangups.unregister(descriptor)
            with contextlib.suppress(OSError):
                child.connection.shutdown(socket.SHUT_RDWR)
            child.connection.close()
            log("an Assembly process ended", assembly=child.assembly[:12], pid=process, code=code)
        if self._is_program:
            spawn.end_orphans(self._children)
