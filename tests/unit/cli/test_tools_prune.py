"""`jr2 tools prune` removes what this jr2 does not use, and nothing that somebody holds."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jr2.errors import Refusal
from jr2_cli.tools import cache as cache_folder
from jr2_cli.tools import catalogue, prune

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Jr2

ETCD = catalogue.BY_NAME["etcd"]
PINNED = f"etcd/{ETCD.version}/etcd"


def put(cache: Path, *names: str, size: int = 1_500_000) -> None:
    for name in names:
        path = cache / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)


def held(cache: Path) -> set[str]:
    return {
        str(path.relative_to(cache))
        for path in cache.rglob("*")
        if not path.is_dir() and path.name != ".lock"
    }


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache as years of installs leave it."""
    folder = tmp_path / ".cache/jr2/tools"
    put(folder, PINNED, "etcd/3.6.1/etcd", "gone/1.0/gone")
    put(folder, ".work/etcd/objects/00/a", ".left-00/b", f".downloads/{'0' * 64}.part", size=1000)
    put(folder, "notes/by-hand.txt", "etcd/README", size=10)
    return folder


def test_old_versions_and_leftovers_go_and_nothing_else(jr2: Jr2, cache: Path) -> None:
    (cache / ".work/etcd/objects").chmod(0o500)

    said = jr2("tools", "prune")

    assert said.code == 0
    assert said.stdout == ""
    assert said.stderr.splitlines() == [
        "tools: removed .downloads (0.0 MB): downloads that were interrupted",
        "tools: removed .left-00 (0.0 MB): the build cache of an interrupted install",
        "tools: removed .work (0.0 MB): the build cache of an interrupted install",
        f"tools: removed etcd 3.6.1 (1.5 MB): this jr2 uses {ETCD.version}",
        "tools: removed gone 1.0 (1.5 MB): this jr2 does not use it",
        "tools: 5 removed, 3.0 MB freed",
    ]
    assert held(cache) == {PINNED, "notes/by-hand.txt", "etcd/README"}
    assert not (cache / "gone").exists()
    assert jr2("tools", "prune").stderr == "tools: 0 removed, 0.0 MB freed\n"


def test_all_removes_what_is_used_too(jr2: Jr2, cache: Path) -> None:
    said = jr2("tools", "prune", "--all", "--json")

    result = json.loads(said.stdout)
    assert result["bytes"] == 3 * 1_500_000 + 3 * 1000
    assert [item["name"] for item in result["removed"]] == [
        ".downloads",
        ".left-00",
        ".work",
        "etcd 3.6.1",
        f"etcd {ETCD.version}",
        "gone 1.0",
    ]
    assert result["removed"][3] == {
        "name": "etcd 3.6.1",
        "path": str(cache / "etcd/3.6.1"),
        "bytes": 1_500_000,
        "reason": f"this jr2 uses {ETCD.version}",
    }
    assert (result["kept"], result["running"]) == ([], [])
    assert held(cache) == {"notes/by-hand.txt", "etcd/README"}


def test_an_absent_cache_is_no_error_and_is_not_made(jr2: Jr2, tmp_path: Path) -> None:
    assert jr2("tools", "prune").stderr == "tools: 0 removed, 0.0 MB freed\n"
    assert not (tmp_path / ".cache").exists()


def test_nothing_is_removed_while_an_install_is_at_work(cache: Path) -> None:
    before = held(cache)

    with (
        cache_folder.locked(cache),
        pytest.raises(Refusal, match=r"an install is at work in .* \(process \d+\)"),
    ):
        prune.prune(cache, catalogue.PROGRAMS, everything=True)

    assert held(cache) == before


@pytest.fixture
def running(cache: Path) -> Iterator[Path]:
    """A process whose program is the old version of the cache."""
    sleep = shutil.which("sleep")
    assert sleep is not None
    program = cache / "etcd/3.6.1/etcd"
    shutil.copy(sleep, program)
    with subprocess.Popen([program, "60"]) as child:
        yield program
        child.kill()


def test_programs_stay_while_one_of_them_runs(jr2: Jr2, cache: Path, running: Path) -> None:
    said = jr2("tools", "prune")

    assert said.code == 0
    assert said.stderr.splitlines()[-2:] == [
        f"tools: kept etcd 3.6.1, gone 1.0: {running} runs — `jr2 cluster stop`, then "
        "`jr2 tools prune` again",
        "tools: 3 removed, 0.0 MB freed",
    ]
    assert {"etcd/3.6.1/etcd", "gone/1.0/gone"} <= held(cache)


def test_a_link_is_never_followed(cache: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    put(outside, "1.0/linked")
    (cache / "linked").symlink_to(outside)
    (cache / "etcd/3.5.0").symlink_to(outside / "1.0")

    decision = prune.prune(cache, catalogue.PROGRAMS, everything=True)

    assert not {entry.path.name for entry in decision.removed} & {"linked", "3.5.0"}
    assert held(outside) == {"1.0/linked"}


def test_a_file_with_two_names_counts_once(tmp_path: Path) -> None:
    put(tmp_path, "a/one", size=500)
    (tmp_path / "two").hardlink_to(tmp_path / "a/one")

    assert prune.size_of(tmp_path) == 500
