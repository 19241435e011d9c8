"""The app: every route in its band, and the one error body.

Source: spec/runtime.md §1.4.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, TypeGuard, cast

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from jr2 import names

from .auth import require
from .authenticated_band import authenticated_band
from .described import BANDS, INTRODUCTION, SHAPES
from .direct import Direct
from .errors import install
from .guard import Guard, known_hosts
from .head import Head
from .instance_band import GATE_PATH, START_PATH, instance_band
from .observed import Observed
from .open_band import open_band
from .publish_band import publish_band
from .services import Services


def build_app(services: Services) -> ASGIApp:
    """Return what answers requests; its OpenAPI document is at `/openapi.json`."""
    app = documented_app(services)
    direct = Direct(
        app, [each for each in app.routes if _is_direct(each)], require(("instance",), services)
    )
    return Observed(Guard(Head(direct), known_hosts(services.namespace)), services.metrics)


def _is_direct(route: BaseRoute) -> TypeGuard[APIRoute]:
    """Whether a route starts a run or moves one."""
    return (
        isinstance(route, APIRoute)
        and route.path in (START_PATH, GATE_PATH)
        and route.methods == {"POST"}
    )


def documented_app(services: Services) -> FastAPI:
    """Return the app with every route and its document."""
    app = FastAPI(
        title="The HTTP API",
        version=names.KIT_VERSION,
        description=INTRODUCTION,
        openapi_tags=[{"name": band, "description": text} for band, text in BANDS.items()],
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    install(app)
    for band in (open_band, instance_band, publish_band, authenticated_band):
        # The routes themselves: an included router is matched twice for each request.
        app.router.routes.extend(band(services).routes)
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        document = plain()
        schemes = {band: {"type": "http", "scheme": "bearer"} for band in BANDS if band != "open"}
        components = document.setdefault("components", {})
        components["securitySchemes"] = schemes
        for model in SHAPES:
            stated = model.model_json_schema(ref_template="#/components/schemas/{model}")
            components["schemas"] |= {**stated.pop("$defs", {}), model.__name__: stated}
        for methods in document["paths"].values():
            for route in methods.values():
                # Our routes answer 422 for their own reasons, and say so themselves.
                answers = route["responses"]
                content = answers.get("422", {}).get("content", {}).get("application/json", {})
                if content.get("schema", {}).get("$ref", "").endswith("HTTPValidationError"):
                    del answers["422"]
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI's own pages do it
    return app


def document() -> dict[str, Any]:
    """Return the OpenAPI document without a program behind it: its routes are never asked."""
    nothing = SimpleNamespace(namespace=None, metrics=None)
    return documented_app(cast("Services", nothing)).openapi()
