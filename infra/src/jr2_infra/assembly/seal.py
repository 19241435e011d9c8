"""What an Assembly must not hold: the checks between staging it and giving it a hash.

Each check is a pure function over entries; all problems of one kind are told at once.

Source: seed 003 in the words of design §3.1, design §5.5.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from jr2 import names
from jr2.errors import Jr2Error, Refusal, StepFailed
from jr2.tree_hash import Entry

from .kit_closure import KitClosure

_ELF_MACHINES: Final = {62: "linux/amd64", 183: "linux/arm64"}
_TAGGED: Final = re.compile(r"\.cpython-(\d)(\d+)[a-z]*-")


def escaping_link(entries: Iterable[Entry]) -> Jr2Error | None:
    """Refuse the first symlink that points outside the Assembly."""
    for entry in entries:
        if entry.kind != "link" or not isinstance(entry.content, bytes):
            continue
        target = entry.content.decode(errors="replace")
        reached = posixpath.normpath(posixpath.join(posixpath.dirname(entry.path), target))
        top = entry.path.split("/", 1)[0]
        if target.startswith("/") or not (reached == top or reached.startswith(f"{top}/")):
            fix = (
                "install that dependency as a copy, not a link"
                if top == names.ASSEMBLY_PACKAGES
                else "make the link relative, with a target inside the Instance"
            )
            shown = entry.path.split("/", 1)[1]
            return StepFailed(
                f"cannot seal the Assembly: the symlink {shown} points outside the Assembly"
                f' ("{target}") — an Assembly carries only what it holds; {fix}'
            )
    return None


def staging_path(entries: Iterable[Entry], staged_at: str) -> Jr2Error | None:
    """Refuse the first file that holds the path where the Assembly was made."""
    needle = staged_at.encode()
    for entry in entries:
        data = entry.content if isinstance(entry.content, bytes) else entry.content.read_bytes()
        if needle in data:
            shown = entry.path.split("/", 1)[1]
            return StepFailed(
                f"cannot seal the Assembly: {shown} holds the staging path ({staged_at})"
                " — a build step of a dependency wrote it; an Assembly must be the same wherever"
                " it is made"
            )
    return None


def _importable(parts: tuple[str, ...]) -> str | None:
    """Return what a path makes importable at its first level: a package's or a module's name."""
    if len(parts) == 1:
        return parts[0].removesuffix(".py") if parts[0].endswith(".py") else None
    return parts[0]


def _carried_copies(
    own_paths: Iterable[str], package_paths: Iterable[str], closure: KitClosure
) -> dict[str, tuple[str, str]]:
    """Return place → (Kit distribution, who brings it) for each copy that the files hold."""
    imports = closure.import_names()
    found: dict[str, tuple[str, str]] = {}
    for path in own_paths:
        parts = PurePosixPath(path).parts
        below = parts[1:] if parts[0] == names.WORKFLOWS_DIR else parts
        kit = imports.get(_importable(below) or "")
        if kit:
            found.setdefault(path.split("/__init__")[0], (kit, "the Instance's own files"))
    for path in package_paths:
        parts = PurePosixPath(path).parts
        kit = imports.get(_importable(parts) or "")
        if kit:
            found.setdefault(parts[0], (kit, "a dependency under another name"))
            continue
        # A vendored typing_extensions is used under its own long name and harms nobody; a second
        # pydantic makes event classes that the Kit does not recognise.
        for depth, part in enumerate(parts[1:-1], start=1):
            if part in {"pydantic", "jr2"} and parts[depth + 1] == "__init__.py":
                found.setdefault("/".join(parts[: depth + 1]), (imports[part], parts[0]))
    return found


def _unmet_requirements(
    packages: Mapping[str, Sequence[str]], closure: KitClosure
) -> Iterator[str]:
    """Yield a line for each requirement on a Kit package that the image's version does not meet."""
    for name, requires in sorted(packages.items()):
        for text in requires:
            try:
                requirement = Requirement(text)
            except InvalidRequirement:
                continue
            kit = canonicalize_name(requirement.name)
            version = closure.versions.get(kit)
            if version is None or (requirement.marker and not requirement.marker.evaluate()):
                continue
            if not requirement.specifier.contains(version, prereleases=True):
                yield (
                    f"{name} needs {requirement.name}{requirement.specifier}, and the"
                    f" Orchestrator's image ships {kit} {version} for jr2 {names.KIT_VERSION}"
                    f" — give {name} a version that admits it, and reinstall"
                )


def second_copies(
    packages: Mapping[str, Sequence[str]],
    own_paths: Iterable[str],
    package_paths: Iterable[str],
    closure: KitClosure,
) -> Jr2Error | None:
    """Refuse every Kit package that the Assembly would carry, or that its files shadow.

    Args:
        packages: distribution in the Assembly → its `Requires-Dist` lines.
        own_paths: paths of the Instance's own files, relative to its folder.
        package_paths: paths below `packages/`.
        closure: the Kit packages with the image's versions.
    """
    lines = [
        f"{place} is a second copy of {kit}, brought by {brought_by}: the Orchestrator's image"
        f" ships {kit} for jr2 {names.KIT_VERSION}, and an Assembly that carries its own copy"
        " loads Machines whose Menus are empty (ADR-0054) — align that dependency with the"
        f" {kit} jr2 uses, or remove it, and reinstall"
        for place, (kit, brought_by) in sorted(
            _carried_copies(own_paths, package_paths, closure).items()
        )
    ]
    lines += _unmet_requirements(packages, closure)
    if not lines:
        return None
    return StepFailed(
        "cannot stage the Assembly: it would carry a second copy of a Kit package (ADR-0069)\n"
        + "\n".join(lines)
    )


def native_platform(data: bytes) -> str | None:
    """Return the platform of a native file by its first bytes; `None` for a file that is none.

    A file for another system answers `darwin`, `windows` or `linux/<machine>`.
    """
    if data[:4] == b"\x7fELF" and len(data) >= 20:
        order = "little" if data[5] == 1 else "big"
        machine = int.from_bytes(data[18:20], "little" if order == "little" else "big")
        return _ELF_MACHINES.get(machine, f"linux/{machine}")
    if data[:4] in {
        b"\xcf\xfa\xed\xfe",
        b"\xce\xfa\xed\xfe",
        b"\xfe\xed\xfa\xcf",
        b"\xfe\xed\xfa\xce",
    }:
        return "darwin"
    if data[:2] == b"MZ":
        return "windows"
    return None


def wrong_binaries(
    natives: Mapping[str, str], platform: str, python: tuple[int, int]
) -> Jr2Error | None:
    """Refuse native files for another platform or another Python.

    Args:
        natives: path → what `native_platform` said.
        platform: the Orchestrator's, such as `linux/amd64`.
        python: the Python of the Orchestrator's image.
    """
    bad: list[str] = []
    for path, found in sorted(natives.items()):
        shown = path.split("/", 1)[-1]
        if found != platform:
            # A Windows launcher inside a pure wheel is data there, and never loaded on Linux.
            if found == "windows" and path.endswith(".exe"):
                continue
            bad.append(f"  {shown} is built for {found}")
            continue
        tag = _TAGGED.search(path)
        if tag and (int(tag[1]), int(tag[2])) != python:
            bad.append(f"  {shown} is built for Python {tag[1]}.{tag[2]}")
    if not bad:
        return None
    return StepFailed(
        "cannot seal the Assembly: the Orchestrator's image runs Python"
        f" {python[0]}.{python[1]} on {platform}, and these files cannot be loaded there — lock a"
        " version that has a wheel for it, and reinstall\n" + "\n".join(bad)
    )


def missing_workflows(expected: Iterable[str], paths: Iterable[str]) -> Jr2Error | None:
    """Refuse an Assembly that lacks a Workflow of the folder."""
    held = set(paths)
    missing = [
        f"{names.WORKFLOWS_DIR}/{name}.py"
        for name in sorted(expected)
        if f"{names.ASSEMBLY_INSTANCE}/{names.WORKFLOWS_DIR}/{name}.py" not in held
    ]
    if not missing:
        return None
    return Refusal(
        "the staged Assembly does not hold the Workflows this folder holds (ADR-0069): "
        + ", ".join(missing)
        + " — the Assembly holds what the Instance's install keeps; check what [tool.jr2] exclude"
        " leaves out"
    )


def too_much(entries: Sequence[Entry]) -> Jr2Error | None:
    """Refuse an Assembly with more files or bytes than the Orchestrator takes."""
    size = sum(
        len(entry.content) if isinstance(entry.content, bytes) else entry.content.stat().st_size
        for entry in entries
    )
    if len(entries) <= names.MAX_ASSEMBLY_FILES and size <= names.MAX_ASSEMBLY_BYTES:
        return None
    return StepFailed(
        f"cannot seal the Assembly: it holds {len(entries)} files of {size / 2**20:.0f} MiB, and"
        f" the Orchestrator takes {names.MAX_ASSEMBLY_FILES} files and"
        f" {names.MAX_ASSEMBLY_BYTES // 2**20} MiB — leave files out with [tool.jr2] exclude, or"
        " remove a dependency"
    )
