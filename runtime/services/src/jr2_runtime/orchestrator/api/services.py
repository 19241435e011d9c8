"""What the routes stand on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from jr2.wire import Maps

from ..assemblies.publish import Publisher
from ..clock import Clock
from ..engine import Engine, Registry
from ..feeds import Feeds
from ..metrics import Metrics
from ..store import Store
from .auth import Values
from .bodies import Bodies
from .stream import COMMENT_AFTER


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The parts of one Orchestrator, and what a route is told by."""

    store: Store
    engine: Engine
    registry: Registry
    feeds: Feeds
    publisher: Publisher
    maps: Callable[[], Maps]
    values: Values
    metrics: Metrics
    clock: Clock
    namespace: str | None = None
    """Where the Service is; `None` outside of a cluster."""
    comment_after: float = COMMENT_AFTER
    """Seconds of silence after which a feed writes a comment."""
    bodies: Bodies = field(default_factory=Bodies)
    """What is under way of requests."""
