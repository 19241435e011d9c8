"""What a publish sends: the list of an Assembly's files, and where the bytes of each are.

A converge stages in one process and publishes in another, so the list goes through a file of the
run's folder. Bytes that lie in no file of the disk, as those of `assembly.json`, are written beside
it; those of all other files are read where they are, when they are sent.

Source: design §5.5, ADR-0118.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from jr2.errors import StepFailed
from jr2.tree_hash import Entry
from jr2.wire import AssemblyFile, AssemblyListing

_LIST: Final = "listing.json"


class Parcel(BaseModel):
    """The files of an Assembly, and where the bytes of each blob are."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    files: list[AssemblyFile]
    sources: dict[str, Path]
    """Digest → a file that holds those bytes."""


def pack(parts: Iterable[Entry], folder: Path) -> Parcel:
    """Return what is to be sent, and write down what lies in no file.

    Args:
        parts: every entry of the Assembly.
        folder: a folder of its own, which is made.

    Raises:
        StepFailed: a file is there no more.
        OSError: the folder cannot be written.
    """
    folder.mkdir(mode=0o700)
    files: list[AssemblyFile] = []
    sources: dict[str, Path] = {}
    for entry in sorted(parts, key=lambda part: part.path.encode()):
        if entry.kind == "link":
            assert isinstance(entry.content, bytes)
            files.append(
                AssemblyFile(path=entry.path, kind="link", target=os.fsdecode(entry.content))
            )
            continue
        if isinstance(entry.content, bytes):
            digest, size = hashlib.sha256(entry.content).hexdigest(), len(entry.content)
            source = folder / digest
            source.write_bytes(entry.content)
        else:
            source = entry.content.absolute()
            try:
                digest, size = _digest(source)
            except OSError as failed:
                raise StepFailed(f"cannot stage the Assembly: {source} is gone") from failed
        kind = "exec" if entry.kind == "exec" else "file"
        files.append(AssemblyFile(path=entry.path, kind=kind, sha256=digest, size=size))
        sources[digest] = source
    return Parcel(files=files, sources=sources)


def write_parcel(parts: Iterable[Entry], folder: Path) -> None:
    """Pack the entries into a folder, for `read_parcel` in another process."""
    parcel = pack(parts, folder)
    (folder / _LIST).write_text(parcel.model_dump_json(by_alias=True, exclude_defaults=True))


def read_parcel(folder: Path) -> Parcel:
    """Return what `write_parcel` wrote."""
    return Parcel.model_validate_json((folder / _LIST).read_bytes())


def listing_over(
    files: Sequence[AssemblyFile], base: str | None, held: Sequence[AssemblyFile]
) -> AssemblyListing:
    """Return the list that is sent: all files, or what differs from an Assembly that is held.

    Args:
        files: of the Assembly.
        base: the hash of the one that is held; `None` for all files.
        held: the files of that one.
    """
    if base is None:
        return AssemblyListing(files=list(files))
    before = {each.path: each for each in held}
    now = {each.path for each in files}
    return AssemblyListing(
        base=base,
        removed=[path for path in before if path not in now],
        files=[each for each in files if before.get(each.path) != each],
    )


def _digest(file: Path) -> tuple[str, int]:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest(), content.tell()
