"""The routes: which band each is in, what it reads, what it answers.

Source: spec/runtime.md §1.4; the shapes are those of `jr2.wire`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, FastAPI, Path, Request
from pydantic import ValidationError
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from jr2 import host_wire, names
from jr2.wire import (
    Assemblies,
    Health,
    HeldAssembly,
    LeaseStamp,
    Maps,
    Published,
    Resolved,
    RunStarted,
    Wire,
    WorkflowView,
)

from ..assemblies.publish import Publisher
from ..engine import Current, Engine, Registry, shown
from ..feeds import Feeds
from ..store import Answer, Run, Store
from ..store import assemblies as assembly_rows
from ..store import runs as run_rows
from .auth import Digests, require
from .bodies import as_object, content_length, read_body
from .errors import ApiError, answer, install
from .once import answer_once, read_once
from .stream import COMMENT_AFTER, EventStream

SHORTEST_PREFIX: Final = 4
MOST_RESOLVED: Final = 10
_HASH: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What the routes stand on."""

    store: Store
    engine: Engine
    registry: Registry
    feeds: Feeds
    publisher: Publisher
    maps: Callable[[], Maps]
    digests: Digests
    comment_after: float = COMMENT_AFTER
    """Seconds of silence after which a feed writes a comment."""


def build_app(services: Services) -> FastAPI:
    """Return the app; its OpenAPI document is at `/openapi.json`."""
    app = FastAPI(
        title="jr2 Orchestrator",
        version=names.KIT_VERSION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    install(app)
    app.include_router(_open(services))
    app.include_router(_instance_only(services))
    app.include_router(_publish_only(services))
    return app


def _shape(model: Wire, code: int = 200) -> Response:
    return answer(model.model_dump(mode="json", by_alias=True, exclude_unset=True), code)


def _current(services: Services, workflow: str) -> tuple[Current, host_wire.LoadedWorkflow]:
    current = services.registry.current
    if current is None or workflow not in current.workflows:
        raise ApiError(404, f'no workflow "{workflow}"')
    return current, current.workflows[workflow]


def _open(services: Services) -> APIRouter:
    """Structure and observation: no token, no context, no payload."""
    router = APIRouter()

    @router.get("/healthz", response_model=Health)
    async def healthz() -> Response:
        """Say what is deployed."""
        fields: dict[str, Any] = {"ok": True, "version": names.KIT_VERSION}
        if services.registry.hash is not None:
            fields["hash"] = services.registry.hash
        return _shape(Health(**fields))

    @router.get("/readyz")
    async def readyz() -> Response:
        """Say that requests are answered."""
        return answer({"ready": True})

    @router.get("/workflows", response_model=list[str])
    async def workflows() -> Response:
        """List the Workflows of the current Assembly."""
        current = services.registry.current
        return answer([] if current is None else list(current.workflows))

    @router.get("/workflows/{name}", response_model=WorkflowView)
    async def workflow(name: str) -> Response:
        """Show the door of a Workflow."""
        _, found = _current(services, name)
        return _shape(WorkflowView(name=found.name, machine_id=found.machine_id, input=found.input))

    @router.get("/workflows/{name}/machine")
    async def machine(name: str) -> Response:
        """Show the structure of a Workflow's Machine."""
        return answer(_current(services, name)[1].document)

    @router.get("/workflows/{name}/runs")
    async def observed(name: str) -> Response:
        """List the live runs of a Workflow, as anybody may see them."""
        runs = await services.store.read(lambda db: run_rows.live(db, name))
        return answer([shown.dump(shown.observation(run)) for run in runs])

    return router


def _instance_only(services: Services) -> APIRouter:
    """What the Instance token opens."""
    router = APIRouter(dependencies=[Depends(require("instance", services.digests))])

    def status(run: Run, *, gates: bool = False) -> dict[str, Any]:
        return shown.dump(shown.status(run, services.registry.hash, gates=gates))

    @router.post("/workflows/{name}/runs", status_code=201, response_model=RunStarted)
    async def start(name: str, request: Request) -> Response:
        """Start a run; answers when it is on the disk."""
        body = await read_body(request)
        once = read_once(request, body)
        return await answer_once(
            services.store, once, lambda: services.engine.start(name, as_object(body), once)
        )

    @router.get("/runs")
    async def runs() -> Response:
        """List the live runs."""
        live = await services.store.read(run_rows.live)
        return answer([status(run) for run in live])

    @router.get("/runs/resolve", response_model=Resolved)
    async def resolve(prefix: str = "") -> Response:
        """Find runs by the start of their id."""
        if len(prefix) < SHORTEST_PREFIX:
            raise ApiError(400, f"a prefix has at least {SHORTEST_PREFIX} characters")
        found = await services.store.read(
            lambda db: run_rows.by_prefix(db, prefix.lower(), MOST_RESOLVED + 1)
        )
        return _shape(
            Resolved(
                prefix=prefix,
                run_ids=found[:MOST_RESOLVED],
                truncated=len(found) > MOST_RESOLVED,
            )
        )

    @router.get("/runs/{run}")
    async def one(run: str) -> Response:
        """Show a run, live or settled, with its open Gates."""
        return answer(status(await _found(services, run), gates=True))

    @router.get("/runs/{run}/events")
    async def watch(run: str) -> Response:
        """Stream the status of a run, first as it is, then whenever it changes."""
        feed = services.feeds.attach(run)
        try:
            found = await _found(services, run)
            first = services.engine.status_frame(found)
            return EventStream(first, feed, comment_after=services.comment_after)
        except BaseException:
            feed.close()
            raise

    @router.post("/runs/{run}/events")
    async def control(run: str, request: Request) -> Response:
        """Cancel a run; one that has settled, or that nobody knows, stays as it is."""
        body = await read_body(request)
        once = read_once(request, body)

        async def act() -> Answer:
            if as_object(body).get("type") != "CANCEL":
                raise ApiError(400, 'a run takes the event {"type": "CANCEL"} only')
            return await services.engine.cancel(run, once)

        return await answer_once(services.store, once, act)

    @router.post("/runs/{run}/gates/{gate:path}/events")
    async def gate_event(
        run: str, gate: Annotated[str, Path(min_length=1)], request: Request
    ) -> Response:
        """Answer a Gate; answers when the step that took the event is on the disk."""
        body = await read_body(request)
        once = read_once(request, body)

        async def act() -> Answer:
            given = as_object(body)
            name = given.pop("type", None)
            if not isinstance(name, str) or not name:
                raise ApiError(400, 'a Gate takes {"type": "<event>", …}, and "type" is missing')
            try:
                event = host_wire.GateEvent(
                    gate=gate,
                    id=request.headers.get(names.HEADER_IF_GATE),
                    name=name,
                    payload=given,
                )
            except ValidationError as bad:
                raise ApiError(400, "the payload is nested too deeply") from bad
            return await services.engine.post(run, event, once)

        return await answer_once(services.store, once, act)

    @router.get("/assemblies", response_model=Assemblies)
    async def assemblies() -> Response:
        """List the Assemblies that are held, the runs that hold them, and the watched maps."""
        held, by_assembly = await services.store.read(
            lambda db: (assembly_rows.held(db), run_rows.held_by(db))
        )
        current = services.registry.hash
        return answer(
            Assemblies(
                current=current,
                assemblies=[
                    HeldAssembly(
                        hash=each.hash,
                        kit_version=each.kit_version,
                        current=each.hash == current,
                        runs=by_assembly.get(each.hash, []),
                    )
                    for each in held
                ],
                maps=services.maps(),
            ).model_dump(mode="json", by_alias=True)
        )

    return router


def _publish_only(services: Services) -> APIRouter:
    """What the publish token opens, and nothing else."""
    router = APIRouter(dependencies=[Depends(require("publisher", services.digests))])

    @router.put("/assemblies/{hash_}", status_code=201, response_model=Published)
    async def publish(hash_: str, request: Request) -> Response:
        """Publish an Assembly: 201 it is current now, 200 it was already."""
        if not _HASH.fullmatch(hash_):
            raise ApiError(400, "an Assembly is named by 64 hex digits")
        version = request.headers.get(names.HEADER_KIT_VERSION)
        if version is not None and version != services.registry.kit_version:
            raise ApiError(
                409,
                f"it is for Kit version {version} and this Orchestrator is "
                f"{services.registry.kit_version} (ADR-0056)",
            )
        # The path names the content by its hash, so the body need not be read for the key.
        once = read_once(request, b"")

        async def act() -> Answer:
            try:
                return await services.publisher.publish(
                    hash_, request.stream(), content_length(request), _stamp(request), once
                )
            except ClientDisconnect as gone:
                raise ApiError(400, "the archive was cut") from gone

        return await answer_once(services.store, once, act)

    return router


def _stamp(request: Request) -> LeaseStamp:
    text = request.headers.get(names.HEADER_LEASE)
    if text is None:
        raise ApiError(400, f"a publish carries the converge Lease ({names.HEADER_LEASE})")
    try:
        return LeaseStamp.parse(text)
    except ValueError as bad:
        raise ApiError(400, f"{names.HEADER_LEASE}: {bad}") from bad


async def _found(services: Services, run: str) -> Run:
    found = await services.store.read(lambda db: run_rows.read_shown(db, run))
    if found is None:
        raise ApiError(404, f'no run "{run}"')
    return found
