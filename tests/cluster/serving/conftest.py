"""One Instance that serves, for the tests that look at it and leave it as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from ..conftest import Instance

NAME: Final = "serving"
ALLOWED: Final = "serving-hooks"
"""A namespace whose pods the config admits."""
CONFIG = f"""
from jr2 import AllowFrom, Config, Network

config = Config(
    name="{NAME}",
    network=Network(allow_from=[AllowFrom(namespace="{ALLOWED}", pods={{"app": "translator"}})]),
)
"""
WORKFLOWS = Path(__file__).parents[1] / "workflows"


@pytest.fixture(scope="package")
def instance(
    new_instance: Callable[[str], Instance], depart: Callable[[Instance], None]
) -> Iterator[Instance]:
    """The Instance, with a Workflow that waits and one that looks around."""
    made = new_instance(NAME)
    made.write("jr2_config.py", CONFIG)
    for workflow in ("parked", "prying"):
        made.write(f"workflows/{workflow}.py", (WORKFLOWS / f"{workflow}.py").read_text())
    made.up()
    made.kubectl("create", "namespace", ALLOWED)
    yield made
    made.kubectl("delete", "namespace", ALLOWED, "--wait=false")
    depart(made)
