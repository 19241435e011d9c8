"""Control groups of both versions, behind one set of functions.

Version 1 has a tree for each controller, version 2 has one tree. A machine may mount both, as
systemd's hybrid mode does; the controllers count then, and they are in version 1.

The pods of the cluster live below one group of our own in each tree, so that what they left
running can be found and ended, and nothing of another program can.

Source: design §6.5 and §7.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

_NEEDED: Final = ("cpu", "memory", "pids")
_HANDED_DOWN: Final = ("cpuset", "cpu", "io", "memory", "hugetlb", "pids")


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """Where the control groups of this machine are mounted.

    Args:
        version: which version holds the controllers.
        mounts: the trees; exactly one in version 2.
    """

    version: Literal[1, 2]
    mounts: tuple[Path, ...]

    def groups(self, name: str) -> list[Path]:
        """The folders of a group that is named from the root, one in each tree."""
        return [mount / name for mount in self.mounts]


def read_mounts(text: str) -> Hierarchies | None:
    """Read the control groups out of `/proc/mounts`.

    Args:
        text: the content of `/proc/mounts`.

    Returns:
        `None` when no tree with the controllers that pods need is mounted.
    """
    first: list[Path] = []
    second: Path | None = None
    controllers: set[str] = set()
    for line in text.splitlines():
        _, mount, kind, options, *_ = line.split(" ")
        if kind == "cgroup2" and second is None:
            second = Path(mount)
        elif kind == "cgroup":
            path = Path(mount)
            if path not in first:
                first.append(path)
            controllers.update(options.split(","))
    if controllers.issuperset(_NEEDED):
        return Hierarchies(1, tuple(first))
    if second is not None:
        return Hierarchies(2, (second,))
    return None


def make_group(hierarchies: Hierarchies, name: str) -> None:
    """Make a group in each tree and let it hand the controllers down to its children.

    Args:
        hierarchies: the trees.
        name: one path component.

    Raises:
        OSError: a tree cannot be written.
    """
    for group in hierarchies.groups(name):
        if hierarchies.version == 2:
            _hand_down(group.parent)
        group.mkdir(exist_ok=True)
        if hierarchies.version == 2:
            _hand_down(group)
        _copy_cpuset(group)


def _hand_down(group: Path) -> None:
    available = (group / "cgroup.controllers").read_text().split()
    for controller in _HANDED_DOWN:
        if controller in available:
            # One that is in use elsewhere, such as a real-time one, says no; the rest goes on.
            with contextlib.suppress(OSError):
                (group / "cgroup.subtree_control").write_text(f"+{controller}")


def _copy_cpuset(group: Path) -> None:
    """In version 1 a new group has no processors and no memory nodes until it is given some."""
    for file in ("cpuset.cpus", "cpuset.mems"):
        own, parent = group / file, group.parent / file
        if own.exists() and parent.exists() and not own.read_text().strip():
            own.write_text(parent.read_text())


def process_ids(hierarchies: Hierarchies, name: str) -> set[int]:
    """The processes in a group and in all groups below it."""
    found: set[int] = set()
    for group in hierarchies.groups(name):
        for folder, _, files in os.walk(group):
            if "cgroup.procs" in files:
                # The group may be removed while we look.
                with contextlib.suppress(OSError):
                    found.update(
                        int(pid) for pid in Path(folder, "cgroup.procs").read_text().split()
                    )
    # 0 stands for a process of a namespace that we cannot see.
    found.discard(0)
    return found


def remove_group(hierarchies: Hierarchies, name: str) -> None:
    """Remove a group and all below it; one that still has a process in it stays."""
    for group in hierarchies.groups(name):
        for folder, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()
