"""A long build says how far it is, and `--json` streams what an install does."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from jr2_cli.tools import catalogue, lookup, module_build

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Jr2

ETCD = catalogue.BY_NAME["etcd"]


class Voice:
    """A reporter that keeps its lines, and what it shows on a terminal."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.shown: list[str | None] = []

    def line(self, text: str, *, code: str = "line") -> None:
        self.lines.append(text)

    def warning(self, text: str, *, code: str = "warning") -> None:
        raise AssertionError(text)

    def progress(self, text: str | None) -> None:
        self.shown.append(text)

    def confirm(self, question: str) -> bool:
        raise AssertionError(question)


BUILD = """#!/bin/sh
[ "$1" = env ] && echo go1.26.9 && exit
for word; do
  [ "$last" = -o ] && out=$word
  last=$word
done
echo "go: downloading a.example/b v1" >&2
echo "internal/a" >&2
echo "a.example/b/c-d.e" >&2
echo made > "$out"
"""


def test_a_build_shows_its_packages_and_speaks_each_minute(tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.write_text(BUILD)
    go.chmod(0o755)
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)}
    voice = Voice()
    # The start, then each line that Go says, then the end.
    seconds = iter([100.0, 110.0, 165.0, 170.0, 171.0])

    module_build.build_all([ETCD], tmp_path / "cache", environ, voice, lambda: next(seconds))

    assert voice.lines == [
        "tools: building etcd v3.7.3 (1/1)",
        "tools: still building etcd v3.7.3 (1 packages, 65s)",
        "tools: etcd v3.7.3 built in 71s",
    ]
    assert voice.shown == [
        "tools: building etcd v3.7.3 (1/1)",
        "tools: building etcd v3.7.3 (1/1): fetching modules, 10s",
        "tools: building etcd v3.7.3 (1/1): 1 packages, 65s",
        "tools: building etcd v3.7.3 (1/1): 2 packages, 70s",
    ]


def test_an_install_streams_its_steps(jr2: Jr2, tmp_path: Path) -> None:
    binary = lookup.cached_binary(ETCD, tmp_path / ".cache/jr2/tools")
    binary.parent.mkdir(parents=True)
    binary.write_text("")
    binary.chmod(0o755)

    said = jr2("tools", "install", "etcd", "--json", env={"PATH": os.defpath})

    assert (said.code, said.stderr) == (0, "")
    assert [json.loads(line) for line in said.stdout.splitlines()] == [
        {"code": "tools-ready", "text": "tools: 1 of 1 programs are there"}
    ]


def test_a_wrong_name_is_an_event_too(jr2: Jr2) -> None:
    said = jr2("tools", "install", "nothing", "--json")

    assert said.code == 2
    assert json.loads(said.stdout)["text"] == (
        'error: no program "nothing" — `jr2 tools list` shows the names'
    )
