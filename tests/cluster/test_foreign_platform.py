"""A platform that the real builder of the local cluster cannot build for.

Source: seed 003 (To build for a different CPU architecture), ADR-0038.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jr2 import names
from jr2_cli import tools
from jr2_cli.local_cluster import layout
from tests.waiting import LIMIT

from .conftest import Instance

pytestmark = pytest.mark.cluster

HERE = Path(__file__).parent
NAME = "foreign-platform"


@pytest.fixture
def instance(
    new_instance: Callable[[str], Instance], depart: Callable[[Instance], None]
) -> Iterator[Instance]:
    """An Instance whose Machine makes a Sandbox from a folder."""
    made = new_instance(NAME)
    made.write("workflows/repos.py", (HERE / "workflows" / "repos.py").read_text())
    yield made
    depart(made)


def targets() -> list[str]:
    """Return what buildkitd says that it builds for, as a person asks it."""
    found = subprocess.run(
        [
            str(tools.require("buildctl")), "--addr", f"unix://{layout.Layout().buildkit_socket}",
            "debug", "workers", "--format", "{{json .}}",
        ],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=True,
    )  # fmt: skip
    said = [
        f"{one['os']}/{one['architecture']}"
        for worker in json.loads(found.stdout)
        for one in worker["platforms"]
    ]
    return list(dict.fromkeys(said))


def test_the_builder_itself_says_what_it_cannot_build(instance: Instance) -> None:
    builds_for = targets()
    foreign = [one for one in names.KIT_PLATFORMS if one not in builds_for]
    if not foreign:
        pytest.skip("an emulator of every platform of the Kit is registered with this kernel")
    config = f'from jr2 import *\n\nconfig = Config(platforms=["{foreign[0]}"])\n'
    instance.write("jr2_config.py", config)

    said = instance.up(code=1)

    assert said.endswith(
        f"\nerror: this host cannot build for {foreign[0]}: a foreign architecture's RUN steps "
        "need qemu binfmt emulation, and none is registered (this builder targets "
        f"{', '.join(builds_for)}). Install it, then re-run:\n"
        "  docker run --privileged --rm tonistiigi/binfmt --install "
        f"{foreign[0].partition('/')[2]}\n"
    )
