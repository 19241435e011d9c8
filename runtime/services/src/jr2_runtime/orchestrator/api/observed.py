"""Each request is counted, and belongs to the trace that its `traceparent` names.

The API of OpenTelemetry carries the context: a log line that is written for the request, and for
what the request has started, says which trace it belongs to. Without an SDK nothing is recorded.

Source: design §6.6, ADR-0144.
"""

from __future__ import annotations

import time
from typing import Final

from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jr2 import trace as command_trace

from ..metrics import Metrics

_PROPAGATOR: Final = TraceContextTextMapPropagator()
_HEADER: Final = command_trace.HEADER.encode()
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})


class Observed:
    """Counts what passes through, and sets the trace that it belongs to.

    Args:
        app: what answers.
        metrics: the counters.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        self._tracer = trace.get_tracer("jr2.orchestrator")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, code, is_feed = time.perf_counter(), 500, False

        async def sending(message: Message) -> None:
            nonlocal code, is_feed
            if message["type"] == "http.response.start":
                code = message["status"]
                is_feed = (b"content-type", b"text/event-stream; charset=utf-8") in message[
                    "headers"
                ]
            await send(message)

        given = b""
        for name, value in scope["headers"]:
            if name == _HEADER:
                given = value
        try:
            if given:
                await self._traced(given.decode("latin-1"), scope, receive, sending)
            else:
                await self._app(scope, receive, sending)
        finally:
            seconds = None if is_feed else time.perf_counter() - started
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.request(method, _route(scope), code, seconds)

    async def _traced(self, given: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on as a part of its sender's trace; a trace begins with its sender."""
        context = _PROPAGATOR.extract({command_trace.HEADER: given})
        with self._tracer.start_as_current_span(
            scope["method"], context=context, kind=trace.SpanKind.SERVER
        ) as span:
            await self._app(scope, receive, send)
            span.set_attribute("http.route", _route(scope))


def _route(scope: Scope) -> str:
    """Return the pattern of the route; no path that a client chose becomes a label."""
    return str(getattr(scope.get("route"), "path_format", ""))
