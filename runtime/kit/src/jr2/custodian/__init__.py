"""The Custodian: the container beside a Harness that holds the credentials of its pod.

It is Envoy from a Pinned image, with a static config. `bootstrap` writes that config, `custodian.lua`
puts a value in the place of its Stand-in, and `pod` composes the container, its volumes and what
the Harness is told. `jr2 up` composes it for the Instance Harness, the services for a Sandbox.

Source: seed 004 (The Custodian), spec/runtime.md §3, spec/converge.md §5.10.
"""

from __future__ import annotations

from .bootstrap import Ports, bootstrap, script
from .pod import Composed, compose

__all__ = ["Composed", "Ports", "bootstrap", "compose", "script"]
