"""`jr2 tools prune`: what the cache holds and this jr2 does not use goes.

Removed are versions that the table does not name any more, and what interrupted work left: build
caches, half downloads, folders that were on their way out. Nothing else is touched: a file that an
install would not have made stays. While an install is at work nothing is removed, and while a
local cluster runs from an old version every program stays, since its supervisor starts them anew
when they die.

Source: design §7.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jr2.errors import Refusal

from . import cache as cache_folder
from . import catalogue, golang

_PROCESSES: Final = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing that the cache holds and that an install made.

    Args:
        path: the folder or the file that is removed as a whole.
        name: what a person calls it.
        size: its bytes on the disk.
        program: whether it is a program that can be run.
        used: whether this jr2 uses it.
        reason: why it can go.
    """

    path: Path
    name: str
    size: int
    program: bool
    used: bool = False
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What goes, and what stays although it could go."""

    removed: tuple[Entry, ...]
    kept: tuple[Entry, ...] = ()
    running: tuple[Path, ...] = ()


def list_entries(cache: Path, programs: Sequence[catalogue.Program]) -> list[Entry]:
    """Look at what an install made in a cache.

    Args:
        cache: the folder; it may be absent.
        programs: the table.
    """
    pinned = {program.name: program.version for program in programs}
    found: list[Entry] = []
    for path in sorted(cache.iterdir()) if cache.is_dir() else ():
        if path.name == cache_folder.WORK or path.name.startswith(cache_folder.LEFT):
            found.append(_leftover(path, "the build cache of an interrupted install"))
        elif path.name == cache_folder.DOWNLOADS:
            found.append(_leftover(path, "downloads that were interrupted"))
        elif path.is_dir() and not path.is_symlink():
            found += _versions(path, pinned.get(path.name))
    return found


def _leftover(path: Path, reason: str) -> Entry:
    return Entry(path=path, name=path.name, size=size_of(path), program=False, reason=reason)


def _versions(folder: Path, pinned: str | None) -> Iterable[Entry]:
    for path in sorted(folder.iterdir()):
        # Only what an install made looks so.
        if path.is_symlink() or not (path / folder.name).is_file():
            continue
        reason = f"this jr2 uses {pinned}" if pinned else "this jr2 does not use it"
        yield Entry(
            path=path,
            name=f"{folder.name} {path.name}",
            size=size_of(path),
            program=True,
            used=path.name == pinned,
            reason="all programs go" if path.name == pinned else reason,
        )


def decide(entries: Sequence[Entry], running: Sequence[Path], *, everything: bool) -> Decision:
    """Say what goes.

    Args:
        entries: what the cache holds.
        running: the programs that processes of this machine run now.
        everything: whether programs that this jr2 uses go too.
    """
    goes = [entry for entry in entries if everything or not entry.used]
    programs = [entry for entry in goes if entry.program]
    used = tuple(
        path for path in running if any(path.is_relative_to(entry.path) for entry in programs)
    )
    if not used:
        return Decision(removed=tuple(goes))
    return Decision(
        removed=tuple(entry for entry in goes if not entry.program),
        kept=tuple(programs),
        running=used,
    )


def prune(
    cache: Path, programs: Sequence[catalogue.Program], *, everything: bool = False
) -> Decision:
    """Remove from a cache what this jr2 does not use.

    Args:
        cache: the folder.
        programs: the table.
        everything: whether programs that this jr2 uses go too.

    Returns:
        What was removed, and what stayed.

    Raises:
        Refusal: an install is at work.
    """
    if not cache.is_dir():
        return Decision(removed=())
    try:
        with cache_folder.locked(cache):
            decision = decide(
                list_entries(cache, programs), running_programs(cache), everything=everything
            )
            for entry in decision.removed:
                _remove(entry.path, cache)
            return decision
    except cache_folder.Held as held:
        who = "" if held.process is None else f" (process {held.process})"
        raise Refusal(
            f"an install is at work in {cache}{who} — run `jr2 tools prune` again when it has "
            "ended. Nothing was removed."
        ) from held


def running_programs(cache: Path, processes: Path = _PROCESSES) -> list[Path]:
    """The programs of a cache that processes of this machine run, as far as we may see.

    Args:
        cache: the folder.
        processes: the kernel's table of processes; it is absent where there is no local cluster.
    """
    root = cache.resolve()
    found: set[Path] = set()
    for link in processes.glob("[0-9]*/exe"):
        # A process that ended meanwhile, a thread of the kernel, or another person's process.
        with contextlib.suppress(OSError):
            path = Path(os.readlink(link).removesuffix(" (deleted)"))
            if path.is_relative_to(root):
                found.add(cache / path.relative_to(root))
    return sorted(found)


def size_of(path: Path) -> int:
    """The bytes of a file, or of all files below a folder; a file with two names counts once."""
    seen: dict[tuple[int, int], int] = {}
    pending = [path]
    while pending:
        current = pending.pop()
        try:
            state = current.lstat()
            if current.is_dir() and not current.is_symlink():
                pending += current.iterdir()
            else:
                seen[(state.st_dev, state.st_ino)] = state.st_size
        except OSError:
            continue
    return sum(seen.values())


def _remove(path: Path, cache: Path) -> None:
    """Remove an entry, and the folder of its program when nothing else is in it."""
    golang.remove_tree(path)
    if path.parent != cache:
        with contextlib.suppress(OSError):
            path.parent.rmdir()


def as_json(decision: Decision) -> dict[str, Any]:
    """The decision as JSON."""
    return {
        "removed": [_entry(entry) for entry in decision.removed],
        "kept": [_entry(entry) for entry in decision.kept],
        "running": [str(path) for path in decision.running],
        "bytes": sum(entry.size for entry in decision.removed),
    }


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "path": str(entry.path),
        "bytes": entry.size,
        "reason": entry.reason,
    }


def lines(decision: Decision) -> list[str]:
    """The decision as lines."""
    said = [
        f"tools: removed {entry.name} ({megabytes(entry.size)}): {entry.reason}"
        for entry in decision.removed
    ]
    if decision.kept:
        names = ", ".join(entry.name for entry in decision.kept)
        said.append(
            f"tools: kept {names}: {decision.running[0]} runs — `jr2 cluster stop`, then "
            "`jr2 tools prune` again"
        )
    freed = megabytes(sum(entry.size for entry in decision.removed))
    said.append(f"tools: {len(decision.removed)} removed, {freed} freed")
    return said


def megabytes(size: int) -> str:
    """A number of bytes as a person reads it."""
    return f"{size / 1e6:.1f} MB"
