"""A new Instance, for real: uv installs it, its own mypy passes it, and a type error is refused.

Source: seed 001 (Read the output), design §3 and §3.1.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from jr2.errors import Refusal
from jr2_infra import check
from jr2_infra.facts.kit import find_checkout, running_copy
from jr2_infra.scaffold import scaffold


class Lines:
    """A reporter that keeps its lines."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def line(self, text: str, *, code: str = "line") -> None:
        self.said.append(text)

    def warning(self, text: str, *, code: str = "warning") -> None:
        self.said.append(text)

    def progress(self, text: str | None) -> None:
        pass

    def confirm(self, question: str) -> bool:
        raise AssertionError(f"nothing was to be asked: {question}")


def test_a_new_instance_installs_and_checks(tmp_path: Path) -> None:
    root = tmp_path / "my-instance"
    scaffold(root, None, find_checkout(running_copy().path), Lines())
    environment = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
    subprocess.run(["uv", "lock", "-q"], cwd=root, env=environment, check=True)
    subprocess.run(["uv", "sync", "-q", "--frozen"], cwd=root, env=environment, check=True)
    lines = Lines()

    facts = check.check(root, lines)

    assert lines.said == ["typecheck: mypy (the instance's own checker)"]
    assert (facts.name, [workflow.name for workflow in facts.workflows]) == (
        "my-instance",
        ["ping"],
    )
    assert (root / ".venv" / "bin" / "jr2").exists()

    # A module with the name of the checker, a name with a hyphen and a relative import are legal.
    (root / "mypy.py").write_text("")
    (root / "workflows" / "_words.py").write_text('WORD: str = "pong"\n')
    ping = (root / "workflows" / "ping.py").read_text()
    (root / "workflows" / "my-ping.py").write_text("from ._words import WORD as WORD\n" + ping)
    assert [workflow.name for workflow in check.check(root, lines).workflows] == ["my-ping", "ping"]

    (root / "workflows" / "ping.py").write_text(ping.replace("i.door.message", "i.door.mesage"))
    with pytest.raises(Refusal) as raised:
        check.check(root, lines)
    assert raised.value.printed.splitlines() == [
        "refusing: this instance does not typecheck — nothing was built and nothing was applied",
        '  workflows/ping.py:32:78: error: "Door" has no attribute "mesage"; maybe "message"?  '
        "[attr-defined]",
    ]
