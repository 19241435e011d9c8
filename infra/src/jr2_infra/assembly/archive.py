"""Write a staged Assembly as one gzip tar: the same entries give the same bytes.

Source: spec/converge.md §8.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from jr2.tree_hash import Entry


def write_archive(parts: Sequence[Entry], target: Path) -> int:
    """Write the entries to `target` and return its size in bytes; a cut leaves no half file."""
    handle, made = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    try:
        with (
            os.fdopen(handle, "wb") as raw,
            gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1, mtime=0, filename="") as zipped,
            tarfile.open(fileobj=zipped, mode="w|", format=tarfile.PAX_FORMAT) as archive,
        ):
            for entry in sorted(parts, key=lambda part: part.path.encode()):
                _add(archive, entry)
        size = os.path.getsize(made)
        os.replace(made, target)
    except BaseException:
        Path(made).unlink(missing_ok=True)
        raise
    return size


def _add(archive: tarfile.TarFile, entry: Entry) -> None:
    info = tarfile.TarInfo(entry.path)
    if entry.kind == "link":
        assert isinstance(entry.content, bytes)
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, os.fsdecode(entry.content), 0o777
        archive.addfile(info)
        return
    info.mode = 0o755 if entry.kind == "exec" else 0o644
    data = entry.content if isinstance(entry.content, bytes) else entry.content.read_bytes()
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))
