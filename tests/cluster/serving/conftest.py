"""One Instance that serves, for the tests that look at it and leave it as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from ..conftest import Instance
from ..settled import wait_for_account

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
MADE = pytest.StashKey[Instance]()


@pytest.fixture(scope="module")
def instance(
    request: pytest.FixtureRequest,
    new_instance: Callable[[str], Instance],
    depart: Callable[[Instance], None],
) -> Instance:
    """The Instance, with a Workflow that waits and one that looks around.

    It is removed after the last test of this folder: a folder without `__init__.py` is no package
    to pytest, and a fixture of that scope would be there until all tests of the cluster are over.
    """
    folder = request.node.parent
    assert isinstance(folder, pytest.Dir)
    assert folder.path == Path(__file__).parent
    if MADE not in folder.stash:
        made = new_instance(NAME)
        made.write("jr2_config.py", CONFIG)
        for workflow in ("parked", "prying"):
            made.write(f"workflows/{workflow}.py", (WORKFLOWS / f"{workflow}.py").read_text())
        made.up()
        made.kubectl("create", "namespace", ALLOWED)
        wait_for_account(made.kubectl, ALLOWED)
        folder.stash[MADE] = made
        folder.addfinalizer(lambda: depart(made))
        folder.addfinalizer(lambda: made.kubectl("delete", "namespace", ALLOWED, "--wait=false"))
    return folder.stash[MADE]
