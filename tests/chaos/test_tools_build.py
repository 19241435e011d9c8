"""A small program is built from its module by the real Go, and the build is killed in the middle.

Nothing is fetched from anywhere: the module lies in a proxy that is a folder.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jr2.errors import StepFailed
from jr2_cli.tools import golang
from tests.waiting import LIMIT, wait_for

VERSION = "1.2.3"
MAIN = 'package main\n\nimport "example.test/tiny/greet"\n\nfunc main() { println(greet.Text) }\n'
GREET = 'package greet\n\nvar Text = "tiny v" + version\n\nvar version = "unknown"\n'
CHILD = """
import os, sys
from pathlib import Path
from jr2.errors import Jr2Error
from jr2_cli.tools import catalogue, install, versions

class Voice:
    line = warning = lambda self, text, code="": print(text, flush=True)
    progress = lambda self, text: None

program = catalogue.Program(
    name="tiny", version="1.2.3", module=catalogue.Module(name="tiny", folder=Path(sys.argv[1])),
    package="example.test/tiny", link=(("example.test/tiny/greet.version", "1.2.3"),),
    probe=catalogue.Probe(arguments=(), pattern=r"tiny v(\\S+)"),
    accepts=versions.Range(at_least="1.2.3", below="2"),
)
try:
    found = install.Installer(environ=os.environ, reporter=Voice(), sums={}).install([program])
except Jr2Error as error:
    sys.exit(error.printed)
print(found[0].source, found[0].path)
"""


class Place:
    """An empty home, and a proxy with one module."""

    def __init__(self, folder: Path, go: golang.Go) -> None:
        self.proxy = folder / "proxy/example.test/tiny/@v"
        self.proxy.mkdir(parents=True)
        (self.proxy / "list").write_text(f"v{VERSION}\n")
        (self.proxy / f"v{VERSION}.info").write_text(f'{{"Version":"v{VERSION}"}}')
        (self.proxy / f"v{VERSION}.mod").write_text("module example.test/tiny\n\ngo 1.26\n")
        self.zip = self.proxy / f"v{VERSION}.zip"
        with zipfile.ZipFile(self.zip, "w") as file:
            root = f"example.test/tiny@v{VERSION}"
            file.writestr(f"{root}/go.mod", "module example.test/tiny\n\ngo 1.26\n")
            file.writestr(f"{root}/main.go", MAIN)
            file.writestr(f"{root}/greet/greet.go", GREET)
        self.environ = {
            "PATH": f"{go.path.parent}:{os.environ['PATH']}",
            "HOME": str(folder / "home"),
            "GOPROXY": f"file://{folder / 'proxy'}",
            "GOSUMDB": "off",
        }
        self.cache = folder / "home/.cache/jr2/tools"
        self.binary = self.cache / "tiny" / VERSION / "tiny"
        self.module = folder / "module"
        self.module.mkdir()
        (self.module / "go.mod").write_text(
            f"module jr2.dev/tools/tiny\n\ngo 1.26\n\nrequire example.test/tiny v{VERSION}\n"
        )
        # The sums are those that the real Go makes of the module.
        subprocess.run(
            [go.path, "mod", "download", "example.test/tiny"],
            cwd=self.module,
            env={**self.environ, "GOFLAGS": "-mod=mod -modcacherw", "GOTOOLCHAIN": "local"},
            check=True,
            timeout=LIMIT,
            capture_output=True,
        )
        self.script = folder / "install.py"
        self.script.write_text(textwrap.dedent(CHILD))

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, self.script, self.module],
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def install(self) -> tuple[int, str]:
        with self.start() as child:
            said, _ = child.communicate(timeout=LIMIT)
        return child.returncode, said

    def held(self) -> set[str]:
        """Every file and empty folder of the cache but the lock."""
        return {
            str(path.relative_to(self.cache))
            for path in self.cache.rglob("*")
            if (not path.is_dir() or not any(path.iterdir())) and path.name != ".lock"
        }


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    try:
        go = golang.find_go(os.environ, "1.26")
    except StepFailed as error:
        pytest.skip(f"the module build needs Go: {error}")
    yield Place(tmp_path, go)
    # Go makes what it fetched read-only, and pytest could not remove it.
    golang.remove_tree(tmp_path / "home")


def builders(place: Place) -> list[int]:
    """The programs of Go that work in the cache."""
    found = []
    for cwd in Path("/proc").glob("[0-9]*/cwd"):
        try:
            where, program = os.readlink(cwd), os.readlink(cwd.with_name("exe"))
        except OSError:
            continue
        if where.startswith(str(place.cache)) and program.endswith("/go"):
            found.append(int(cwd.parent.name))
    return found


def test_a_program_is_built_from_its_module_and_found_on_path_afterwards(place: Place) -> None:
    code, said = place.install()

    assert code == 0, said
    assert said.splitlines()[0] == "tools: building tiny v1.2.3 (1/1)"
    assert said.splitlines()[-1] == f"cache {place.binary}"
    assert place.held() == {"tiny/1.2.3/tiny"}
    told = subprocess.run([place.binary], capture_output=True, text=True, check=True, timeout=LIMIT)
    assert told.stderr == "tiny v1.2.3\n"
    # The same copy on PATH tells its version, and comes before the cache.
    place.environ["PATH"] = f"{place.binary.parent}:{place.environ['PATH']}"
    assert place.install() == (0, f"path {place.binary}\n")


def test_a_module_with_another_sum_is_not_built(place: Place) -> None:
    sums = place.module / "go.sum"
    sums.write_text(sums.read_text().replace("h1:", "h1:AAAA", 1))

    code, said = place.install()

    assert code == 1
    assert "error: `go build` of tiny 1.2.3 failed" in said
    assert "SECURITY ERROR" in said
    assert said.splitlines()[-7:] == [
        "not installed: tiny",
        "tried, in order:",
        "  PATH: none of them",
        f"  cache: not in {place.cache}",
        "  official release: its project publishes no binary of it",
        "  module build: failed as said above",
        "then re-run `jr2 tools install tiny`; what was installed stays",
    ]
    assert place.held() == set()


def test_a_killed_build_ends_with_its_install_and_the_next_one_works(place: Place) -> None:
    with place.start() as child:
        wait_for("a compile", lambda: any(place.cache.glob(".work/tiny/tmp/go-build*/*")))
        assert builders(place)
        child.send_signal(signal.SIGKILL)
    wait_for("the end of go", lambda: not builders(place))
    assert not place.binary.exists()
    assert any(place.cache.glob(".work/*")), "nothing was interrupted"

    code, said = place.install()

    assert code == 0, said
    assert place.held() == {"tiny/1.2.3/tiny"}


def test_a_build_that_waits_for_a_module_is_killed_and_the_next_one_works(place: Place) -> None:
    # A pipe stands for a proxy that stopped answering: Go waits for its other end for ever.
    whole = place.zip.rename(place.zip.with_suffix(".whole"))
    os.mkfifo(place.zip)
    with place.start() as child:
        wait_for("the start of go", lambda: builders(place))
        child.send_signal(signal.SIGKILL)
    wait_for("the end of go", lambda: not builders(place))
    place.zip.unlink()
    whole.rename(place.zip)

    code, said = place.install()

    assert code == 0, said
    assert place.held() == {"tiny/1.2.3/tiny"}


def test_two_installs_at_once_build_once(place: Place) -> None:
    # The first one waits for its module until the second one waits for it.
    whole = place.zip.rename(place.zip.with_suffix(".whole"))
    os.mkfifo(place.zip)
    with contextlib.ExitStack() as started:
        first = started.enter_context(place.start())
        started.callback(first.kill)
        wait_for("the start of go", lambda: builders(place))
        second = started.enter_context(place.start())
        started.callback(second.kill)
        assert second.stdout is not None
        waits = second.stdout.readline()
        with place.zip.open("wb") as pipe:
            whole.rename(place.zip)
            pipe.write(place.zip.read_bytes())
        said = [first.communicate(timeout=LIMIT)[0], waits + second.communicate(timeout=LIMIT)[0]]

    assert [first.returncode, second.returncode] == [0, 0], said
    assert "tools: building tiny v1.2.3 (1/1)" in said[0]
    assert said[1].splitlines() == [
        f"tools: another install is at work (process {first.pid}), waiting",
        f"cache {place.binary}",
    ]
