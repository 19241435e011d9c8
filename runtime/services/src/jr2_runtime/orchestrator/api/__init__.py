"""The HTTP routes of the Orchestrator.

Every answer is JSON, every error body is `{"error": "<text>"}`, and a token is checked before a
body is read.

Source: spec/runtime.md §1.2–1.5, design §4.5.
"""

from __future__ import annotations

from .app import build_app
from .services import Services

__all__ = ["Services", "build_app"]
