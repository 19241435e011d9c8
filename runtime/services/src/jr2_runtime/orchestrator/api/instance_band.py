"""The Instance band: what the Instance token opens.

Source: spec/runtime.md §1.4; the shapes are those of `jr2.wire`.
"""

from __future__ import annotations

import json
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path, Request
from pydantic import ValidationError
from starlette.responses import Response, StreamingResponse

from jr2 import host_wire, names
from jr2.nesting import MOST_NESTED, TooDeep, shallow
from jr2.wire import Assemblies, HeldAssembly, Resolved, RunStarted, RunStatus, Taken

from ..engine import shown, told
from ..feeds import Topic
from ..store import Answer
from ..store import assemblies as assembly_rows
from ..store import runs as run_rows
from . import listing
from .auth import require
from .bodies import as_object
from .described import FEED, described, header, json_body
from .errors import ApiError, answer, shape
from .once import answer_once, read_once
from .services import Services
from .stream import EventStream, Opening
from .watching import watch

SHORTEST_PREFIX: Final = 4
MOST_RESOLVED: Final = 10
START_PATH: Final = "/workflows/{name}/runs"
GATE_PATH: Final = "/runs/{run}/gates/{gate:path}/events"


def instance_band(services: Services) -> APIRouter:
    """What the Instance token opens."""
    router = APIRouter(dependencies=[Depends(require(("instance",), services))])

    @router.post(
        START_PATH,
        response_model=RunStarted,
        **described(
            "instance",
            "the run is on the disk",
            {
                400: "the input does not fit the door",
                404: "no such Workflow",
                413: "the body, or the snapshot of its start, is too large",
                500: "its start ended the process twice, or gave no answer that can be read; no "
                "run was made",
                408: "the body did not come within 30 seconds",
                503: "no Assembly is current, the worker is away, or too much is under way; "
                "nothing was started",
            },
            code=201,
            writes=True,
            body=json_body("The input of the run.", {"type": "object"}),
        ),
    )
    async def start(name: str, request: Request) -> Response:
        """Start a run; answers when it is on the disk."""
        async with services.bodies.of(request) as body:
            once = read_once(request, body)
            return await answer_once(
                services.store, once, lambda: services.engine.start(name, as_object(body), once)
            )

    @router.get(
        "/runs",
        response_model=list[RunStatus],
        **described("instance", "the live runs, those of an older Assembly too"),
    )
    async def runs() -> Response:
        """List the live runs."""
        return StreamingResponse(
            listing.statuses(services.store, services.registry.hash), media_type="application/json"
        )

    @router.get(
        "/runs/resolve",
        response_model=Resolved,
        **described(
            "instance",
            "up to 10 ids, live or settled, sorted; `truncated` when there are more",
            {400: "the prefix has fewer than 4 characters"},
        ),
    )
    async def resolve(prefix: str = "") -> Response:
        """Find runs by the start of their id."""
        if len(prefix) < SHORTEST_PREFIX:
            raise ApiError(400, f"a prefix has at least {SHORTEST_PREFIX} characters")
        found = await services.store.read(
            lambda db: run_rows.by_prefix(db, prefix.lower(), MOST_RESOLVED + 1)
        )
        return shape(
            Resolved(
                prefix=prefix,
                run_ids=found[:MOST_RESOLVED],
                truncated=len(found) > MOST_RESOLVED,
            )
        )

    @router.get(
        "/runs/{run}",
        response_model=RunStatus,
        **described(
            "instance",
            "the run; `stuck` says why nothing will ever move it",
            {404: "no such run"},
        ),
    )
    async def one(run: str) -> Response:
        """Show a run, live or settled, with its open Gates."""
        found, is_stuck = await services.store.read(
            lambda db: (run_rows.read_shown(db, run), run_rows.is_stuck(db, run))
        )
        if found is None:
            raise _unknown(run)
        current = services.registry.hash
        return answer(shown.dump(shown.status(found, current, gates=True, is_stuck=is_stuck)))

    @router.get(
        "/runs/{run}/events",
        response_class=EventStream,
        **described(
            "instance",
            "events `status`, `emit` and `closed`; the feed ends when the run settles",
            {404: "no such run", 503: "too many feeds are open"},
            media=FEED,
        ),
    )
    async def watch_run(run: str) -> Response:
        """Stream the status of a run, first as it is, then whenever it changes."""

        async def opening() -> Opening:
            found = await services.store.read(lambda db: run_rows.read_shown(db, run))
            if found is None:
                raise _unknown(run)
            return Opening.of(told.status_frame(found, services.registry.hash))

        return await watch(services, Topic("run", run), opening)

    @router.post(
        "/runs/{run}/events",
        response_model=Taken,
        **described(
            "instance",
            "it is cancelled, had settled already, or nobody knows it",
            {
                400: "another event than `CANCEL`",
                408: "the body did not come within 30 seconds",
                413: "the body is too large",
                503: "too much is under way; nothing was done",
            },
            writes=True,
            body=json_body(
                "The one event that a run takes.",
                {
                    "type": "object",
                    "required": ["type"],
                    "properties": {"type": {"const": "CANCEL"}},
                },
            ),
        ),
    )
    async def control(run: str, request: Request) -> Response:
        """Cancel a run; one that has settled, or that nobody knows, stays as it is."""
        async with services.bodies.of(request) as body:
            once = read_once(request, body)

            async def act() -> Answer:
                if as_object(body).get("type") != "CANCEL":
                    raise ApiError(400, 'a run takes the event {"type": "CANCEL"} only')
                return await services.engine.cancel(run, once)

            return await answer_once(services.store, once, act)

    @router.post(
        GATE_PATH,
        response_model=Taken,
        **described(
            "instance",
            "the step that took the event is on the disk",
            {
                400: "the Gate does not accept the event, or its payload does not fit",
                404: "no such run or open Gate; or the run has settled",
                408: "the body did not come within 30 seconds",
                409: "the run waits for a publish that this Orchestrator can load, or it moved on "
                "while the event was on its way",
                412: f"`{names.HEADER_IF_GATE}` names another entry of the Gate",
                413: "the body is too large",
                503: "the worker is away, or too much is under way; the event was not taken",
            },
            writes=True,
            headers=[
                header(
                    names.HEADER_IF_GATE,
                    "The `id` that `GET /runs/{run}` gives for the Gate, so that an old answer "
                    "never reaches a later entry of the same Gate.",
                    pattern="^[!-~]+$",
                )
            ],
            body=json_body(
                "The event, with its payload beside its name. A step that fails after it was "
                "taken is no HTTP error: the run ends with `error`.",
                {
                    "type": "object",
                    "required": ["type"],
                    "properties": {"type": {"type": "string", "minLength": 1}},
                },
            ),
        ),
    )
    async def gate_event(
        run: str, gate: Annotated[str, Path(min_length=1)], request: Request
    ) -> Response:
        """Answer a Gate; answers when the step that took the event is on the disk."""
        async with services.bodies.of(request) as body:
            once = read_once(request, body)

            async def act() -> Answer:
                # Nothing here keeps the event: it waits as text; its objects are many times that.
                return await services.engine.post(run, _event(gate, request, body), once)

            return await answer_once(services.store, once, act)

    @router.get(
        "/assemblies",
        response_model=Assemblies,
        **described(
            "instance",
            "also `stuck`, the live runs that nothing will ever move; a map that was not read is "
            "`null`",
        ),
    )
    async def assemblies() -> Response:
        """List the Assemblies that are held, the runs that hold them, and the watched maps."""
        held, by_assembly, stuck = await services.store.read(
            lambda db: (assembly_rows.held(db), run_rows.held_by(db), run_rows.stuck(db))
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
                stuck=stuck,
            ).model_dump(mode="json", by_alias=True)
        )

    return router


def _event(gate: str, request: Request, body: bytes) -> host_wire.GateEvent:
    """Return the event that a request gives to a Gate.

    Raises:
        ApiError: 400, it has no name, or a payload that cannot be handed on.
    """
    given = as_object(body)
    name = given.pop("type", None)
    if not isinstance(name, str) or not name:
        raise ApiError(400, 'a Gate takes {"type": "<event>", …}, and "type" is missing')
    try:
        if body.count(b"[") + body.count(b"{") > MOST_NESTED:
            shallow(json.dumps(given))
        return host_wire.GateEvent(
            gate=gate,
            id=request.headers.get(names.HEADER_IF_GATE),
            name=name,
            payload=given,
        )
    except (ValidationError, TooDeep, RecursionError) as bad:
        raise ApiError(400, "the payload is nested too deeply") from bad


def _unknown(run: str) -> ApiError:
    return ApiError(404, f'no run "{run}"')
