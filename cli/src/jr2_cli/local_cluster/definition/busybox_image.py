"""The image of busybox, written as a file with no builder: a pod's sandbox, and our helper pods.

It holds the static busybox of the machine and a link for each of its applets, so a pod may run
`sh`, `wget` or `nc`. The same busybox gives the same bytes.

Source: local-cluster/ (an image needs no registry).
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Sequence
from pathlib import Path

from .. import layout

_FOLDERS = ("bin", "etc", "dev", "proc", "sys", "tmp", "var")
_PASSWD = b"root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"
_GROUP = b"root:x:0:\nnobody:x:65534:\n"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def write_archive(busybox: Path, applets: Sequence[str], target: Path) -> None:
    """Write the image as a docker archive, which `ctr images import` takes.

    Args:
        busybox: a static busybox.
        applets: the names that it answers to.
        target: the archive.
    """
    layer = build_layer(busybox.read_bytes(), applets)
    digest = hashlib.sha256(layer).hexdigest()
    machine = platform.machine()
    config = json.dumps(
        {
            "architecture": _ARCHITECTURES.get(machine, machine),
            "os": "linux",
            # A command and no entry point: a pod's `args` alone then replace it.
            "config": {"Cmd": ["/bin/busybox", "sleep", "infinity"], "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        },
        sort_keys=True,
    ).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = json.dumps(
        [{"Config": name, "RepoTags": [layout.BUSYBOX_IMAGE], "Layers": [f"{digest}/layer.tar"]}]
    ).encode()
    with tarfile.open(target, "w") as archive:
        _add(archive, name, config)
        _add(archive, f"{digest}/layer.tar", layer)
        _add(archive, "manifest.json", manifest)


def build_layer(busybox: bytes, applets: Sequence[str]) -> bytes:
    """The one layer of the image, the same bytes for the same input."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for folder in _FOLDERS:
            entry = tarfile.TarInfo(folder)
            entry.type = tarfile.DIRTYPE
            entry.mode = 0o1777 if folder == "tmp" else 0o755
            layer.addfile(entry)
        _add(layer, "bin/busybox", busybox, 0o755)
        _add(layer, "etc/passwd", _PASSWD)
        _add(layer, "etc/group", _GROUP)
        for applet in sorted(set(applets) - {"busybox"}):
            entry = tarfile.TarInfo(f"bin/{applet}")
            entry.type = tarfile.SYMTYPE
            entry.linkname = "busybox"
            layer.addfile(entry)
    return buffer.getvalue()


def _add(archive: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    archive.addfile(entry, io.BytesIO(data))
