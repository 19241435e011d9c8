"""Instances whose Machines have parts of each kind, and what `jr2 check` refuses of them.

Each is a folder on disk with a checker that finds nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jr2.errors import Jr2Error
from jr2_infra import check

if TYPE_CHECKING:
    from tests.reporter import Reporter
    from tests.unit.infra.conftest import MakeInstance

PARTS = '''\
"""Machines with parts of each kind; no Workflow."""

from datetime import timedelta

from jr2 import *
from jr2.pools import Source, pool
from pydantic import BaseModel


class Door(BaseModel):
    branch: str = "b"


class Submit(AgentEvent):
    """The work is done."""


def body(name="ticket", *, model="a/b", access="write", effects={}, child=None, inline=None):
    m = Machine(name)
    coder = m.agent("coder", model=model, instructions="Fix it.", workspace=access)
    for slot, effect in effects.items():
        m.effect(slot, effect)
    coding, done = m.state("coding", initial=True), m.final("done")
    coding.turn(coder, lambda c: Turn(prompt="x")).on(Submit, to=done).on(AgentFault, to=done)
    asking = m.state("asking")
    if child is not None:
        asking.invoke(m.child("review", child), lambda c: Door()).done(to=done)
    if inline is not None:
        asking.invoke(inline, lambda c: Door()).done(to=done)
    return m.build()


def triage(**parts):
    return body("triage", access="none", **parts)


async def no_item(active):
    return None


def pooled(worker):
    return pool(
        worker,
        door=Door,
        source=Source(next=no_item, poll_every=timedelta(minutes=1)),
        item_id=str,
        item_input=lambda item, door: door,
    )


def wrap(inner, **parts):
    told = {
        "door": Door,
        "repos": {"app": "https://github.com/acme/app.git"},
        "spec": lambda door: WorkspaceSpec(branch=door.branch),
    }
    return workspace(inner, **(told | parts))
'''
CONFIG = """\
from jr2 import Config, Git, GitCredential, Secret

config = Config(
    secrets=[Secret("TOKEN", value="x")],
    git=Git(credentials=[GitCredential(match="github.com/acme/", token="GITHUB_TOKEN", ssh_key="k")]),
)
"""


def instance(make_instance: MakeInstance, machine: str) -> Path:
    root = make_instance(
        {
            "pyproject.toml": '[tool.jr2]\ntypecheck = "ty"\n',
            "jr2_config.py": CONFIG,
            "workflows/_parts.py": PARTS,
            "workflows/w.py": workflow(machine),
        }
    )
    program = root / ".venv" / "bin" / "ty"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return root


def workflow(machine: str, line: str = "shipped") -> str:
    return f"from jr2 import *\nfrom ._parts import *\n\nshipped = {machine}\nmachine = {line}\n"


def refused(root: Path, said: Reporter) -> list[str]:
    with pytest.raises(Jr2Error) as raised:
        check.check(root, said)
    return raised.value.printed.splitlines()
