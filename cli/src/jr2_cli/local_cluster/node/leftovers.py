"""What a cluster that was stopped may leave on the machine, and the way to be rid of it.

Source: design §7.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
from pathlib import Path

from jr2.errors import StepFailed
from jr2_infra import processes

from ...tools import lookup
from .. import layout
from ..layout import Layout
from ..supervision import process_table
from . import cgroups

_CNI_RESULTS = Path("/var/lib/cni/results")
_CONTAINER_LINKS = Path("/var/log/containers")
_SHIM_SOCKETS = Path("/run/containerd/s")
_PLUGIN_SOCKETS = Path("/var/lib/kubelet/device-plugins")
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
    _remove_network_results(_CNI_RESULTS)
    if _CONTAINER_LINKS.is_dir():
        for link in _CONTAINER_LINKS.iterdir():
            if link.is_symlink() and files.root in Path(os.readlink(link)).parents:
                link.unlink(missing_ok=True)
        remove_empty(_CONTAINER_LINKS)
    for folder in (_SHIM_SOCKETS, _PLUGIN_SOCKETS):
        remove_dead_sockets(folder)
        remove_empty(folder, folder.parent)
    try:
        if files.root.exists():
            shutil.rmtree(files.root)
    except OSError as error:
        raise StepFailed(f"cannot remove {error.filename}: {error.strerror}") from error


def forget_last_boot(files: Layout, boot_id: str) -> None:
    """Remove what containerd and runc remember of processes of an earlier boot.

    They expect that folder to be gone after a boot, as one below `/run` is.

    Args:
        files: where the cluster lies.
        boot_id: what the kernel calls this boot.
    """
    note = files.boot_note
    if note.exists() and note.read_text() != boot_id:
        for folder in (files.containerd / "state", files.containerd / "runc"):
            unmount(folder)
            shutil.rmtree(folder, ignore_errors=True)
        files.before.unlink(missing_ok=True)
    note.write_text(boot_id)


def remove_dead_sockets(folder: Path) -> None:
    """Remove the sockets in a folder that no process listens on any more."""
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if not path.is_socket():
            continue
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            try:
                client.connect(str(path))
            except ConnectionRefusedError:
                path.unlink(missing_ok=True)
            except OSError:
                continue


def _remove_network_results(folder: Path) -> None:
    """Remove what the CNI library noted of our pods: for our network, and for their loopback."""
    if not folder.is_dir():
        return
    for result in folder.glob(f"{layout.NETWORK_NAME}-*-eth0"):
        container = result.name.removeprefix(f"{layout.NETWORK_NAME}-").removesuffix("-eth0")
        (folder / f"cni-loopback-{container}-lo").unlink(missing_ok=True)
        result.unlink(missing_ok=True)
    remove_empty(folder, folder.parent)


def remove_empty(*folders: Path) -> None:
    """Remove folders in turn, those of them that are there and empty."""
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()
