"""Attach a watcher, then read what it opens with: nothing that happens between is missed.

Source: spec/runtime.md §1.5.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ..feeds import TooManyFeeds, Topic
from .errors import ApiError
from .services import Services
from .stream import EventStream, Opening


async def watch(
    services: Services, topic: Topic, opening: Callable[[], Awaitable[Opening]]
) -> EventStream:
    """Return the answer of a feed's route; the watcher is let go when it fails.

    Args:
        services: the watchers.
        topic: what is watched.
        opening: reads where it stands now.

    Raises:
        ApiError: 503, as many watchers are attached as may be; and what `opening` raises.
    """
    try:
        feed = services.feeds.attach(topic)
        try:
            async with services.feeds.opening:
                first = await opening()
                feed.opens_with(first.frame)
            return EventStream(first, feed, comment_after=services.comment_after)
        except BaseException:
            feed.close()
            raise
    except TooManyFeeds as full:
        raise ApiError(503, "too many feeds are open; attach again later") from full
