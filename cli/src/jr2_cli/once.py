"""To send a write once: whoever loses the answer asks again under the same key.

The Orchestrator commits the key with what the request did (`Idempotency-Key`), so the second
request of a pair is answered as the first was, and nothing happens twice.

Source: design §4.3.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from . import again

if TYPE_CHECKING:
    from .client import Orchestrator
    from .output import Output
    from .target import Link

T = TypeVar("T")


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
    return again.until_answered(
        link,
        out,
        lambda client: act(client, key),
        said="  the answer was lost — asking again under the same key",
        sleep=sleep,
    )
