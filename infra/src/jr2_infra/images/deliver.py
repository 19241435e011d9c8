"""Put a Kit image of a checkout on the node of the local cluster, without a registry.

A name is never imported over another image of the same name: the tag is a hash of the content, so
two digests under one tag mean that one of them is not what its name says.

Source: design §6.1 and §7.
"""

from __future__ import annotations

from jr2 import names
from jr2.errors import StepFailed

from .. import processes
from ..tooling import LocalImport
from .build.oci import archived_digest
from .checkout import archive_path


def _ctr(local_import: LocalImport, *arguments: str) -> processes.Finished:
    address = ["--address", str(local_import.socket), "--namespace", names.CONTAINERD_NAMESPACE]
    return processes.run([local_import.ctr, *address, "images", *arguments])


def node_has(ref: str, local_import: LocalImport) -> str | None:
    """Return the digest that the node holds under a name, or `None`.

    Raises:
        StepFailed: containerd does not answer.
    """
    listed = _ctr(local_import, "list", f"name=={ref}")
    if listed.returncode != 0:
        raise StepFailed(
            f"cannot list the images of the local cluster: {_last_line(listed.stderr)}"
        )
    for line in listed.stdout.splitlines():
        words = line.split()
        if words[:1] == [ref]:
            return next((word for word in words if word.startswith("sha256:")), None)
    return None


def import_archive(ref: str, local_import: LocalImport) -> None:
    """Import the archive of a reference; nothing is done when the node holds it.

    Raises:
        StepFailed: the archive is missing, the node holds another image under this name, or the
            import failed.
    """
    archive = archive_path(ref)
    if not archive.is_file():
        raise StepFailed(f"there is no archive of {ref} at {archive}")
    wanted = archived_digest(archive)
    held = node_has(ref, local_import)
    if held == wanted:
        return
    if held is not None:
        raise StepFailed(
            f"the node holds {held} under {ref}, and the archive is {wanted}: a tag is never "
            f"imported over another image — remove {archive} and build it again, or remove the "
            "image from the node"
        )
    imported = _ctr(local_import, "import", str(archive))
    if imported.returncode != 0:
        raise StepFailed(
            f"cannot import {ref} into the local cluster: {_last_line(imported.stderr)}"
        )
    if (held := node_has(ref, local_import)) != wanted:
        raise StepFailed(f"imported {ref}, and the node holds {held or 'nothing'} under it")


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "it said nothing"
