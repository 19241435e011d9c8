"""`jr2 check` of the Instance that `jr2 init` writes, with each checker that it may choose."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from jr2.errors import Refusal
from jr2_infra import check, typecheck
from jr2_infra.scaffold import scaffold

NAMED = {
    "mypy": '"Door" has no attribute "mesage"',
    "basedpyright": '"mesage" for class "Door"',
    "pyright": '"mesage" for class "Door"',
    "ty": "has no attribute `mesage`",
    "pyrefly": "has no attribute `mesage`",
}


@dataclass
class Said:
    """A reporter that keeps its lines."""

    lines: list[str] = field(default_factory=list)

    def line(self, text: str, *, code: str = "") -> None:
        self.lines.append(text)

    def warning(self, text: str, *, code: str = "") -> None:
        self.lines.append(text)

    def progress(self, text: str | None) -> None: ...

    def confirm(self, question: str) -> bool:
        raise AssertionError(question)


@pytest.mark.parametrize("checker", typecheck.CHECKERS)
def test_a_new_instance_checks_and_a_typo_is_named(
    tmp_path: Path, environment: Path, checker: str
) -> None:
    root = tmp_path / "my-instance"
    said = Said()
    scaffold(root, None, None, said)
    (root / ".venv").symlink_to(environment)
    project = root / "pyproject.toml"
    project.write_text(
        project.read_text().replace('typecheck = "mypy"', f'typecheck = "{checker}"')
    )
    said.lines.clear()

    found = check.check(root, said)

    assert [workflow.name for workflow in found.workflows] == ["ping"]
    assert said.lines == [f"typecheck: {checker} (the instance's own checker)"]
    ping = root / "workflows" / "ping.py"
    ping.write_text(ping.read_text().replace("i.door.message", "i.door.mesage"))
    with pytest.raises(Refusal) as raised:
        check.check(root, said)
    said_first, *lines = raised.value.printed.splitlines()
    assert said_first == (
        "refusing: this instance does not typecheck — nothing was built and nothing was applied"
    )
    assert all(line.startswith("  ") for line in lines)
    assert NAMED[checker] in "\n".join(lines)
    assert "ping.py:32" in "\n".join(lines)
