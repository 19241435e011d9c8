"""Which Kit the Instance has, and whether it is the one that this command stands on.

An Instance has one Kit version. The `jr2` that the Instance's interpreter imports and the one that
this command imports must be one folder, and its version must be the command's: what the command
checks is then what the Instance runs.

Where the Instance's `jr2` lies is read from its environment as Python's `site` would, with no
process started: its site-packages, then the folders that `.pth` files name.

Source: seed 002 (Rules), spec/converge.md §2.4, design §3 and §3.1, ADR-0056.
"""

from __future__ import annotations

import dataclasses
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import jr2
from jr2.errors import StepFailed

COMMAND_VERSION: Final = "1.0.0.dev0"
"""The version of this distribution, and so of the command: `jr2-cli` pins it exactly."""
INTERPRETER: Final = Path(".venv/bin/python")
"""The Instance's interpreter, from its folder."""
_VERSION_LINE: Final = re.compile(r'^KIT_VERSION\b[^=]*=\s*"([^"]+)"', re.MULTILINE)
_REQUIREMENT: Final = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*([^;@]*)")
_EXACT: Final = re.compile(r"===?\s*([^\s,*]+)\s*")
_KIT: Final = "jr2"
_CLI: Final = "jr2-cli"


@dataclass(frozen=True, slots=True, kw_only=True)
class KitCopy:
    """A folder that holds the package `jr2`.

    Args:
        path: its real path.
        version: the Kit version that it says; `unknown` when it says none.
    """

    path: Path
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KitFacts:
    """The two copies, and what the Instance pins.

    Args:
        root: the Instance folder.
        resolved: the copy that the Instance's interpreter imports; `None` when there is none.
        running: the copy that this command imports.
        command: the version of this command.
        kit_pin: the version of `jr2` that pyproject.toml pins exactly.
        cli_pin: the same of `jr2-cli`.
        cli_named: pyproject.toml names `jr2-cli` at all.
    """

    root: Path
    resolved: KitCopy | None
    running: KitCopy
    command: str
    kit_pin: str | None
    cli_pin: str | None
    cli_named: bool

    @property
    def agrees(self) -> bool:
        """Both are one copy, and it has the command's version."""
        return self.resolved == self.running and self.running.version == self.command


def read_kit(root: Path, *, pinned: bool = True) -> KitFacts:
    """Read which Kit the Instance has.

    Args:
        root: the Instance folder.
        pinned: read what its pyproject.toml pins.

    Raises:
        StepFailed: its pyproject.toml cannot be read.
    """
    pins = _pins(root) if pinned else {}
    return KitFacts(
        root=root,
        resolved=resolve(root),
        running=running_copy(),
        command=COMMAND_VERSION,
        kit_pin=pins.get(_KIT),
        cli_pin=pins.get(_CLI),
        cli_named=_CLI in pins,
    )


def mismatch(kit: KitFacts) -> str | None:
    """Return the text of a Kit version mismatch, without its prefix, or `None`."""
    if kit.agrees:
        return None
    first = (
        f"jr2 does not resolve from {kit.root}"
        if kit.resolved is None
        else f"jr2 resolves to {kit.resolved.path} ({kit.resolved.version})"
    )
    against = f"{kit.running.path} ({kit.running.version})"
    return "\n".join(
        [
            "Kit version mismatch — an Instance has one (ADR-0056):",
            f"  {first}",
            f"  this jr2 ({kit.command}) runs against {against}{_missing(kit)}",
            f"  {_fix(kit)}",
        ]
    )


def check_kit_version(root: Path) -> KitFacts:
    """Refuse an Instance whose Kit is not the one that this command stands on.

    Raises:
        StepFailed: the two copies, and the fix.
    """
    kit = read_kit(root)
    text = mismatch(kit)
    if text is not None:
        raise StepFailed(text)
    return kit


def running_copy() -> KitCopy:
    """Return the `jr2` that this process imports."""
    return _copy(Path(jr2.__file__).resolve().parent)


def resolve(root: Path) -> KitCopy | None:
    """Return the `jr2` that the Instance's interpreter imports, or `None`."""
    if not (root / INTERPRETER).exists():
        return None
    for site in sorted((root / ".venv" / "lib").glob("python3*/site-packages")):
        for folder in (site, *path_entries(site)):
            if (folder / _KIT / "__init__.py").is_file():
                return _copy((folder / _KIT).resolve())
    return None


def path_entries(site: Path) -> list[Path]:
    """Return the folders that the `.pth` files of a site-packages add to the import path."""
    found: list[Path] = []
    for file in sorted(site.glob("*.pth")):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            line = line.strip()
            if line and not line.startswith(("#", "import ", "import\t")):
                folder = site / line
                if folder.is_dir():
                    found.append(folder)
    return found


def find_checkout(package: Path) -> Path | None:
    """Return the checkout of jr2's repository that a folder lies in, or `None`.

    Args:
        package: the real path of the package `jr2`.
    """
    for folder in package.parents:
        if (folder / "scripts" / "build-kit-images").is_file() and (
            folder / "runtime" / "kit" / "pyproject.toml"
        ).is_file():
            return folder
    return None


def read_pyproject(root: Path) -> dict[str, Any]:
    """Return the Instance's pyproject.toml; an empty one when there is none.

    Raises:
        StepFailed: it is not TOML, no file, or cannot be read.
    """
    file = root / "pyproject.toml"
    try:
        if file.exists() and not file.is_file():
            raise StepFailed(f"{file} is no file")
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if file.is_symlink():
            raise StepFailed(
                f"{file} is a link to {os.readlink(file)}, and nothing is there — remove the "
                "link, or put the file there"
            ) from error
        return {}
    except OSError as error:
        raise StepFailed(
            f"{file} cannot be read: {error.strerror} — make it a file that you may read"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StepFailed(f"{file} is not TOML: {error}") from error


def table(project: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Return a table of a pyproject.toml; an empty one when it is not there or is no table."""
    found: Any = project
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _copy(package: Path) -> KitCopy:
    try:
        said = _VERSION_LINE.search((package / "names.py").read_text(encoding="utf-8"))
    except OSError:
        said = None
    return KitCopy(path=package, version=said[1] if said else "unknown")


def _pins(root: Path) -> dict[str, str | None]:
    """Return name to exact version for the requirements of pyproject.toml; `None`: not exact."""
    project = read_pyproject(root)
    groups = table(project, "dependency-groups").values()
    listed: list[object] = []
    for group in (table(project, "project").get("dependencies"), *groups):
        listed += group if isinstance(group, list) else []
    pins: dict[str, str | None] = {}
    for requirement in listed:
        parts = _REQUIREMENT.match(requirement) if isinstance(requirement, str) else None
        if parts is not None:
            name = re.sub(r"[-_.]+", "-", parts[1]).lower()
            exact = _EXACT.fullmatch(parts[2].strip())
            pins.setdefault(name, exact[1] if exact else None)
    return pins


def not_imported(root: Path, said: str) -> str | None:
    """Return the text of a mismatch that only the Instance's interpreter saw.

    Args:
        root: the Instance folder.
        said: where it finds `jr2`, or `nothing`.
    """
    resolved = None if said == "nothing" else _copy(Path(said))
    return mismatch(dataclasses.replace(read_kit(root), resolved=resolved))


def _missing(kit: KitFacts) -> str:
    """Say why nothing resolves: the copy beside it is the command's, and no other version."""
    if kit.resolved is not None:
        return ""
    environment, python = kit.root / ".venv", kit.root / INTERPRETER
    if environment.is_symlink() and not environment.exists():
        return f", and {environment} is a link to nothing — remove it"
    if not environment.exists():
        return f", and {environment} is not there"
    if not environment.is_dir():
        return f", and {environment} is no folder — remove it"
    if not python.exists():
        gone = " (a link to nothing)" if python.is_symlink() else ""
        return f", and {python} is not there{gone}"
    return f", and {python} finds no jr2"


def _fix(kit: KitFacts) -> str:
    file = kit.root / "pyproject.toml"
    if kit.kit_pin is not None and kit.kit_pin == kit.cli_pin:
        return (
            f'install the Instance\'s dependencies ({file} pins "jr2" and "jr2-cli" at one exact '
            "version)"
        )
    if kit.resolved is None and kit.cli_named and None in (kit.kit_pin, kit.cli_pin):
        # Without two pins that differ, there is nothing to say of versions yet.
        return f'install the Instance\'s dependencies ({file} names "jr2-cli")'
    if not kit.cli_named:
        version = kit.kit_pin or (kit.resolved.version if kit.resolved else kit.command)
        return (
            f'add "jr2-cli=={version}" to the dev group in {file} and reinstall — '
            "the Instance's own jr2 then runs"
        )
    return f'pin "jr2" and "jr2-cli" at ONE exact version in {file} and reinstall'
