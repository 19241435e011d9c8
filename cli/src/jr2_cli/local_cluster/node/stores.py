"""The folders in which Repo caches of the cluster keep their clones, so that `delete` removes them.

A Repo cache has a folder of its node, outside of any volume, and the node is this machine. Another
Kubernetes may have a node here too, with folders of the same kind. So those stay that were there
before the cluster was, and those that a mount of some process still shows.

Source: design §7, spec/converge.md §3 (what `down` leaves on nodes).
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from jr2 import names
from jr2.errors import StepFailed

from . import leftovers

ROOT: Final = Path(names.REPO_STORE)
_PROCESSES: Final = Path("/proc")


def present(root: Path = ROOT) -> tuple[str, ...]:
    """Return the namespaces that have a store on this machine.

    Args:
        root: the folder of all stores.
    """
    found = root.glob(f"*/{names.REPO_STORE_FOLDER}")
    return tuple(sorted(store.parent.name for store in found if store.is_dir()))


def remove(before: Collection[str], root: Path = ROOT, processes: Path = _PROCESSES) -> None:
    """Remove the stores that came with the cluster; its pods must have ended.

    Args:
        before: the namespaces that had a store before the cluster was made.
        root: the folder of all stores.
        processes: the kernel's folder of processes.

    Raises:
        StepFailed: a file stays.
    """
    shown = set(_mounted(processes))
    for namespace in present(root):
        store = root / namespace / names.REPO_STORE_FOLDER
        if namespace in before or _is_shown(shown, root.name, namespace):
            continue
        try:
            shutil.rmtree(store)
        except OSError as error:
            raise StepFailed(f"cannot remove {error.filename}: {error.strerror}") from error
        leftovers.remove_empty(store.parent, root)


def _is_shown(mounted: Collection[str], top: str, namespace: str) -> bool:
    """Whether a store, or a folder in it, is mounted; the paths begin at their file system."""
    tail = f"/{top}/{namespace}/{names.REPO_STORE_FOLDER}/"
    return any(tail in f"/{path.strip('/')}/" for path in mounted)


def _mounted(processes: Path) -> Iterator[str]:
    """Yield what is mounted, once for each place where something may be mounted."""
    seen = set()
    for process in processes.iterdir():
        if not process.name.isdigit():
            continue
        try:
            around = (process / "ns" / "mnt").readlink()
            if around in seen:
                continue
            lines = (process / "mountinfo").read_text(errors="replace").splitlines()
        except OSError:
            # It has ended.
            continue
        seen.add(around)
        yield from (line.split(" ")[3] for line in lines)
