"""The command as a person starts it: a process of its own, with streams that are no terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

_LIMIT = 60.0


@dataclass(frozen=True, slots=True)
class Said:
    """What a finished command said."""

    code: int
    stdout: str
    stderr: str


class Jr2(Protocol):
    """Runs `jr2` with these arguments to its end."""

    def __call__(
        self, *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> Said: ...


def clean_environment(home: Path) -> dict[str, str]:
    """The environment of a command that finds nothing of this machine but its programs."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "KUBECONFIG": str(home / "no-kubeconfig"),
    }


@pytest.fixture
def jr2(tmp_path: Path) -> Jr2:
    """`jr2` in a process of its own, in an empty folder, with an empty home."""
    folder = tmp_path / "cwd"
    folder.mkdir()

    def run(*arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Said:
        done = subprocess.run(
            [sys.executable, "-m", "jr2_cli", *arguments],
            cwd=folder if cwd is None else cwd,
            env={**clean_environment(tmp_path), **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    return run
