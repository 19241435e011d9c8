"""Official releases: a program comes whole, from the host that was named, with the committed sum.

The host is a real HTTP server of this process, which a test makes cut, redirect or lie.
"""

from __future__ import annotations

import hashlib
import http.server
import io
import os
import signal
import subprocess
import sys
import tarfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jr2.errors import StepFailed
from jr2_cli.tools import catalogue, install, lookup, versions
from jr2_cli.tools.official import download, table, unpack
from jr2_cli.tools.official.__main__ import read_sums

HERE = table.this_platform()
BODY = bytes(range(256)) * 4096  # 1 MiB
RANGE = versions.Range(at_least="1", below="2")


class Host:
    """A host of releases.

    Args:
        files: what it serves, by path.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.redirects: dict[str, str] = {}
        self.cut_after: list[int] = []
        """Bytes of the body after which a connection ends, for each answer in turn."""
        self.ranges = True
        self.gate: threading.Event | None = None
        """When set, an answer stops after its first half until the event is set."""
        self.asked: list[tuple[str, str | None]] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer._get(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _get(self, request: http.server.BaseHTTPRequestHandler) -> None:
        wanted = request.headers.get("Range")
        self.asked.append((request.path, wanted))
        if request.path in self.redirects:
            request.send_response(302)
            request.send_header("Location", self.redirects[request.path])
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        body = self.files.get(request.path)
        if body is None:
            request.send_error(404)
            return
        start = 0
        if wanted is not None and self.ranges:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(body):
                request.send_error(416)
                return
            request.send_response(206)
            request.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        else:
            request.send_response(200)
        sent = body[start:]
        request.send_header("Content-Length", str(len(sent)))
        request.end_headers()
        if self.cut_after:
            sent = sent[: self.cut_after.pop(0)]
            request.close_connection = True
        if self.gate is not None:
            request.wfile.write(sent[: len(sent) // 2])
            request.wfile.flush()
            self.gate.wait(30)
            sent = sent[len(sent) // 2 :]
        request.wfile.write(sent)


@pytest.fixture
def host() -> Iterator[Host]:
    server = Host()
    yield server
    server.close()


def sum_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def fetch(host: Host, folder: Path, path: str = "/file", sha256: str = sum_of(BODY)) -> Path:
    with download.new_client() as client:
        return download.download(f"{host.url}{path}", sha256, folder, client=client)


def test_a_file_comes_whole_under_its_sum(host: Host, tmp_path: Path) -> None:
    host.files["/file"] = BODY

    whole = fetch(host, tmp_path)

    assert whole.read_bytes() == BODY
    assert [path.name for path in tmp_path.iterdir()] == [sum_of(BODY)]


def test_a_file_that_is_there_is_not_asked_for_again(host: Host, tmp_path: Path) -> None:
    host.files["/file"] = BODY
    fetch(host, tmp_path)

    fetch(host, tmp_path)

    assert len(host.asked) == 1


def test_another_sum_names_both_and_leaves_nothing(host: Host, tmp_path: Path) -> None:
    host.files["/file"] = b"another file"

    with pytest.raises(StepFailed) as raised:
        fetch(host, tmp_path)

    assert sum_of(b"another file") in raised.value.message
    assert sum_of(BODY) in raised.value.message
    assert list(tmp_path.iterdir()) == []


def test_a_body_that_is_cut_is_gone_on_with_where_it_stopped(host: Host, tmp_path: Path) -> None:
    host.files["/file"] = BODY
    host.cut_after = [300_000, 0, 1]

    assert fetch(host, tmp_path).read_bytes() == BODY

    assert [wanted for _, wanted in host.asked] == [
        None,
        "bytes=300000-",
        "bytes=300000-",
        "bytes=300001-",
    ]


def test_a_host_without_ranges_is_asked_from_the_start(host: Host, tmp_path: Path) -> None:
    host.files["/file"] = BODY
    host.ranges = False
    host.cut_after = [300_000]

    assert fetch(host, tmp_path).read_bytes() == BODY


def test_a_host_that_always_cuts_is_given_up_and_the_part_stays(host: Host, tmp_path: Path) -> None:
    host.files["/file"] = BODY
    host.cut_after = [500, *[0] * 20]

    with pytest.raises(StepFailed, match=r"was cut 4 times after 500 bytes"):
        fetch(host, tmp_path)

    assert [path.stat().st_size for path in tmp_path.iterdir()] == [500]
    host.cut_after = []
    assert fetch(host, tmp_path).read_bytes() == BODY
    assert host.asked[-1] == ("/file", "bytes=500-")


def test_a_part_of_another_file_is_thrown_away_once(host: Host, tmp_path: Path) -> None:
    host.files["/file"] = BODY
    (tmp_path / f"{sum_of(BODY)}.part").write_bytes(b"the start of another file")

    assert fetch(host, tmp_path).read_bytes() == BODY


def test_a_part_that_is_whole_already_is_taken(host: Host, tmp_path: Path) -> None:
    host.files["/file"] = BODY
    (tmp_path / f"{sum_of(BODY)}.part").write_bytes(BODY)

    assert fetch(host, tmp_path).read_bytes() == BODY
    assert host.asked == [("/file", f"bytes={len(BODY)}-")]


def test_redirects_are_followed_to_another_host(host: Host, tmp_path: Path) -> None:
    other = Host()
    try:
        other.files["/stored"] = BODY
        host.redirects["/file"] = "/moved"
        host.redirects["/moved"] = f"{other.url}/stored"

        assert fetch(host, tmp_path).read_bytes() == BODY
    finally:
        other.close()


@pytest.mark.parametrize(
    ("target", "said"),
    [("/file", "redirects more than 5 times"), ("ftp://host/file", "redirects to ftp")],
)
def test_a_redirect_that_leads_nowhere_is_an_error(
    host: Host, tmp_path: Path, target: str, said: str
) -> None:
    host.redirects["/file"] = target

    with pytest.raises(StepFailed, match=said):
        fetch(host, tmp_path)


def test_what_is_no_file_is_named_with_its_status(host: Host, tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match=r"/file answers 404 Not Found"):
        fetch(host, tmp_path)


def test_too_little_disk_is_said_before_the_body_is_read(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.files["/file"] = BODY
    monkeypatch.setattr(download, "_SPARE_BYTES", 10**18)

    with pytest.raises(StepFailed, match="MB free, and the download needs"):
        fetch(host, tmp_path)


def archive_of(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name.replace("__", "/"))
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        link = tarfile.TarInfo("bin/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return buffer.getvalue()


def test_one_member_is_taken_out_of_an_archive(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    archive.write_bytes(archive_of(bin__one=b"1", bin__two=b"2"))

    unpack.extract_member(archive, "bin/two", tmp_path / "out")

    assert (tmp_path / "out").read_bytes() == b"2"


@pytest.mark.parametrize(
    ("member", "said"),
    [("bin/three", "holds no bin/three"), ("bin/link", "bin/link of the archive is no regular")],
)
def test_what_is_no_regular_member_is_an_error(tmp_path: Path, member: str, said: str) -> None:
    archive = tmp_path / "archive"
    archive.write_bytes(archive_of(bin__one=b"1"))

    with pytest.raises(StepFailed, match=said):
        unpack.extract_member(archive, member, tmp_path / "out")


@pytest.mark.parametrize("cut", [0, 40, 25_000])
def test_an_archive_that_is_broken_is_an_error(tmp_path: Path, cut: int) -> None:
    archive = tmp_path / "archive"
    body = archive_of(bin__one=os.urandom(50_000))
    archive.write_bytes(body[:cut] if cut else b"no archive at all")

    with pytest.raises(StepFailed, match="the archive cannot be read"):
        unpack.extract_member(archive, "bin/one", tmp_path / "out")


def test_each_address_of_the_table_is_whole_and_each_platform_has_its_own() -> None:
    released = [program for program in catalogue.PROGRAMS if program.release is not None]
    addresses = set()
    for program in released:
        assert program.release is not None
        for arch in ("amd64", "arm64"):
            where = table.Platform(os="linux", arch=arch)
            address = table.address_of(program.release, program.version, where)
            assert address.startswith("https://")
            assert "{" not in address
            assert program.version in address
            addresses.add((address, arch))
    assert len({address for address, _ in addresses}) == len(addresses)
    # What it cannot be taken from is one archive for all.
    assert [program.name for program in catalogue.PROGRAMS if program.release is None] == [
        "local-path-provisioner"
    ]
    pulumi = catalogue.BY_NAME["pulumi"].release
    assert pulumi is not None
    assert table.address_of(pulumi, "1.2.3", table.Platform(os="linux", arch="amd64")).endswith(
        "/v1.2.3/pulumi-v1.2.3-linux-x64.tar.gz"
    )


def test_the_committed_sums_are_sums_of_pinned_versions() -> None:
    pinned = {
        (program.release.asset, program.version)
        for program in catalogue.PROGRAMS
        if program.release is not None
    }
    for asset, of_version in table.committed_sums().items():
        for version, sums in of_version.items():
            assert (asset, version) in pinned
            assert all(len(bytes.fromhex(sha256)) == 32 for sha256 in sums.values())


@pytest.mark.parametrize(
    ("sums", "reason"),
    [
        ({}, "no sum of it is committed for linux/arm64"),
        ({"etcd": {"3.7.3": {"linux/amd64": "0" * 64}}}, "no sum of it is committed for"),
        (
            {"etcd": {"3.7.2": {"linux/arm64": "0" * 64}}},
            "the committed sums are for version 3.7.2, not 3.7.3",
        ),
    ],
)
def test_a_release_without_a_committed_sum_is_skipped(sums: table.Sums, reason: str) -> None:
    program = catalogue.BY_NAME["etcd"]
    where = table.Platform(os="linux", arch="arm64")

    said = table.choose(program.release, program.version, where, sums)

    assert isinstance(said, table.Skipped)
    assert said.reason.startswith(reason)


def test_a_program_that_is_not_released_says_so() -> None:
    said = table.choose(None, "1", HERE, {})

    assert said == table.Skipped(reason="its project publishes no binary of it")


class Voice:
    """A reporter that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.shown: list[str | None] = []

    def line(self, text: str, *, code: str = "line") -> None:
        self.lines.append(text)

    def warning(self, text: str, *, code: str = "warning") -> None:
        self.lines.append(text)

    def progress(self, text: str | None) -> None:
        self.shown.append(text)

    def confirm(self, question: str) -> bool:
        raise AssertionError(question)


def released(host: Host, name: str, *, member: str | None = None) -> catalogue.Program:
    """A program that the host publishes, and that no machine has."""
    return catalogue.Program(
        name=name,
        version="1.2.3",
        module=catalogue.Module(name="etcd"),
        package=".",
        accepts=RANGE,
        release=table.Release(
            asset="tiny", address=f"{host.url}/v{{version}}/{{os}}-{{arch}}", member=member
        ),
    )


def asset_path() -> str:
    return f"/v1.2.3/{HERE.os}-{HERE.arch}"


def sums_of(body: bytes) -> table.Sums:
    return {"tiny": {"1.2.3": {str(HERE): sum_of(body)}}}


def installer(
    tmp_path: Path, voice: Voice, sums: table.Sums, *, path: str = "/nonexistent"
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
    voice = Voice()

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

    found = installer(tmp_path, Voice(), sums_of(body)).install(programs)

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
        installer(tmp_path, Voice(), sums).install([released(host, "tiny", member=member)])

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
    voice = Voice()

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
        installer(tmp_path, Voice(), sums_of(BODY)).install([released(host, "tiny"), built])

    assert host.asked == []
    assert "  official release: not asked yet (tiny)" in raised.value.message
    assert (
        "  official release: its project publishes no binary of it (local-path-provisioner)"
        in raised.value.message
    )


def wait_for(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, "the condition did not hold in time"
        time.sleep(0.01)


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
        wait_for(lambda: part.exists() and part.stat().st_size > 0)
        child.send_signal(signal.SIGKILL)
    had = part.stat().st_size
    host.gate.set()
    host.gate = None
    assert files_of(cache) == {f".downloads/{part.name}"}

    found = installer(tmp_path, Voice(), sums_of(BODY)).install([released(host, "tiny")])

    assert found[0].path is not None
    assert found[0].path.read_bytes() == BODY
    assert host.asked[-1] == (asset_path(), f"bytes={had}-")
    assert files_of(cache) == {"tiny/1.2.3/tiny"}


def test_two_processes_at_once_fetch_a_program_once(host: Host, tmp_path: Path) -> None:
    host.files[asset_path()] = BODY
    host.gate = threading.Event()
    first = child_install(host, tmp_path)
    wait_for(lambda: len(host.asked) == 1)
    second = child_install(host, tmp_path)
    assert second.stdout is not None
    said = second.stdout.readline()
    host.gate.set()

    rest = [child.communicate(timeout=30)[0] for child in (first, second)]

    assert said == f"tools: another install is at work (process {first.pid}), waiting\n"
    assert [first.returncode, second.returncode] == [0, 0], rest
    assert len(host.asked) == 1
    assert lookup.cached_binary(released(host, "tiny"), tmp_path / "cache/jr2/tools").exists()


def test_sums_are_written_of_what_the_host_serves_now(host: Host) -> None:
    program = released(host, "tiny")
    both = {f"/v1.2.3/linux-{arch}": arch.encode() for arch in ("amd64", "arm64")}
    host.files |= both
    wanted = {
        "tiny": {"1.2.3": {f"linux/{arch}": sum_of(arch.encode()) for arch in ("amd64", "arm64")}}
    }

    with download.new_client() as client:
        found = read_sums([program, program], {"tiny": {"1.2.2": {"linux/amd64": "0"}}}, client)
        assert found == wanted
        assert len(host.asked) == 2
        assert read_sums([program], found, client) == found
        host.files["/v1.2.3/linux-amd64"] = b"changed"
        with pytest.raises(StepFailed, match="a release never changes"):
            read_sums([program], found, client)
        del host.files["/v1.2.3/linux-amd64"]
        with pytest.raises(StepFailed, match="answers 404"):
            read_sums([program], found, client)
