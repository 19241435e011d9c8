"""A TCP proxy before a program: it counts what is sent through it, and can cut all connections."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Final

_PIECE: Final = 16 * 2**10


class Proxy:
    """Passes bytes on to a port of this machine, as a port-forward does.

    Args:
        port: where to.
        delay: seconds that each piece of the sender's bytes is held, as on a long way.
    """

    def __init__(self, port: int, *, delay: float = 0.0) -> None:
        self._port = port
        self._delay = delay
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self.sent = 0
        """Bytes that came from the senders."""
        self.heads = 0
        """Requests among them."""
        self.cut_at: int | None = None
        """How many bytes pass before everything is cut; `None` for no end."""
        self.answered = 0
        """Bytes that came from the program."""
        self.cut_answers_at: int | None = None
        """After how many bytes of answers everything is cut, once; `None` for never."""
        self.cut_answers_in: tuple[bytes, int] | None = None
        """A text of an answer and how many bytes from its start everything is cut, once: before it
        if negative, and at the latest at the end of the piece that holds it; `None` for never."""
        self.cut_requests_at: int | None = None
        """After how many bytes of requests everything is cut, once; `None` for never."""
        self._flows = [threading.Event()]
        self._flows[0].set()
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        """Reset every connection."""
        with self._lock:
            ends, self._open = self._open, set()
            for end in ends:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def hang(self) -> None:
        """Pass nothing on and end nothing, as a forward that leads nowhere any more."""
        self._flows[-1].clear()

    def pass_new(self) -> None:
        """Pass on what is opened from now on; what hangs stays so."""
        self._flows.append(threading.Event())
        self._flows[-1].set()

    def close(self) -> None:
        self._closed = True
        for each in self._flows:
            each.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while not self._closed:
            try:
                sender, _ = self._listener.accept()
            except OSError:
                return
            try:
                program = socket.create_connection(("127.0.0.1", self._port))
            except OSError:
                sender.close()
                continue
            for end in (sender, program):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._open |= {sender, program}
            ways = {True, False}
            for source, target, counted in ((sender, program, True), (program, sender, False)):
                threading.Thread(
                    target=self._pass_on,
                    args=(source, target, counted, self._flows[-1], ways),
                    daemon=True,
                ).start()

    def _pass_on(
        self,
        source: socket.socket,
        target: socket.socket,
        counted: bool,
        flows: threading.Event,
        ways: set[bool],
    ) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(_PIECE):
                flows.wait()
                if self._cut_in(piece, target, counted):
                    break
                if counted:
                    with self._lock:
                        self.sent += len(piece)
                        self.heads += piece.count(b" HTTP/1.1\r\n")
                        is_over = self.cut_at is not None and self.sent > self.cut_at
                    if is_over:
                        self.cut()
                        break
                    if self._delay:
                        time.sleep(self._delay)
                target.sendall(piece)
        flows.wait()
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)
        with self._lock:
            # Closed while the other way still reads, a number could be that of the next connection.
            ways.remove(counted)
            if not ways:
                self._open -= {source, target}
                source.close()
                target.close()

    def _cut_in(self, piece: bytes, target: socket.socket, is_request: bool) -> bool:
        """Pass a piece on up to the byte at which everything is cut, when that is in it."""
        with self._lock:
            if is_request:
                passed, at = self.sent, self.cut_requests_at
            else:
                passed, at = self.answered, self.cut_answers_at
                self.answered += len(piece)
            if not is_request and self.cut_answers_in and self.cut_answers_in[0] in piece:
                text, beyond = self.cut_answers_in
                at = passed + min(len(piece) - 1, piece.index(text) + beyond)
            if at is None or passed + len(piece) <= at:
                return False
            if is_request:
                self.cut_requests_at = None
            else:
                self.cut_answers_at = self.cut_answers_in = None
        target.sendall(piece[: max(0, at - passed)])
        self.cut()
        return True


@contextlib.contextmanager
def proxied(port: int, *, delay: float = 0.0) -> Iterator[Proxy]:
    made = Proxy(port, delay=delay)
    try:
        yield made
    finally:
        made.close()
