"""The program `jr2-repo-cache`: follow the Repos of one namespace on one node, and answer probes.

It is ready when it has listed the Repos, and healthy while the API server says anything to it.

Source: spec/runtime.md §6, ADR-0158.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jr2 import names

from ..cluster import Cluster
from ..serving import answers, logs, serve_until_told
from .agent import SILENCE_LIMIT, Agent

log = logging.getLogger("jr2.repo-cache")

_OUTSIDE: Final = "no service account and no namespace: the Repo cache runs in a pod"


class CannotStart(Exception):
    """Something that the pod must give is missing."""


def run(environment: Mapping[str, str] = os.environ) -> int:
    """Run until SIGTERM or SIGINT; return the exit code."""
    logs.install()
    try:
        asyncio.run(serve(environment))
    except (CannotStart, OSError) as failed:
        log.error("the Repo cache cannot start", extra={"reason": str(failed)})
        return 1
    return 0


async def serve(
    environment: Mapping[str, str], transport: httpx2.AsyncBaseTransport | None = None
) -> None:
    """Run one agent.

    Args:
        environment: `JR2_NODE_NAME`, `JR2_NAMESPACE`, and where the API server is; `JR2_CACHE_PATH`,
            `JR2_SERVICE_ACCOUNT_PATH` and `PORT` change what a pod has by itself.
        transport: in place of the network.

    Raises:
        CannotStart: it is told no node or no cluster, or the folder of the clones cannot be written.
        OSError: the port cannot be used.
    """
    agent = _agent(environment)
    port = int(environment.get("PORT", names.REPO_CACHE_HEALTH_PORT))
    async with asyncio.TaskGroup() as group:
        work = group.create_task(agent.run(transport))
        await serve_until_told(build_app(agent), host="", port=port)
        work.cancel()


def build_app(agent: Agent) -> Starlette:
    """Return the app that answers the kubelet's probes."""

    async def healthy(request: Request) -> Response:
        silent = agent.silence()
        if silent > SILENCE_LIMIT:
            return answers.error(503, f"the API server has said nothing for {silent:.0f} s")
        return await answers.healthy(request)

    async def ready(request: Request) -> Response:
        if not agent.has_listed:
            return answers.error(503, "the Repos were not listed yet")
        return await answers.healthy(request)

    return Starlette(
        routes=[
            Route("/healthz", healthy, methods=["GET"]),
            Route("/readyz", ready, methods=["GET"]),
        ],
        exception_handlers=dict(answers.HANDLERS),
    )


def _agent(environment: Mapping[str, str]) -> Agent:
    account = environment.get("JR2_SERVICE_ACCOUNT_PATH", names.SERVICE_ACCOUNT_PATH)
    cluster = Cluster.find(environment, Path(account))
    if cluster is None:
        raise CannotStart(_OUTSIDE)
    node = environment.get(names.ENV_NODE_NAME)
    if not node:
        raise CannotStart(f"{names.ENV_NODE_NAME} is not set")
    folder = Path(environment.get("JR2_CACHE_PATH", names.REPO_CACHE_PATH))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CannotStart(f"{folder} cannot be written")
    return Agent(cluster, node)
