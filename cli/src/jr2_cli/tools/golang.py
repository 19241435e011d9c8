"""The module build: a program made by `go build` from a module whose `go.mod` is committed.

Each module is built in a work folder of its own, with private caches for modules and objects, so
that nothing of it is left when the programs are made and nothing of the person's Go is touched.
The standard library is compiled once for all modules: its objects start each object cache as hard
links.

Source: design §7.
"""

from __future__ import annotations

import importlib.resources
import os
import re
import shutil
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jr2.errors import StepFailed
from jr2_infra import processes

from . import catalogue, versions

if TYPE_CHECKING:
    from collections.abc import Callable

FREE_BYTES: Final = 10 * 10**9
"""What the greatest of the module builds needs, with room to spare."""

_KEPT = ("HOME", "PATH", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR")
_KEPT_PREFIXES = ("GOPROXY", "GOSUMDB", "GONOSUMDB", "GONOSUMCHECK", "GOPRIVATE", "GOINSECURE")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
_ERROR_LINES = 30
_PACKAGE = re.compile(r"[\w.~+-]+(?:/[\w.~+-]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """A Go tool chain.

    Args:
        path: the program `go`.
        version: its version, without `go`.
    """

    path: Path
    version: str


def usual_places() -> list[Path]:
    """Where the installer of Go, and Debian's packages of it, put the program."""
    debian = sorted(Path("/usr/lib").glob("go-1.*/bin/go"), reverse=True)
    return [Path("/usr/local/go/bin/go"), *debian]


def committed(module: catalogue.Module) -> Traversable:
    """The folder of a module's committed files."""
    if module.folder is not None:
        return module.folder
    return importlib.resources.files(__package__) / "modules" / module.name


def needed_go(modules: Iterable[catalogue.Module]) -> str:
    """The oldest Go that builds all of these modules: the greatest `go` line of their `go.mod`."""
    found = []
    for module in modules:
        text = (committed(module) / "go.mod").read_text()
        line = re.search(r"^go (\S+)$", text, re.MULTILINE)
        assert line is not None
        found.append(line.group(1))
    return max(found, key=_as_numbers)


def find_go(environ: Mapping[str, str], needed: str, usual: Sequence[Path] | None = None) -> Go:
    """Find a Go that is new enough: on PATH, then in its usual places.

    Args:
        environ: the environment that PATH is read from.
        needed: the oldest version that will do.
        usual: the places after PATH; `None` is `usual_places()`.

    Raises:
        StepFailed: there is none, or only older ones; the text names each and its version.
    """
    places = [shutil.which("go", path=environ.get("PATH", ""))]
    places += [str(place) for place in (usual_places() if usual is None else usual)]
    seen: list[str] = []
    for place in dict.fromkeys(place for place in places if place):
        if not os.access(place, os.X_OK):
            continue
        said = processes.run(
            [place, "env", "GOVERSION"], env={**_base(environ), "GOTOOLCHAIN": "local"}
        )
        version = said.stdout.strip().removeprefix("go").split(" ")[0]
        if new_enough(version, needed):
            return Go(path=Path(place), version=version)
        seen.append(f"  {place} is {version or 'not a Go that answers'}")
    raise StepFailed(
        "\n".join(
            [
                f"no Go ≥ {needed}, which builds the programs that are missing — install it "
                "(its usual place is /usr/local/go), then re-run `jr2 tools install`",
                *seen,
            ]
        )
    )


def new_enough(version: str, needed: str) -> bool:
    """Tell whether a Go version will do; a release candidate is older than its release."""
    return _as_numbers(version) >= _as_numbers(needed)


def _as_numbers(version: str) -> tuple[int, int, int, int]:
    """Read a version as Go writes it; one that cannot be read is older than all others."""
    return versions.parse(version.replace("rc", "-rc")) or (0, 0, 0, 0)


def environment(
    environ: Mapping[str, str], *, work: Path, module: catalogue.Module
) -> dict[str, str]:
    """The environment of a build: what says how modules are reached, and private caches.

    Args:
        environ: the person's environment.
        work: the work folder, below which everything is written.
        module: what is built.
    """
    return {
        **_base(environ),
        "GOFLAGS": "-mod=readonly",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "GOTELEMETRY": "off",
        "CGO_ENABLED": "1" if module.cgo else "0",
        "GOCACHE": str(work / "objects"),
        "GOMODCACHE": str(work / "modules"),
        "GOTMPDIR": str(work / "tmp"),
    }


def build_command(go: Path, program: catalogue.Program, output: Path) -> list[str]:
    """The `go build` of one program."""
    link = " ".join(["-s", "-w", *(f"-X {symbol}={value}" for symbol, value in program.link)])
    command = [str(go), "build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", link]
    if program.module.tags:
        command += ["-tags", ",".join(program.module.tags)]
    return [*command, "-o", str(output), program.package]


def stage_module(module: catalogue.Module, work: Path) -> Path:
    """Copy the committed files of a module into the work folder and make its other folders.

    Returns:
        The folder in which `go` runs.
    """
    source = work / "source"
    for folder in (source, work / "tmp", work / "modules", work / "made"):
        folder.mkdir(parents=True, exist_ok=True)
    for entry in committed(module).iterdir():
        (source / entry.name).write_bytes(entry.read_bytes())
    return source


def share_standard_library(objects: Path, work: Path) -> None:
    """Start the object cache of a build with the objects of the standard library.

    Args:
        objects: an object cache that holds the standard library, or does not exist.
        work: the work folder of the build.
    """
    target = work / "objects"
    if objects.is_dir():
        shutil.copytree(objects, target, copy_function=os.link)
    else:
        target.mkdir(parents=True, exist_ok=True)


def compile_standard_library(go: Path, environ: Mapping[str, str], work: Path) -> Path:
    """Compile the standard library as the modules use it.

    Returns:
        The object cache that holds it.

    Raises:
        StepFailed: the compiler said no.
    """
    source = work / "source"
    for folder in (source, work / "tmp", work / "objects", work / "modules"):
        folder.mkdir(parents=True, exist_ok=True)
    env = environment(environ, work=work, module=catalogue.Module(name="std"))
    env["GOFLAGS"] = ""
    done = processes.run_family([go, "build", "-trimpath", "std"], env=env, cwd=source)
    if done.returncode != 0:
        raise StepFailed(f"the standard library of {go} does not compile\n{last_lines(done)}")
    return work / "objects"


def prepare(module: catalogue.Module, go: Path, env: Mapping[str, str], source: Path) -> None:
    """Copy what a module embeds from its dependencies beside its `main.go`.

    Raises:
        StepFailed: a dependency cannot be had; the text holds the last lines of `go`.
    """
    for dependency, path in module.embeds:
        done = processes.run_family([go, "mod", "download", dependency], env=env, cwd=source)
        if done.returncode == 0:
            done = processes.run_family(
                [go, "list", "-m", "-f", "{{.Dir}}", dependency], env=env, cwd=source
            )
        if done.returncode != 0:
            raise StepFailed(f"module {dependency} cannot be read\n{last_lines(done)}")
        file = Path(done.stdout.strip()) / path
        (source / file.name).write_bytes(file.read_bytes())


def build(
    program: catalogue.Program,
    go: Path,
    env: Mapping[str, str],
    source: Path,
    output: Path,
    *,
    heard: Callable[[str], None] = lambda line: None,
) -> None:
    """Build one program into `output`.

    Args:
        program: the row of the table.
        go: the program `go`.
        env: the environment of `environment`.
        source: the folder of `stage_module`.
        output: the binary that is written.
        heard: is given each line that `go` says, while it says it.

    Raises:
        StepFailed: the build failed; the text holds the last lines of `go`.
    """
    command = build_command(go, program, output)
    done = processes.run_family(command, env=env, cwd=source, heard=heard)
    if done.returncode != 0:
        raise StepFailed(
            f"`go build` of {program.name} {program.version} failed\n{last_lines(done)}"
        )


def remove_tree(folder: Path) -> None:
    """Remove a folder, also where Go made its module cache read-only."""

    def allow(function: object, path: str, error: object) -> None:
        parent = os.path.dirname(path)
        os.chmod(parent, stat.S_IRWXU)
        if os.path.isdir(path) and not os.path.islink(path):
            os.chmod(path, stat.S_IRWXU)
            shutil.rmtree(path, onerror=allow)
        elif os.path.lexists(path):
            os.unlink(path)

    if folder.exists():
        shutil.rmtree(folder, onerror=allow)


def is_package(line: str) -> bool:
    """Tell whether a line of `go build -v` names a package that it compiles, and nothing else."""
    return _PACKAGE.fullmatch(line.strip()) is not None


def last_lines(done: processes.Finished) -> str:
    """The end of what `go` said, without the lines about its progress."""
    lines = [
        line
        for line in done.stderr.splitlines()
        if line.strip() and not line.startswith("go: downloading ") and not is_package(line)
    ]
    return "\n".join(f"  {line}" for line in lines[-_ERROR_LINES:])


def _base(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        key: value
        for key, value in environ.items()
        if key in _KEPT or key in _PROXIES or key in _KEPT_PREFIXES
    }


def free_bytes(folder: Path) -> int:
    """The bytes that are free where a folder is or will be."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def programs_by_module(
    programs: Sequence[catalogue.Program],
) -> list[tuple[catalogue.Module, list[catalogue.Program]]]:
    """Group programs by the module that they are built from, in the order of the table."""
    groups: dict[str, tuple[catalogue.Module, list[catalogue.Program]]] = {}
    for program in programs:
        groups.setdefault(program.module.name, (program.module, []))[1].append(program)
    return list(groups.values())
