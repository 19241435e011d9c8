"""What the OpenAPI document says of a route: its band, its body, its headers, its answers.

The routes read bodies themselves, so that a token is checked first and a body is capped; so their
document is stated here and not derived from parameters. `page` writes `docs/http-api.md` from it.

Source: spec/runtime.md §1.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from jr2 import names
from jr2.wire import AssemblyListing, ErrorBody, PublishRefused, Wire

Band = Literal["open", "instance", "publish", "authenticated"]

ERRORS: Final[dict[Band, type[Wire]]] = {
    "open": ErrorBody,
    "instance": ErrorBody,
    "publish": PublishRefused,
    "authenticated": ErrorBody,
}
"""The error body of each band."""
SHAPES: Final[tuple[type[Wire], ...]] = (*ERRORS.values(), AssemblyListing)
"""What the document has to define, since no parameter or answer of a route names it."""
SENT: Final = {"$ref": f"#/components/schemas/{AssemblyListing.__name__}"}
"""The list of files that a publish sends."""
_ALWAYS: Final = {421: "the `Host` is none of the Orchestrator's names"}
_GUARDED: Final = {
    401: "no token, or one that nobody has",
    403: "the token of another band",
}
PAGE: Final = "a page of another site sent it"
_WRITE: Final = {
    400: "the `Idempotency-Key` is none",
    422: "the `Idempotency-Key` was used for another request",
    507: "the store did not take the change, as on a full disk; nothing was done",
}
KEY: Final[dict[str, Any]] = {
    "name": names.HEADER_IDEMPOTENCY_KEY,
    "in": "header",
    "required": False,
    "description": "The request is done once for a key: a repeat gets the stored answer.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}


def header(name: str, description: str, *, required: bool = False, pattern: str) -> dict[str, Any]:
    """Return the description of one header."""
    return {
        "name": name,
        "in": "header",
        "required": required,
        "description": description,
        "schema": {"type": "string", "pattern": pattern},
    }


def json_body(description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of a body of JSON."""
    return {
        "description": description,
        "required": False,
        "content": {"application/json": {"schema": dict(schema)}},
    }


def described(
    band: Band,
    ok: str,
    errors: Mapping[int, str] | None = None,
    *,
    code: int = 200,
    media: str | Sequence[str] = "application/json",
    writes: bool = False,
    headers: Sequence[Mapping[str, Any]] = (),
    body: Mapping[str, Any] | None = None,
    more: Mapping[int, str] | None = None,
) -> dict[str, Any]:
    """Return what a router's decorator takes besides the path.

    Args:
        band: whom it opens to.
        ok: what the answer is when it is no error.
        errors: what else it answers, by code.
        code: of the answer that is no error.
        media: of that answer, or the several that it may have.
        writes: it takes `Idempotency-Key`, and no write of another site's page.
        headers: of the request, as `header` describes them.
        body: of the request, as `json_body` describes it.
        more: further answers that are no errors, by code.
    """
    stated = dict(_ALWAYS)
    if band != "open":
        stated |= _GUARDED
    if writes:
        stated[403] = f"{stated[403]}; or {PAGE}" if 403 in stated else PAGE
    for number, text in (_WRITE if writes else {}).items():
        stated[number] = text
    for number, text in (errors or {}).items():
        stated[number] = f"{text}; or {stated[number]}" if number in stated else text
    responses: dict[int | str, dict[str, Any]] = {code: {"description": ok}}
    for each in (media,) if isinstance(media, str) else media:
        if each != "application/json":
            content = responses[code].setdefault("content", {})
            content[each] = {"schema": {"type": "string"}}
    for number, text in (more or {}).items():
        responses[number] = {"description": text}
    for number in sorted(stated):
        schema = {"$ref": f"#/components/schemas/{ERRORS[band].__name__}"}
        responses[number] = {
            "description": stated[number],
            "content": {"application/json": {"schema": schema}},
        }
    extra: dict[str, Any] = {"security": [] if band == "open" else [{band: []}]}
    parameters = [*([KEY] if writes else []), *map(dict, headers)]
    if parameters:
        extra["parameters"] = parameters
    if body is not None:
        extra["requestBody"] = dict(body)
    return {
        "status_code": code,
        "tags": [band],
        "responses": responses,
        "openapi_extra": extra,
    }


FEED: Final = "text/event-stream"
INTRODUCTION: Final = f"""\
The Orchestrator serves HTTP on port {names.ORCHESTRATOR_PORT} of the Service `{names.ORCHESTRATOR}`. `jr2` reaches it through `kubectl port-forward`.
HEAD answers as GET does, without the body. Bodies are JSON. Every error body is `{{"error": "<text>"}}`. This document is served at `/openapi.json`.

A band says whom a route opens to. A token goes into the header `Authorization: Bearer <token>`. One that is missing or unknown gets 401, a known one in the wrong band 403; both are answered before the body is read. A body of more than 256 KiB gets 413; the routes of a publish take more.

The head of a request has to come within 30 seconds, its body within 30 more; else it gets 408. A blob has 30 seconds for each piece, and brings 4 KiB in a second. A connection ends after 75 seconds between two requests. No more than 4 096 are held at a time, and no more than the limit of open files leaves when 256 are kept for the store.

A request for another `Host` than the Service, this machine or an address in digits gets 421, and a write whose `Origin` is another address gets 403. When the target of a request is a whole address, `GET http://<host>/<path>`, its host counts and `Host` does not. So no page of another site can use a port that you forwarded.

**A write is done once for its `{names.HEADER_IDEMPOTENCY_KEY}`.** The key, a digest of the request and the answer are committed with what the request did, and kept for 7 days. When all answers take more than 128 MiB the oldest go sooner, but none within 5 minutes. A repeat gets the stored answer, also after a crash between the commit and the answer; the same key with another request gets 422. What was refused did nothing and is not stored, so the same key may try again.

**A feed is level-triggered.** A status frame is the whole status, so a client that lost its connection attaches again and has missed nothing that still matters. A silent feed sends a comment every 15 seconds. A client that does not keep up, and every client when the Orchestrator stops, gets the event `closed` and may attach again: 256 frames or 4 MiB wait for one client, and 64 MiB for all; what waited is dropped. Who takes nothing of an answer for 30 seconds is cut. No more than 2 000 feeds are open at a time; a further one gets 503.
"""
BANDS: Final[dict[Band, str]] = {
    "open": "Structure and states, never a context or a payload. No token.",
    "instance": (
        f"Runs, Gates and Assemblies. The token is `{names.KEY_INSTANCE_TOKEN}` of the Secret "
        f"`{names.INSTANCE_SECRET}`."
    ),
    "publish": (
        f"What a publish asks and sends. The token is `{names.KEY_PUBLISH_TOKEN}` of the Secret "
        f"`{names.INSTANCE_SECRET}`, which opens nothing else; the Instance token does not open it."
    ),
    "authenticated": (
        "What the Custodian of a pod asks for. The token is the pod's own, which the Orchestrator has "
        "signed, or the Instance token. This version runs no Turn and makes no Sandbox, so each "
        "answer is 404."
    ),
}
