"""An install takes an official release before it builds, and goes on with what is there."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from jr2.errors import StepFailed
from jr2_cli.tools import catalogue, install, lookup
from jr2_cli.tools.official import table
from tests.reporter import Reporter
from tests.unit.cli.official.conftest import BODY, HERE, RANGE, Host, archive_of, released, sum_of
from tests.waiting import LIMIT, wait_for


def asset_path() -> str:
    return f"/v1.2.3/{HERE.os}-{HERE.arch}"


def sums_of(body: bytes) -> table.Sums:
    return {"tiny": {"1.2.3": {str(HERE): sum_of(body)}}}


def installer(
    tmp_path: Path, voice: Reporter, sums: table.Sums, *, path: str = "/nonexistent"
) -> install.Installer:
    environ = {"PATH": path, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    return install.Installer(environ=environ, reporter=voice, clock=lambda: 7.0, sums=sums)


@pytest.fixture
def no_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without Go."""
    monkeypatch.setattr("jr2_cli.tools.golang.usual_places", list)


def files_of(cache: Path) -> set[str]:
    return {
        str(path.relative_to(cache))
        for path in cache.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


@pytest.mark.usefixtures("no_go")
def test_a_released_program_is_installed_without_go(host: Host, tmp_path: Path) -> None:
    host.files[asset_path()] = BODY
    voice = Reporter(warns=True)

    found = installer(tmp_path, voice, sums_of(BODY)).install([released(host, "tiny")])

    assert [item.source for item in found] == ["cache"]
    assert found[0].path is not None
    assert found[0].path.read_bytes() == BODY
    assert os.access(found[0].path, os.X_OK)
    cache = tmp_path / "cache/jr2/tools"
    assert files_of(cache) == {"tiny/1.2.3/tiny"}
    assert [path.name for path in cache.iterdir() if path.is_dir()] == ["tiny"]
    assert voice.lines == [
        f"tools: downloading tiny from {host.url}{asset_path()}",
        "tools: tiny v1.2.3 from its official release in 0s",
    ]
    assert "tools: downloading tiny: 1 of 1 MB" in voice.shown


@pytest.mark.usefixtures("no_go")
def test_programs_of_one_archive_are_fetched_once(host: Host, tmp_path: Path) -> None:
    body = archive_of(bin__one=b"1", bin__two=b"2")
    host.files[asset_path()] = body
    programs = [released(host, name, member=f"bin/{name}") for name in ("one", "two")]

    found = installer(tmp_path, Reporter(warns=True), sums_of(body)).install(programs)

    assert [item.path.read_bytes() for item in found if item.path] == [b"1", b"2"]
    assert len(host.asked) == 1
    assert files_of(tmp_path / "cache/jr2/tools") == {"one/1.2.3/one", "two/1.2.3/two"}


@pytest.mark.usefixtures("no_go")
@pytest.mark.parametrize(
    ("body", "member", "said"),
    [
        (b"another file", None, "it is not the file that was released"),
        (None, None, "answers 404 Not Found"),
        (archive_of(bin__one=b"1"), "bin/tiny", "the archive holds no bin/tiny"),
    ],
)
def test_a_failure_names_the_program_and_each_source_in_order(
    host: Host, tmp_path: Path, body: bytes | None, member: str | None, said: str
) -> None:
    if body is not None:
        host.files[asset_path()] = body
    sums = sums_of(body if member and body else BODY)

    with pytest.raises(StepFailed) as raised:
        installer(tmp_path, Reporter(warns=True), sums).install(
            [released(host, "tiny", member=member)]
        )

    lines = raised.value.message.splitlines()
    assert lines[0].startswith("no Go ≥ 1.26")
    assert lines[1:5] == [
        "not installed: tiny",
        "tried, in order:",
        "  PATH: none of them",
        f"  cache: not in {tmp_path / 'cache/jr2/tools'}",
    ]
    assert lines[5].startswith("  official release: ")
    assert said in lines[5]
    assert lines[6:] == [
        "  module build: failed as said above",
        "then re-run `jr2 tools install tiny`; what was installed stays",
    ]
    assert files_of(tmp_path / "cache/jr2/tools") == set()


@pytest.mark.usefixtures("no_go")
def test_a_host_that_does_not_answer_is_asked_once(tmp_path: Path) -> None:
    gone = Host()
    gone.close()
    programs = [released(gone, "one"), released(gone, "two", member="x")]
    other = table.Release(asset="tiny", address=f"{gone.url}/other")
    programs.append(
        catalogue.Program(
            name="three",
            version="1.2.3",
            module=catalogue.Module(name="etcd"),
            package=".",
            accepts=RANGE,
            release=other,
        )
    )
    voice = Reporter(warns=True)

    with pytest.raises(StepFailed, match="does not answer"):
        installer(tmp_path, voice, sums_of(BODY)).install(programs)

    assert [line for line in voice.lines if line.startswith("tools: downloading")] == [
        f"tools: downloading one, two from {gone.url}{asset_path()}"
    ]


@pytest.mark.usefixtures("no_go")
def test_what_must_be_built_is_looked_at_before_anything_is_fetched(
    host: Host, tmp_path: Path
) -> None:
    host.files[asset_path()] = BODY
    built = catalogue.BY_NAME["local-path-provisioner"]

    with pytest.raises(StepFailed, match=r"no Go ≥ 1\.26") as raised:
        installer(tmp_path, Reporter(warns=True), sums_of(BODY)).install(
            [released(host, "tiny"), built]
        )

    assert host.asked == []
    assert "  official release: not asked yet (tiny)" in raised.value.message
    assert (
        "  official release: its project publishes no binary of it (local-path-provisioner)"
        in raised.value.message
    )


CHILD = """
import sys
from jr2_cli.tools import catalogue, install, versions
from jr2_cli.tools.official import table

class Voice:
    line = warning = lambda self, text, code="": print(text, flush=True)
    progress = lambda self, text: None

_, url, os_, arch, sha256, home = sys.argv
program = catalogue.Program(
    name="tiny", version="1.2.3", module=catalogue.Module(name="etcd"), package=".",
    accepts=versions.Range(at_least="1", below="2"),
    release=table.Release(asset="tiny", address=url + "/v{version}/{os}-{arch}"),
)
environ = {"PATH": "/nonexistent", "HOME": home, "XDG_CACHE_HOME": home + "/cache"}
install.Installer(
    environ=environ, reporter=Voice(), sums={"tiny": {"1.2.3": {f"{os_}/{arch}": sha256}}}
).install([program])
"""


def child_install(host: Host, tmp_path: Path) -> subprocess.Popen[str]:
    script = tmp_path / "child.py"
    script.write_text(textwrap.dedent(CHILD))
    return subprocess.Popen(
        [sys.executable, script, host.url, HERE.os, HERE.arch, sum_of(BODY), tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_download_that_was_killed_leaves_no_program_and_is_gone_on_with(
    host: Host, tmp_path: Path
) -> None:
    host.files[asset_path()] = BODY
    host.gate = threading.Event()
    cache = tmp_path / "cache/jr2/tools"
    part = cache / ".downloads" / f"{sum_of(BODY)}.part"
    with child_install(host, tmp_path) as child:
        wait_for("a part is here", lambda: part.exists() and part.stat().st_size > 0)
        child.send_signal(signal.SIGKILL)
    had = part.stat().st_size
    host.gate.set()
    host.gate = None
    assert files_of(cache) == {f".downloads/{part.name}"}

    found = installer(tmp_path, Reporter(warns=True), sums_of(BODY)).install(
        [released(host, "tiny")]
    )

    assert found[0].path is not None
    assert found[0].path.read_bytes() == BODY
    assert host.asked[-1] == (asset_path(), f"bytes={had}-")
    assert files_of(cache) == {"tiny/1.2.3/tiny"}


def test_two_processes_at_once_fetch_a_program_once(host: Host, tmp_path: Path) -> None:
    host.files[asset_path()] = BODY
    host.gate = threading.Event()
    with contextlib.ExitStack() as started:
        first = started.enter_context(child_install(host, tmp_path))
        started.callback(first.kill)
        wait_for("the first one fetches", lambda: len(host.asked) == 1)
        second = started.enter_context(child_install(host, tmp_path))
        started.callback(second.kill)
        assert second.stdout is not None
        said = second.stdout.readline()
        host.gate.set()

        rest = [child.communicate(timeout=LIMIT)[0] for child in (first, second)]

    assert said == f"tools: another install is at work (process {first.pid}), waiting\n"
    assert [first.returncode, second.returncode] == [0, 0], rest
    assert len(host.asked) == 1
    assert lookup.cached_binary(released(host, "tiny"), tmp_path / "cache/jr2/tools").exists()
