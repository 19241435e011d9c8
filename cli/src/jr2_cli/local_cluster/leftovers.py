"""What a cluster that was stopped may leave on the machine, and the way to be rid of it.

Source: design §7.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from jr2.errors import StepFailed
from jr2_infra import processes

from ..tools import lookup
from . import cgroups, layout, process_table
from .layout import Layout

_CNI_RESULTS = Path("/var/lib/cni/results")
_CONTAINER_LINKS = Path("/var/log/containers")
_ESCAPES = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}


def mounts_below(text: str, root: Path) -> list[Path]:
    """The mounts at or below a folder, the innermost first.

    Args:
        text: the content of `/proc/self/mounts`.
        root: the folder.
    """
    found = []
    for line in text.splitlines():
        place = line.split(" ")[1]
        for escaped, plain in _ESCAPES.items():
            place = place.replace(escaped, plain)
        path = Path(place)
        if path == root or root in path.parents:
            found.append(path)
    return found[::-1]


def end_pods(files: Layout) -> None:
    """End every process of a pod, and the shims that hold them."""
    found = cgroups.read_mounts(Path("/proc/mounts").read_text())
    if found is not None:
        process_table.end(cgroups.process_ids(found, layout.CGROUP), settle_seconds=0)
    strays = process_table.find_by_argument(str(files.containerd_socket))
    process_table.end(strays, settle_seconds=1.0)
    if found is not None:
        cgroups.remove_group(found, layout.CGROUP)


def unmount(root: Path) -> None:
    """Unmount everything at and below a folder.

    Raises:
        StepFailed: a mount stays.
    """
    umount = lookup.system_program("umount")
    for place in mounts_below(Path("/proc/self/mounts").read_text(), root):
        if umount is not None:
            processes.run([umount, "--lazy", place])
    left = mounts_below(Path("/proc/self/mounts").read_text(), root)
    if left:
        raise StepFailed(f"cannot unmount {left[0]} — see `findmnt {left[0]}`, then try again")


def remove_files(files: Layout) -> None:
    """Remove the state folder and the few files that programs write outside of it.

    Raises:
        StepFailed: a file stays.
    """
    if _CNI_RESULTS.is_dir():
        for result in _CNI_RESULTS.glob(f"{layout.NETWORK_NAME}-*"):
            result.unlink(missing_ok=True)
        _remove_empty(_CNI_RESULTS, _CNI_RESULTS.parent)
    if _CONTAINER_LINKS.is_dir():
        for link in _CONTAINER_LINKS.iterdir():
            if link.is_symlink() and files.root in Path(os.readlink(link)).parents:
                link.unlink(missing_ok=True)
        _remove_empty(_CONTAINER_LINKS)
    try:
        if files.root.exists():
            shutil.rmtree(files.root)
    except OSError as error:
        raise StepFailed(f"cannot remove {error.filename}: {error.strerror}") from error


def _remove_empty(*folders: Path) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()
