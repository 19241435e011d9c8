"""Durable runs: events in, steps asked, transactions committed, and only then acts.

Source: design §4.3, spec/runtime.md §1.7.
"""

from __future__ import annotations

from .engine import Engine
from .refused import EventRefused
from .registry import Current, Registry

__all__ = ["Current", "Engine", "EventRefused", "Registry"]
