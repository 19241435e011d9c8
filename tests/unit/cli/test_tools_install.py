"""An install puts each program into the cache whole or not at all, and leaves nothing else."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jr2.errors import StepFailed
from jr2_cli.tools import cache as cache_folder
from jr2_cli.tools import catalogue, golang, install, lookup, packages
from jr2_cli.tools.official import table
from tests.waiting import LIMIT

ETCD = catalogue.BY_NAME["etcd"]
KUBE_PROXY = catalogue.BY_NAME["kube-proxy"]
KUBECTL = catalogue.BY_NAME["kubectl"]
PLUGIN = catalogue.BY_NAME["pulumi-resource-kubernetes"]

FAR_GO = """#!/bin/sh
# Stands for Go: it writes what it was asked, and a file where a binary is wanted.
here=${0%/*}
case "$1" in
env) read -r version < "$here/version"; echo "$version"; exit ;;
mod) exit ;;
list) echo "$here/dependency"; exit ;;
esac
echo "$PWD $*" >> "$here/asked"
env | grep -E '^(GO|CGO|SECRET)' | sort > "$here/environment"
mkdir -p "$GOMODCACHE/m@v1" "$GOCACHE/00" && echo x > "$GOMODCACHE/m@v1/file.go"
chmod a-w "$GOMODCACHE/m@v1/file.go" "$GOMODCACHE/m@v1"
ls > "$here/source"
[ "$3" = std ] && exit
for word; do
  [ "$last" = -o ] && out=$word
  last=$word
done
. "$here/before"
echo "made from $last" > "$out"
"""


class Voice:
    """A reporter that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str, *, code: str = "line") -> None:
        self.lines.append(text)

    def warning(self, text: str, *, code: str = "warning") -> None:
        raise AssertionError(text)

    def progress(self, text: str | None) -> None:
        pass

    def confirm(self, question: str) -> bool:
        raise AssertionError(question)


class Place:
    """A machine with a Go, an empty home and an empty cache."""

    def __init__(self, folder: Path) -> None:
        self.go = folder / "go"
        self.go.mkdir()
        (self.go / "go").write_text(FAR_GO)
        (self.go / "go").chmod(0o755)
        (self.go / "version").write_text("go1.26.0\n")
        (self.go / "before").write_text("")
        embedded = self.go / "dependency" / "cmd" / "pulumi-resource-kubernetes"
        embedded.mkdir(parents=True)
        (embedded / "schema.json").write_text("{}")
        (embedded / "terraform-mapping.json").write_text("{}")
        # A PATH with nothing that the table names, whatever this machine has.
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in ("cat", "chmod", "env", "grep", "ls", "mkdir", "mv", "sleep", "sort"):
            found = shutil.which(name)
            assert found is not None
            (self.bin / name).symlink_to(found)
        self.environ = {
            "PATH": f"{self.go}:{self.bin}",
            "HOME": str(folder),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "GOFLAGS": "-mod=mod",
            "GOPROXY": "https://proxy.example",
            "SECRET": "CANARY",
        }
        self.cache = lookup.cache_folder(self.environ)
        self.voice = Voice()

    def install(self, *programs: catalogue.Program) -> list[lookup.Found]:
        installer = install.Installer(environ=self.environ, reporter=self.voice, clock=lambda: 7.0)
        return installer.install(programs)

    def asked(self) -> list[str]:
        log = self.go / "asked"
        return log.read_text().splitlines() if log.exists() else []

    def cached(self) -> set[str]:
        """Every file of the cache but the lock."""
        files = {str(p.relative_to(self.cache)) for p in self.cache.rglob("*") if p.is_file()}
        return files - {".lock"}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_what_is_missing_is_built_and_nothing_else_is_left(place: Place) -> None:
    found = place.install(ETCD, KUBE_PROXY)

    assert [item.source for item in found] == ["cache", "cache"]
    assert place.cached() == {"etcd/3.7.3/etcd", "kube-proxy/1.36.3/kube-proxy"}
    assert not (place.cache / ".work").exists()
    binary = lookup.cached_binary(KUBE_PROXY, place.cache)
    assert binary.read_text() == "made from k8s.io/kubernetes/cmd/kube-proxy\n"
    assert place.voice.lines == [
        "tools: compiling the standard library of Go 1.26.0",
        "tools: building etcd v3.7.3 (1/2)",
        "tools: etcd v3.7.3 built in 0s",
        "tools: building kube-proxy v1.36.3 (2/2)",
        "tools: kube-proxy v1.36.3 built in 0s",
    ]


def test_what_is_there_is_not_built_again(place: Place) -> None:
    place.install(ETCD)
    asked = place.asked()

    place.install(ETCD)

    assert place.asked() == asked


def test_programs_of_one_module_share_one_work_folder(place: Place) -> None:
    place.install(KUBE_PROXY, KUBECTL)

    assert len({line.split()[0] for line in place.asked()}) == 1
    assert (place.go / "source").read_text().split() == ["go.mod", "go.sum", "tools.go"]


def test_the_standard_library_is_compiled_once_for_more_modules(place: Place) -> None:
    place.install(ETCD, KUBE_PROXY, KUBECTL)

    assert place.voice.lines[0] == "tools: compiling the standard library of Go 1.26.0"

    assert [line.endswith("-trimpath std") for line in place.asked()] == [True, False, False, False]


def test_a_build_sees_private_caches_and_how_modules_are_reached_and_no_more(
    place: Place,
) -> None:
    place.install(ETCD)

    seen = dict(line.split("=", 1) for line in (place.go / "environment").read_text().splitlines())
    work = str(place.cache / ".work")
    for cache in ("GOCACHE", "GOMODCACHE", "GOTMPDIR"):
        assert seen.pop(cache).startswith(work)
    assert seen == {
        "GOFLAGS": "-mod=readonly",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "GOTELEMETRY": "off",
        "CGO_ENABLED": "0",
        "GOPROXY": "https://proxy.example",
    }


def test_what_a_module_embeds_lies_beside_its_main(place: Place) -> None:
    place.install(PLUGIN)

    assert (place.go / "source").read_text().split() == [
        "go.mod",
        "go.sum",
        "main.go",
        "schema.json",
        "terraform-mapping.json",
    ]


def test_the_command_of_a_build_holds_version_and_tags() -> None:
    runc = golang.build_command(Path("/go"), catalogue.BY_NAME["runc"], Path("/out"))
    pulumi = golang.build_command(Path("/go"), catalogue.BY_NAME["pulumi"], Path("/out"))

    assert runc[-5:] == ["-tags", "seccomp", "-o", "/out", "github.com/opencontainers/runc"]
    assert pulumi[6].endswith("sdk/v3/go/common/version.Version=v3.274.1")


def test_a_failed_build_names_the_program_what_was_tried_and_the_next_command(
    place: Place,
) -> None:
    (place.go / "before").write_text(
        'case "$last" in *kube-proxy) echo "go: downloading a v1" >&2; echo "no luck" >&2; exit 1;; esac\n'
    )

    with pytest.raises(StepFailed) as raised:
        place.install(ETCD, KUBE_PROXY)

    assert raised.value.message.splitlines() == [
        "`go build` of kube-proxy 1.36.3 failed",
        "  no luck",
        "not installed: kube-proxy",
        "tried, in order:",
        "  PATH: none of them",
        f"  cache: not in {place.cache}",
        f"  official release: no sum of it is committed for {table.this_platform()}",
        "  module build: failed as said above",
        "then re-run `jr2 tools install kube-proxy`; what was installed stays",
    ]
    assert place.cached() == {"etcd/3.7.3/etcd"}


def test_an_old_go_and_an_absent_one_are_named(place: Place) -> None:
    (place.go / "version").write_text("go1.19.8\n")

    with pytest.raises(StepFailed, match=r"no Go ≥ 1\.26\.0") as raised:
        golang.find_go(place.environ, "1.26.0", usual=())
    with pytest.raises(StepFailed, match=r"no Go ≥ 1\.26\.0"):
        golang.find_go({"PATH": "/nonexistent"}, "1.26.0", usual=())

    assert f"{place.go / 'go'} is 1.19.8" in raised.value.message


def test_a_go_in_its_usual_place_is_found_without_path(place: Place) -> None:
    found = golang.find_go({"PATH": "/nonexistent"}, "1.26", usual=[place.go / "go"])

    assert found == golang.Go(path=place.go / "go", version="1.26.0")


@pytest.mark.parametrize(
    ("version", "holds"),
    [("1.26", True), ("1.26.0", True), ("1.27rc1", True), ("1.26rc2", False), ("1.25.9", False)],
)
def test_a_go_version_is_read_as_go_writes_it(version: str, holds: bool) -> None:
    assert golang.new_enough(version, "1.26.0") is holds
    assert not golang.new_enough("not a version", version)


def test_the_go_that_is_needed_is_what_the_modules_say(place: Place) -> None:
    modules = {program.module.name: program.module for program in catalogue.PROGRAMS}
    assert golang.needed_go([modules["etcd"], modules["kubernetes"]]) == "1.26.0"
    assert golang.needed_go([modules["etcd"], modules["buildkit"]]) == "1.26.8"

    with pytest.raises(StepFailed, match=r"no Go ≥ 1\.26\.8") as raised:
        golang.find_go(place.environ, golang.needed_go(modules.values()), usual=())

    assert f"{place.go / 'go'} is 1.26.0" in raised.value.message


def test_too_little_disk_is_said_before_anything_is_built(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(golang, "free_bytes", lambda folder: 3_000_000_000)

    with pytest.raises(StepFailed, match=r"3\.0 GB free, and the build needs 10 GB"):
        place.install(ETCD)

    assert place.asked() == []


def wait_for(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < deadline, "the condition did not hold in time"
        time.sleep(0.01)


def test_who_holds_the_lock_is_named_also_when_it_says_so_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_folder, "_PATIENCE", LIMIT)
    said: list[int | None] = []
    descriptor = os.open(tmp_path / cache_folder.LOCK, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)

    def wait() -> None:
        with cache_folder.locked(tmp_path, said.append):
            pass

    waiting = threading.Thread(target=wait)
    waiting.start()
    late = threading.Timer(0.1, lambda: os.pwrite(descriptor, b"4711\n", 0))
    late.start()
    late.join()
    wait_for(lambda: bool(said))
    os.close(descriptor)
    waiting.join(LIMIT)
    assert said == [4711]


def test_two_installs_at_once_build_each_program_once(place: Place, tmp_path: Path) -> None:
    # Opening a pipe waits for its other end: the first build goes on when the second install waits.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (place.go / "before").write_text(f"cat {pipe} > /dev/null\n")
    results: list[lookup.Found] = []
    threads = [
        threading.Thread(target=lambda: results.extend(place.install(ETCD)), daemon=True)
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    waits = f"tools: another install is at work (process {os.getpid()}), waiting"
    wait_for(lambda: waits in place.voice.lines)

    with pipe.open("w"):
        pass
    for thread in threads:
        thread.join(LIMIT)

    assert [item.source for item in results] == ["cache", "cache"]
    assert len(place.asked()) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_build_leaves_no_program_and_the_next_one_works(
    place: Place, tmp_path: Path, number: signal.Signals
) -> None:
    started = tmp_path / "started"
    (place.go / "before").write_text(
        f'echo half > "$out"; echo $$ > {started}.part; mv {started}.part {started}; sleep 3600\n'
    )
    child = subprocess.Popen(
        [sys.executable, "-m", "jr2_cli", "tools", "install", "etcd"],
        env=place.environ,
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )
    wait_for(started.exists)
    child.send_signal(number)
    child.wait(LIMIT)
    build = int(started.read_text())
    with contextlib.suppress(ProcessLookupError):
        os.killpg(build, signal.SIGKILL)

    assert "etcd/3.7.3/etcd" not in place.cached()
    if number is signal.SIGINT:
        assert child.returncode == 130
        assert place.cached() == set()
    (place.go / "before").write_text("")
    place.install(ETCD)
    assert place.cached() == {"etcd/3.7.3/etcd"}


def test_packages_are_named_with_the_command_where_we_may_not_install_them() -> None:
    missing = [package for package in catalogue.PACKAGES if package.name in ("ipset", "nftables")]

    assert packages.manual_text(missing, is_debian=True) == (
        "ipset, nftables must be installed as root — run `sudo apt-get install --yes "
        "--no-install-recommends ipset nftables`, then try again"
    )
    assert "  ipset (as Debian names it): NetworkPolicies" in packages.manual_text(
        missing, is_debian=False
    )
