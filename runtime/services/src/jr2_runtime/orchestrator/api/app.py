"""The app: every route in its band, and the one error body.

Source: spec/runtime.md §1.4.
"""

from __future__ import annotations

from fastapi import FastAPI

from jr2 import names

from .errors import install
from .guard import Guard, known_hosts
from .instance_band import instance_band
from .open_band import open_band
from .publish_band import publish_band
from .services import Services


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
    for band in (open_band, instance_band, publish_band):
        app.include_router(band(services))
    app.add_middleware(Guard, known=known_hosts(services.namespace))
    return app
