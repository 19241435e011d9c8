"""What the program counts, and what it measures when it is asked, as `/metrics` shows it.

No label holds a run id, a name that a client chose, or anything of a context: routes are named by
their pattern, Workflows by the Assembly. So the page is for anybody who may connect (ADR-0144).

Source: design §6.6.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Summary, generate_latest

from jr2 import names

from .store import runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What the store says of the work that is left."""

    live: Mapping[str, int]
    """Live runs, by Workflow."""
    stuck: int
    oldest_due_at: int | None
    """The due time of the timer that is due first, in milliseconds since the epoch."""


def stored(db: sqlite3.Connection) -> Stored:
    """Read it; each number comes from an index."""
    live = dict(
        db.execute("SELECT workflow, count(*) FROM runs WHERE status = 'live' GROUP BY workflow")
    )
    (oldest,) = db.execute("SELECT min(due_at) FROM timers").fetchone()
    return Stored(live=live, stuck=len(runs.stuck(db)), oldest_due_at=oldest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """What the engine has in its hands."""

    waiting: int
    """Events that wait for their step."""
    oldest: float
    """Seconds that the oldest of them waits."""
    tasks: int
    """Tasks that run."""
    tasks_waiting: int
    """Tasks that wait until one may run."""


class Metrics:
    """The counters of one program."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self._steps = Counter(
            "jr2_steps",
            "Steps that were committed, by the run's status after it.",
            ["status"],
            registry=registry,
        )
        # A label's counter is looked up once: that takes longer than to count.
        self._by_status: dict[str, Counter] = {}
        self._by_code: dict[tuple[str, str, int], Counter] = {}
        self._by_route: dict[tuple[str, str], Summary] = {}
        self._requests = Counter(
            "jr2_http_requests",
            "Requests that were answered.",
            ["method", "route", "code"],
            registry=registry,
        )
        self._seconds = Summary(
            "jr2_http_request_seconds",
            "How long answers took; feeds are left out.",
            ["method", "route"],
            registry=registry,
        )
        self._live = Gauge("jr2_runs_live", "Live runs.", ["workflow"], registry=registry)
        self._stuck = Gauge(
            "jr2_runs_stuck", "Live runs that nothing will ever move.", registry=registry
        )
        self._waiting = Gauge(
            "jr2_events_waiting", "Events that wait for their step.", registry=registry
        )
        self._oldest = Gauge(
            "jr2_event_wait_seconds", "How long the oldest of them waits.", registry=registry
        )
        self._tasks = Gauge("jr2_tasks_running", "Tasks that run.", registry=registry)
        self._tasks_waiting = Gauge(
            "jr2_tasks_waiting", "Tasks that wait until one more may run.", registry=registry
        )
        self._lag = Gauge(
            "jr2_timer_lag_seconds", "How long the most overdue timer is due.", registry=registry
        )
        self._feeds = Gauge("jr2_feeds_open", "Feeds that are watched.", registry=registry)
        self._info = Gauge(
            "jr2_orchestrator", "The program.", ["version", "assembly"], registry=registry
        )

    def step(self, status: str, number: int = 1) -> None:
        """Count committed steps after which their runs have a status."""
        counter = self._by_status.get(status)
        if counter is None:
            counter = self._by_status[status] = self._steps.labels(status)
        counter.inc(number)

    def request(self, method: str, route: str, code: int, seconds: float | None) -> None:
        """Count one answer.

        Args:
            method: the HTTP method.
            route: the pattern of its path; empty when no route has it.
            code: the HTTP status.
            seconds: how long it took; `None` for a feed.
        """
        asked = (method, route, code)
        counter = self._by_code.get(asked)
        if counter is None:
            counter = self._by_code[asked] = self._requests.labels(method, route, str(code))
        counter.inc()
        if seconds is None:
            return
        summary = self._by_route.get(asked[:2])
        if summary is None:
            summary = self._by_route[asked[:2]] = self._seconds.labels(method, route)
        summary.observe(seconds)

    def page(
        self, found: Stored, running: Running, *, feeds: int, assembly: str | None, now: int
    ) -> bytes:
        """Return the page in the text format of Prometheus.

        Args:
            found: what the store says.
            running: what the engine says.
            feeds: how many feeds are watched.
            assembly: the hash of the current Assembly.
            now: milliseconds since the epoch.
        """
        self._live.clear()
        for workflow, number in found.live.items():
            self._live.labels(workflow).set(number)
        self._stuck.set(found.stuck)
        self._waiting.set(running.waiting)
        self._oldest.set(running.oldest)
        self._tasks.set(running.tasks)
        self._tasks_waiting.set(running.tasks_waiting)
        due = found.oldest_due_at
        self._lag.set(0 if due is None else max(0, now - due) / 1000)
        self._feeds.set(feeds)
        self._info.clear()
        self._info.labels(names.KIT_VERSION, (assembly or "")[: names.SHORT_HASH]).set(1)
        return generate_latest(self._registry)
