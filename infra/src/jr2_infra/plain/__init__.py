"""Plain `pulumi preview`, `up` and `destroy` of an Instance, beside `jr2 up`.

The same facts, rules, plan and program as `jr2 up`, run by an engine that somebody else started,
with the state that its user configured. So a few things differ, and each has its module: what is
asked for stands in the stack's config (`settings`), lines go to Pulumi's log (`words`), a state
that is remembered must be told which steps are due (`steps`), and the Lease is held for as long as
the engine runs the program (`run`).

Source: design §5.1–5.4 (Plain `pulumi up`), ADR-0123.
"""

from __future__ import annotations

from .run import FillEnvironment, main

__all__ = ["FillEnvironment", "main"]
