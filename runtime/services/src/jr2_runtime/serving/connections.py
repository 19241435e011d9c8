"""One connection to a program: uvicorn's, which a sender cannot hold for nothing.

A request's head has to come within half a minute, and who was answered before the end of its body
has five seconds to end it. So a peer that connects and says nothing, or says it a byte at a time,
goes; the body itself has a deadline where it is read. Between two requests uvicorn's time holds. A
peer that takes nothing of its answer for half a minute goes too, with what waits for it. No more
connections are held than fit the memory, and the descriptors of the process. What is no HTTP gets
the one error body too.

Source: spec/runtime.md §1.4, design §6.3, ADR-0121 and ADR-0156.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable
from typing import Any, ClassVar, Final, Literal

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS: Final = 30.0
LINGER_SECONDS: Final = 5.0
STALL_SECONDS: Final = 30.0
UNSENT: Final = 32 * 2**10
"""Bytes of an answer that wait in a connection, and in the kernel, before its program has to wait."""
LARGE: Final = 256 * 2**10
MOST_UNSENT: Final = 64 * 2**20
"""Bytes that wait in all connections, from which on one with more than `LARGE` is cut."""
MOST: Final = 4096
"""Connections at one time; a further one is closed at once."""

log = logging.getLogger("jr2.serving")


class _Joined(h11.Connection):
    """Keeps the head of an answer back, so that it goes in one piece with what comes first of it.

    Two pieces are two packets: what passes them on may be cut between them, and a browser shows a
    head without a body as an empty page.

    Args:
        kept: is called when a head is kept; `head()` then gives what nothing came after.
    """

    def __init__(self, kept: Callable[[], object]) -> None:
        super().__init__(h11.SERVER)
        self._kept = kept
        self._head: list[bytes] = []

    def send_with_data_passthrough(self, event: h11.Event) -> list[bytes] | None:
        """Return what is to be sent now; `send` makes one piece of it."""
        pieces = super().send_with_data_passthrough(event)
        if type(event) is h11.Response:
            self._head = pieces or []
            self._kept()
            return []
        return pieces if pieces is None or not self._head else [*self.head(), *pieces]

    def head(self) -> list[bytes]:
        """Return the head that was kept, once."""
        head, self._head = self._head, []
        return head


class Connection(H11Protocol):
    """Reads requests one after the other, each in time."""

    head_seconds: ClassVar[float] = HEAD_SECONDS
    linger_seconds: ClassVar[float] = LINGER_SECONDS
    stall_seconds: ClassVar[float] = STALL_SECONDS
    most: ClassVar[int] = MOST
    most_unsent: ClassVar[int] = MOST_UNSENT

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._answers = _Joined(lambda: self.loop.call_soon(self._send_head))
        self.conn = self._answers
        self._awaited: Literal["head", "rest", "next"] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, if there is room for one more."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=UNSENT)
        if len(self.connections) > self.most:
            if len(self.connections) == self.most + 1:  # one line, however many come at once
                log.warning("no more connections are taken", extra={"connections": self.most})
            transport.close()
            return
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of a connection."""
        self._await(None)
        self._is_taken()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came, and see what has to come next."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Go on to the next request, when this one has ended."""
        super().on_response_complete()
        self._look()

    # --- what has to be taken ---------------------------------------------------------------------
    def _send_head(self) -> None:
        """Send the head of an answer whose body does not come yet, as that of a feed."""
        if (head := self._answers.head()) and not self.transport.is_closing():
            self.transport.write(b"".join(head))

    def pause_writing(self) -> None:
        """Have the program wait, and the peer take something in time."""
        super().pause_writing()
        self._is_taken()
        left = self.transport.get_write_buffer_size()
        if left > LARGE and self._unsent() > self.most_unsent:
            self.transport.abort()
            return
        self._stall = self.loop.call_later(self.stall_seconds, self._look_at, left)

    def resume_writing(self) -> None:
        """Have the program go on."""
        super().resume_writing()
        self._is_taken()

    def _look_at(self, before: int) -> None:
        left = self.transport.get_write_buffer_size()
        if left >= before:
            self.transport.abort()
        else:
            self._stall = self.loop.call_later(self.stall_seconds, self._look_at, left)

    def _unsent(self) -> int:
        """Return how many bytes wait in all connections."""
        return sum(
            each.transport.get_write_buffer_size()
            for each in self.connections
            if isinstance(each, Connection)
        )

    def _is_taken(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, unless it comes behind an answer."""
        self._refuse(400, "the request is no valid HTTP")

    def _refuse(self, code: int, text: str) -> None:
        body = json.dumps({"error": text}).encode()
        headers = [
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("connection", "close"),
        ]
        # It fails where an answer is under way, or was given before.
        with contextlib.suppress(h11.LocalProtocolError):
            self.transport.write(
                (self.conn.send(h11.Response(status_code=code, headers=headers)) or b"")
                + (self.conn.send(h11.Data(data=body)) or b"")
                + (self.conn.send(h11.EndOfMessage()) or b"")
            )
        self.transport.close()

    # --- what has to come -------------------------------------------------------------------------
    def _look(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._await(None)
        elif self.conn.their_state is h11.SEND_BODY:
            self._await("rest")
        elif self.conn.their_state is h11.IDLE and (
            self.cycle is None or self.conn.trailing_data[0]
        ):
            self._await("head")
        elif self.timeout_keep_alive_task is not None:
            self._await(None)  # the next request has not begun: uvicorn's own time holds
        else:
            # The end of a body that came after the answer has ended that time.
            self._await("next")

    def _await(self, what: Literal["head", "rest", "next"] | None) -> None:
        """Give what has to come its time, once: a byte of it does not prolong it."""
        if what == self._awaited:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._awaited = what
        if what is not None:
            seconds = {
                "head": self.head_seconds,
                "rest": self.linger_seconds,
                "next": self.timeout_keep_alive,
            }[what]
            self._timer = self.loop.call_later(seconds, self._late)

    def _late(self) -> None:
        if self._awaited == "head" and self.conn.trailing_data[0]:
            seconds = self.head_seconds
            self._refuse(408, f"the head of the request did not come within {seconds:g} s")
        else:
            self.transport.close()
