"""Logs are JSON lines on standard output; uvicorn's go the same way.

A line has the time, the level, the logger, the message, and what was given as `extra`; and, when it
belongs to one, the trace. Nothing
here is handed a token: requests are not logged, and digests never leave `api.auth`.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final

from opentelemetry import trace

_encode: Final = json.JSONEncoder(default=str).encode
_STANDARD: Final = frozenset(
    vars(logging.makeLogRecord({})).keys() | {"message", "asctime", "color_message", "taskName"}
)


class JsonFormatter(logging.Formatter):
    """One record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update({k: v for k, v in vars(record).items() if k not in _STANDARD})
        context = trace.get_current_span().get_span_context()
        if context.is_valid:
            line["trace_id"] = trace.format_trace_id(context.trace_id)
            line["span_id"] = trace.format_span_id(context.span_id)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return _encode(line)


def install() -> None:
    """Write every log of the program as JSON on standard output."""
    # What no line shows is not looked up: that is a third of a line, and runs may settle by the
    # thousand.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    # Both log each request; a path tells which run somebody looks at, and nothing that we need.
    logging.getLogger("uvicorn.access").disabled = True
    logging.getLogger("httpx2").setLevel(logging.WARNING)
