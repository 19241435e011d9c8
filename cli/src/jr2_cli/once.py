"""To send a write once: whoever loses the answer asks again under the same key.

The Orchestrator commits the key with what the request did (`Idempotency-Key`), so the second
request of a pair is answered as the first was, and nothing happens twice. A connection that could
not be made at all sent nothing, and is an error at once. Once an answer was lost, an answer such as
503 is waited out too: it says nothing about the first request.

Source: design §4.3.
"""

from __future__ import annotations

import time
import uuid
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


def send(
    link: Link,
    out: Output,
    act: Callable[[Orchestrator, str], T],
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Send one write, again under the same key when its answer was lost.

    Args:
        link: the way to the Orchestrator.
        out: where it is said, once, that the answer was lost.
        act: sends the request under the key that it is given.
        sleep: how to wait.

    Raises:
        ApiFailed: the Orchestrator refused it.
        ConnectionLost: nothing was sent, or no answer came to any of the tries.
        ForwardFailed: the way could not be opened, or not again.
    """
    key = str(uuid.uuid4())
    lost: api.ConnectionLost | ForwardFailed | api.ApiFailed
    try:
        return act(link.client, key)
    except api.ConnectionLost as error:
        if not error.was_sent:
            raise
        lost = error
    out.line("  the answer was lost — asking again under the same key", code="asking-again")
    for pause in _PAUSES:
        link.drop()
        sleep(pause)
        try:
            return act(link.client, key)
        except (api.ConnectionLost, ForwardFailed) as error:
            lost = error
        except api.ApiFailed as error:
            # One that starts again, as after the loss, says nothing about the first request.
            if error.status < 500:
                raise
            lost = error
    raise lost
