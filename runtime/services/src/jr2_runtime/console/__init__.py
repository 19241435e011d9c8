"""The Console: a page for a browser, and the files that it loads.

Everything lies in `static` and is served from the package alone: no other origin, no build step,
and no folder in which a request could look for something else, for a name is looked up in a table
that is made at the start.

Source: spec/runtime.md §1.15, ADR-0113.
"""

from __future__ import annotations

from .files import SHELL, Asset, load, security

__all__ = ["SHELL", "Asset", "load", "security"]
