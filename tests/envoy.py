"""Where the Envoy of the dev group is."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def envoy() -> Path:
    """Return the program itself, without the Python around it."""
    found = importlib.util.find_spec("envoy")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "_bin" / "envoy"
