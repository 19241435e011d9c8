"""To ask again when an answer was lost: a connection that broke says nothing of the request.

A connection that could not be made at all sent nothing, and is an error at once. Once an answer was
lost, an answer such as 503 is waited out too: it is what one that starts again says, as after the
loss. A read changes nothing and is asked again as it is, for a minute at most; a write is for `once`.

Source: spec/converge.md §2.5.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from . import client as api
from .port_forward import ForwardFailed

if TYPE_CHECKING:
    from .client import Orchestrator
    from .output import Output
    from .target import Link

T = TypeVar("T")
_PAUSES: Final = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0)
"""Seconds before each further try."""
READ_SECONDS: Final = 60.0
"""After so long a read is not tried again: one that nobody answers takes half of it each time."""


def read(link: Link, out: Output, ask: Callable[[Orchestrator], T]) -> T:
    """Read something, again when the answer was lost.

    Args:
        link: the way to the Orchestrator.
        out: where it is said, once, that the answer was lost.
        ask: reads it; it may do so several times.

    Raises:
        ApiFailed: the Orchestrator refused it.
        ConnectionLost: nothing was sent, or no answer came to any of the tries.
        ForwardFailed: the way could not be opened, or not again.
    """
    end = time.monotonic() + READ_SECONDS
    said = "  the answer was lost — asking again"
    return until_answered(link, out, ask, said=said, is_over=lambda: time.monotonic() > end)


def until_answered(
    link: Link,
    out: Output,
    ask: Callable[[Orchestrator], T],
    *,
    said: str,
    sleep: Callable[[float], None] = time.sleep,
    is_over: Callable[[], bool] = lambda: False,
) -> T:
    """Ask, and again after each loss of the answer.

    Args:
        link: the way to the Orchestrator.
        out: where `said` is written, once.
        ask: sends the request.
        said: that the answer was lost.
        sleep: how to wait.
        is_over: whether no further try is made.

    Raises:
        ApiFailed: the Orchestrator refused it.
        ConnectionLost: nothing was sent, or no answer came to any of the tries.
        ForwardFailed: the way could not be opened, or not again.
    """
    lost: api.ConnectionLost | ForwardFailed | api.ApiFailed
    try:
        return ask(link.client)
    except api.ConnectionLost as error:
        if not error.was_sent:
            raise
        lost = error
    out.line(said, code="asking-again")
    for pause in _PAUSES:
        if is_over():
            break
        link.drop()
        sleep(pause)
        try:
            return ask(link.client)
        except (api.ConnectionLost, ForwardFailed) as error:
            lost = error
        except api.ApiFailed as error:
            if error.status < 500:
                raise
            lost = error
    raise lost
