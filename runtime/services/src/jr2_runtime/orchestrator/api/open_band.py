"""The open band: structure and observation; no token, no context, no payload.

Source: spec/runtime.md §1.3 and §1.4; the shapes are those of `jr2.wire`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from jr2 import host_wire, names, signed
from jr2.wire import Health, Ready, RunObservation, WorkflowView

from ... import console
from ..engine import Current, told
from ..feeds import Topic
from ..metrics import stored
from ..store import Run
from ..store import runs as run_rows
from . import listing
from .console_pages import ConsolePages, wants_page
from .described import FEED, described, header
from .errors import ApiError, answer, shape
from .services import Services
from .stream import EventStream, Opening
from .watching import watch


def open_band(services: Services) -> APIRouter:
    """Structure and observation: no token, no context, no payload."""
    router = APIRouter()
    pages = ConsolePages(console.load())
    # The routes themselves: an included router is matched twice for each request.
    router.routes.extend(pages.routes().routes)

    @router.get(
        "/healthz",
        response_model=Health,
        **described(
            "open",
            "the Kit version, and the hash of the current Assembly when there is one",
            {400: "the nonce is none"},
            headers=[
                header(
                    names.HEADER_NONCE,
                    "The answer has a `proof`, which signs this text with the key "
                    f"`{names.KEY_SIGNING_KEY}` of the Secret `{names.INSTANCE_SECRET}`.",
                    pattern="^[A-Za-z0-9_-]{16,128}$",
                )
            ],
        ),
    )
    async def healthz(request: Request) -> Response:
        """Say what is deployed, and prove it to whoever sends a nonce."""
        fields: dict[str, Any] = {"ok": True, "version": names.KIT_VERSION}
        nonce = request.headers.get(names.HEADER_NONCE)
        if nonce is not None:
            if not signed.is_nonce(nonce):
                raise ApiError(
                    400, f"{names.HEADER_NONCE} has 16 to 128 letters, digits, `-` and `_`"
                )
            fields["proof"] = signed.proof(services.values.signing_key, nonce)
        if services.registry.hash is not None:
            fields["hash"] = services.registry.hash
        return shape(Health(**fields))

    @router.get("/readyz", response_model=Ready, **described("open", "while requests are answered"))
    async def readyz() -> Response:
        """Say that requests are answered."""
        return answer({"ready": True})

    @router.get(
        "/metrics",
        **described("open", "the text format of Prometheus", media="text/plain"),
    )
    async def metrics() -> Response:
        """Say what the program counts and measures: steps, queue, lag, live runs, answers."""
        found = await services.store.read(stored)
        page = services.metrics.page(
            found,
            services.engine.running(),
            feeds=len(services.feeds),
            assembly=services.registry.hash,
            now=services.clock.now(),
        )
        return Response(page, media_type="text/plain; version=0.0.4")

    @router.get(
        "/workflows",
        response_model=list[str],
        **described("open", "their names; empty before the first publish"),
    )
    async def workflows() -> Response:
        """List the Workflows of the current Assembly."""
        current = services.registry.current
        return answer([] if current is None else list(current.workflows))

    @router.get(
        "/workflows/{name}",
        response_model=WorkflowView,
        **described(
            "open",
            "the JSON Schema of its door; the Console for any name when `Accept` prefers "
            "`text/html`",
            {404: "no such Workflow"},
            media=("application/json", "text/html"),
        ),
    )
    async def workflow(name: str, request: Request) -> Response:
        """Show the door of a Workflow."""
        if wants_page(request):
            return pages.page(request)
        _, found = _current(services, name)
        view = WorkflowView(name=found.name, machine_id=found.machine_id, input=found.input)
        return shape(view, headers={"Vary": "Accept"})

    @router.get(
        "/workflows/{name}/machine",
        response_model=dict[str, Any],
        **described("open", "the Machine document", {404: "no such Workflow"}),
    )
    async def machine(name: str) -> Response:
        """Show the structure of a Workflow's Machine."""
        return answer(_current(services, name)[1].document)

    @router.get(
        "/workflows/{name}/runs",
        response_model=list[RunObservation],
        **described("open", "id, status and active states of each; empty for an unknown name"),
    )
    async def observed(name: str) -> Response:
        """List the live runs of a Workflow, as anybody may see them."""
        found = await listing.observations(services.store, name)
        return Response(found, media_type="application/json")

    @router.get(
        "/workflows/{name}/events",
        response_class=EventStream,
        **described(
            "open",
            "events `runs` (all that are live, first), `status`, `emit` (its type alone), `gone` "
            "and `closed`",
            {503: "too many feeds are open"},
            media=FEED,
        ),
    )
    async def watch_workflow(name: str) -> Response:
        """Stream the live runs of a Workflow, first all of them, then each change.

        A name that no Workflow has is an empty set, to which a later publish may add.
        """

        async def opening() -> Opening:
            return await services.store.read(lambda db: _opening(run_rows.observed(db, name)))

        return await watch(services, Topic("workflow", name), opening)

    @router.get(
        "/workflows/{name}/runs/{run}/events",
        response_class=EventStream,
        **described(
            "open",
            "events `status`, `emit` (its type alone) and `closed`",
            {404: "no such live run of that Workflow", 503: "too many feeds are open"},
            media=FEED,
        ),
    )
    async def watch_observed(name: str, run: str) -> Response:
        """Stream a live run of a Workflow, as anybody may see it, until it settles."""

        async def opening() -> Opening:
            found = await services.store.read(lambda db: run_rows.read_shown(db, run))
            if found is None or found.workflow != name or found.status != "live":
                raise ApiError(404, f'workflow "{name}" has no live run "{run}"')
            return Opening.of(told.observed_frame(found))

        return await watch(services, Topic("observed", run), opening)

    return router


def _opening(runs: Sequence[Run]) -> Opening:
    return Opening(told.runs_frame(runs), {run.id: run.seq for run in runs})


def _current(services: Services, workflow: str) -> tuple[Current, host_wire.LoadedWorkflow]:
    current = services.registry.current
    if current is None or workflow not in current.workflows:
        raise ApiError(404, f'no workflow "{workflow}"')
    return current, current.workflows[workflow]
