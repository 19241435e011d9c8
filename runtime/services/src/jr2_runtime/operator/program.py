"""The program `jr2-operator`: kopf, started by code, with every setting that could write turned off.

It begins to watch when both kinds can be listed: their definitions are there and the ClusterRole is
bound. Until then nothing answers on the health port, so a rollout waits for it. When the API refuses
a kind later, the health check fails, and the process that the kubelet starts then waits in the same
way.

Source: design §6.4.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import time
from typing import Any, Final

import kopf
from lightkube import AsyncClient

from jr2 import names

from . import api, health

_LOG: Final = logging.getLogger("jr2.operator")
_RETRY: Final = 1.0
"""Seconds between two looks for the kinds at the start."""
_START_DEADLINE: Final = 5.0
_PROBE_DEADLINE: Final = 0.5
"""Seconds: the kubelet gives a probe one second, also while the API says nothing."""
_PROBES: Final = "/{probe:healthz|readyz}"
"""Both paths answer alike; kopf serves one route, so the route is a pattern."""


class Watcher:
    """What the operator knows of the API: its index is kopf's, its readings are its own."""

    def __init__(self) -> None:
        self._client: AsyncClient | None = None
        self._listed_at: dict[str, float] = {}

    async def read_kinds(self, deadline: float) -> dict[str, health.Reading]:
        """Ask for every kind once, all at once, and remember which were listed."""
        if self._client is None:
            self._client = api.open_client()
        client = self._client
        answers = await asyncio.gather(
            *(api.read_kind(client, kind, deadline) for kind in api.KINDS)
        )
        readings = dict(zip(api.KINDS, answers, strict=True))
        now = time.monotonic()
        self._listed_at |= {k: now for k, reading in readings.items() if reading.answer == "listed"}
        return readings

    async def wait_for_kinds(self) -> None:
        """Return when every kind was listed; say once for each new reason why not."""
        said: set[str] = set()
        while True:
            readings = await self.read_kinds(_START_DEADLINE)
            waiting = {
                f"{kind}: {reading.detail}"
                for kind, reading in readings.items()
                if reading.answer != "listed"
            }
            if not waiting:
                return
            for line in sorted(waiting - said):
                _LOG.warning("waiting for the API to list %s", line)
            said |= waiting
            await asyncio.sleep(_RETRY)

    async def check(self) -> None:
        """Raise when the operator is not healthy."""
        readings = await self.read_kinds(_PROBE_DEADLINE)
        found = health.problems(readings, self._listed_at, time.monotonic())
        if found:
            raise kopf.PermanentError("; ".join(found))


def configure(settings: kopf.OperatorSettings) -> None:
    """Turn off everything by which kopf would write, and bound every wait."""
    settings.posting.enabled = False
    settings.posting.level = logging.ERROR
    settings.peering.standalone = True
    # What is watched is known: no permission to watch definitions or namespaces is needed.
    settings.scanning.disabled = True
    settings.watching.server_timeout = 300
    settings.watching.connect_timeout = 10
    settings.networking.request_timeout = 30
    settings.process.ultimate_exiting_timeout = 8
    # No handler of ours keeps progress; should one ever, its marks carry our domain.
    settings.persistence.finalizer = f"{names.API_GROUP}/operator"
    settings.persistence.progress_storage = kopf.StatusProgressStorage(field="status.operator")
    settings.persistence.diffbase_storage = kopf.StatusDiffBaseStorage(field="status.operator-last")


def register(registry: kopf.OperatorRegistry, watcher: Watcher) -> None:
    """Declare what the operator does: log in, wait, keep an index of both kinds, answer probes."""

    @kopf.on.login(id="login", registry=registry)
    def login(settings: kopf.OperatorSettings, **_: Any) -> kopf.ConnectionInfo | None:
        return api.connection_info(settings)

    @kopf.on.startup(id="start", registry=registry)
    async def start(settings: kopf.OperatorSettings, **_: Any) -> None:
        configure(settings)
        await watcher.wait_for_kinds()
        _LOG.info("watching %s in all namespaces", " and ".join(api.KINDS))

    @kopf.on.probe(id="api", registry=registry, errors=kopf.ErrorsMode.PERMANENT)
    async def probe(**_: Any) -> str:
        await watcher.check()
        return "well"

    for plural in api.KINDS:
        _register_kind(registry, plural)


def _register_kind(registry: kopf.OperatorRegistry, plural: str) -> None:
    kind = (names.API_GROUP, names.API_VERSION, plural)

    @kopf.index(*kind, id=plural, registry=registry)
    def known(
        namespace: str | None, name: str | None, spec: kopf.Spec, **_: Any
    ) -> dict[tuple[str | None, str | None], dict[str, Any]]:
        return {(namespace, name): dict(spec)}

    @kopf.on.probe(id=plural, registry=registry)
    def count(**indices: Any) -> int:
        return len(indices[plural])


def run(arguments: list[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT and return 0, or 1 when a watch failed for good."""
    parser = argparse.ArgumentParser(prog="jr2-operator")
    parser.add_argument("--health-port", type=int, default=names.OPERATOR_HEALTH_PORT)
    options = parser.parse_args(arguments)
    kopf.configure(log_format=kopf.LogFormat.JSON)
    # A line for each probe of the kubelet, and for what it makes us ask, would be most of the log.
    for noisy in ("aiohttp.access", "httpx2", "kopf.activities.probe"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    registry = kopf.OperatorRegistry()
    register(registry, Watcher())
    try:
        kopf.run(
            registry=registry,
            clusterwide=True,
            standalone=True,
            liveness_endpoint=f"http://0.0.0.0:{options.health_port}{_PROBES}",
        )
    except Exception:
        _LOG.exception("the operator ends")
        return 1
    return 0
