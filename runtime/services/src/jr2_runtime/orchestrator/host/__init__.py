"""The Orchestrator's side of the worker: links to Assembly processes, and what becomes of them.

Nothing that comes over a link is trusted: replies are closed models, lengths are capped, a
snapshot is never parsed, and a key or a run id is the one that was asked with, not the one that
came back.

Source: design §4.4.
"""

from __future__ import annotations

from .link import AssemblyAway, Link, LinkLost, open_link
from .process import Ask, AssemblyProcess, Outcome, StruckOut
from .processes import Processes

__all__ = [
    "Ask",
    "AssemblyAway",
    "AssemblyProcess",
    "Link",
    "LinkLost",
    "Outcome",
    "Processes",
    "StruckOut",
    "open_link",
]
