"""The Instance's locked dependencies, installed for the Orchestrator's image by uv.

The result is a folder that depends on the lock, the platform and the Kit version alone, so it is
kept below the Instance's `.jr2/` under a digest of them and made again only when one changes. What
an installer writes that holds paths or times is taken out, and no script is kept.

Source: design §5.5.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Final

import uv
from packaging.utils import canonicalize_name

from jr2 import names
from jr2.errors import StepFailed
from jr2.tree_hash import Entry, entries

from .. import inherited, processes
from .kit_closure import KitClosure
from .lockfile import Lockfile

_PYTHON: Final = "{}.{}".format(*names.IMAGE_PYTHON)
"""The Python of the Orchestrator's image, as uv names it."""

_UV_PLATFORMS: Final = {
    "linux/amd64": "x86_64-manylinux_2_36",
    "linux/arm64": "aarch64-manylinux_2_36",
}
_WRITTEN_BY_INSTALLERS: Final = frozenset(
    {"direct_url.json", "uv_cache.json", "uv_build.json", "RECORD", "INSTALLER", "REQUESTED"}
)
_FORM: Final = "1"
"""Part of the digest: raised when the form of the folder changes."""
_REQUIREMENT: Final = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(==|@)")


def split_requirements(text: str, closure: KitClosure) -> tuple[str, list[str]]:
    """Split an exported lock into registry requirements without the Kit's, and local paths.

    Args:
        text: what `uv export` printed, with hashes.
        closure: the Kit packages, which are left out.
    """
    kept: list[str] = []
    local: list[str] = []
    block: list[str] = []

    def close() -> None:
        if not block:
            return
        first = block[0].strip()
        match = _REQUIREMENT.match(first)
        if match is None:
            local.append(first.split(" ; ")[0].removeprefix("-e ").strip())
        elif canonicalize_name(match["name"]) not in closure.versions:
            kept.extend(block)
        block.clear()

    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not line.startswith((" ", "\t")):
            close()
        block.append(line)
    close()
    return "\n".join(kept) + ("\n" if kept else ""), local


def is_installer_record(path: str) -> bool:
    """Whether a path in the installed folder is a script or a record of its installer."""
    parts = path.split("/")
    return (
        parts[0] == "bin"
        or "__pycache__" in parts
        or path.endswith((".pyc", ".pyo"))
        or (parts[0].endswith(".dist-info") and parts[-1] in _WRITTEN_BY_INSTALLERS)
        or parts[0] in {".lock", ".gitignore", "CACHEDIR.TAG"}
    )


class DependencyFolder:
    """The installed dependencies of one Instance.

    Args:
        root: the Instance folder.
        lock: its lockfile.
        platform: `linux/amd64` or `linux/arm64`.
        closure: the Kit packages.
    """

    def __init__(self, root: Path, lock: Lockfile, platform: str, closure: KitClosure) -> None:
        self.root = root
        self.lock = lock
        self.platform = platform
        self.closure = closure
        self.cache = root / ".jr2" / "assembly"

    def digest(self) -> str:
        """Return what the folder depends on, as one digest."""
        hashed = hashlib.sha256()
        for part in (
            _FORM,
            names.KIT_VERSION,
            self.platform,
            metadata.version("uv"),
            repr(sorted(self.closure.versions.items())),
        ):
            hashed.update(part.encode() + b"\0")
        hashed.update(self.lock.path.read_bytes() + b"\0")
        hashed.update((self.root / "pyproject.toml").read_bytes())
        for source in self._local_sources():
            for entry in sorted(entries(source), key=lambda part: part.path):
                if not any(part.startswith(".") for part in entry.path.split("/")):
                    data = entry.content
                    hashed.update(data if isinstance(data, bytes) else data.read_bytes())
        return hashed.hexdigest()[:24]

    def _local_sources(self) -> list[Path]:
        """Folders of `[tool.uv.sources]` paths that are not the Kit's: their bytes count too."""
        document = tomllib.loads((self.root / "pyproject.toml").read_text())
        sources = document.get("tool", {}).get("uv", {}).get("sources", {})
        kit = {*self.closure.versions, "jr2-cli", "jr2-infra"}
        return [
            Path(os.path.realpath(self.root / source["path"]))
            for name, source in sorted(sources.items())
            if isinstance(source, dict)
            and "path" in source
            and canonicalize_name(name) not in kit
            and (self.root / source["path"]).is_dir()
        ]

    def prepare(self) -> Path:
        """Return the folder with the installed dependencies, made now when it is not there.

        Raises:
            StepFailed: the lock does not fit `pyproject.toml`, a wheel for the image's Python and
                platform does not exist, or uv failed; its own words follow.
        """
        folder = self.cache / f"packages-{self.digest()}"
        if folder.is_dir():
            return folder
        self.cache.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix="making-", dir=self.cache))
        try:
            target = made / "packages"
            target.mkdir()
            self._install(made, target)
            for entry in list(entries(target)):
                if is_installer_record(entry.path):
                    (target / entry.path).unlink()
            try:
                target.rename(folder)
            except OSError:
                # Another converge of this folder was faster; the digest says it is the same.
                if not folder.is_dir():
                    raise
        finally:
            shutil.rmtree(made, ignore_errors=True)
        # The one before stays: an edit is often taken back.
        kept = sorted(self.cache.glob("packages-*"), key=lambda old: old.stat().st_mtime)
        for old in kept[:-2]:
            if old != folder:
                shutil.rmtree(old, ignore_errors=True)
        return folder

    def _uv(self, *arguments: str | Path) -> str:
        done = processes.run([uv.find_uv_bin(), *arguments], cwd=self.root, env=_environment())
        if done.returncode != 0:
            told = "\n".join(f"  {line}" for line in done.stderr.strip().splitlines())
            raise StepFailed(
                f"cannot stage the Assembly: {self.lock.path} could not be installed for Python"
                f" {_PYTHON} on {self.platform} — uv says:\n{told}"
            )
        return done.stdout

    def _exported(self) -> str:
        if self.lock.manager == "uv":
            return self._uv(
                "export", "--locked", "--no-default-groups", "--no-emit-project", "--no-annotate",
                "--no-header", "--no-editable", "--prune", "jr2", "--quiet",
            )  # fmt: skip
        if self.lock.manager == "pylock":
            return self._uv(
                "pip", "compile", self.lock.path, "--generate-hashes", "--no-annotate",
                "--no-header", "--no-deps", "--python-version", _PYTHON, "--quiet",
            )  # fmt: skip
        raise StepFailed(
            f"cannot stage the Assembly from {self.lock.path}: this Kit version stages from"
            " uv.lock — run `uv lock` and keep its lockfile alone"
        )

    def _install(self, made: Path, target: Path) -> None:
        requirements, local = split_requirements(self._exported(), self.closure)
        wheels = made / "wheels"
        for source in local:
            self._uv("build", "--wheel", "--quiet", "--out-dir", wheels, source)
        common: Sequence[str | Path] = (
            "pip", "install", "--quiet", "--no-deps", "--target", target,
            "--python-version", _PYTHON,
            "--python-platform", _UV_PLATFORMS[self.platform],
            "--only-binary", ":all:", "--link-mode", "copy", "--no-compile-bytecode",
        )  # fmt: skip
        if requirements:
            file = made / "requirements.txt"
            file.write_text(requirements)
            self._uv(*common, "--require-hashes", "-r", file)
        if wheels.is_dir():
            self._uv(*common, *sorted(wheels.glob("*.whl")))


def _environment() -> dict[str, str]:
    """Ours without what would turn uv to another environment, and without what `.env` filled.

    uv starts the build backends of local packages: none of them has a use for a secret.
    """
    turns = {"VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT"}
    return {k: v for k, v in inherited.environment().items() if k not in turns}


def package_entries(folder: Path) -> Iterator[Entry]:
    """Yield the installed files as entries below `packages/`."""
    for entry in entries(folder):
        yield Entry(f"{names.ASSEMBLY_PACKAGES}/{entry.path}", entry.kind, entry.content)


def required_by(folder: Path) -> dict[str, list[str]]:
    """Return each installed distribution with its `Requires-Dist` lines."""
    return {
        canonicalize_name(found.metadata["Name"]): list(found.requires or ())
        for found in metadata.distributions(path=[str(folder)])
    }
