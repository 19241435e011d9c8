"""One member of an archive becomes a file; nothing else of the archive is written.

The member must be a regular file of the exact name: a link, a device or a missing member is an
error, so no path of an archive is ever followed.

Source: style rule 11 (archives unpack member by member).
"""

from __future__ import annotations

import shutil
import tarfile
import zlib
from pathlib import Path
from typing import Final

from jr2.errors import StepFailed

MEMBER_BYTES: Final = 2**30
"""No program of the table is a quarter of this."""


def extract_member(archive: Path, member: str, target: Path) -> None:
    """Write one regular file of a tar archive, compressed or not.

    Args:
        archive: the archive.
        member: its exact path in the archive; a leading `./` makes no difference.
        target: the file that is written.

    Raises:
        StepFailed: the archive cannot be read, or holds no such regular file.
    """
    try:
        with tarfile.open(archive, "r:*") as tar:
            for entry in tar:
                if entry.name.removeprefix("./") == member:
                    break
            else:
                raise StepFailed(f"the archive holds no {member}")
            if not entry.isreg():
                raise StepFailed(f"{member} of the archive is no regular file")
            if entry.size > MEMBER_BYTES:
                raise StepFailed(f"{member} of the archive is {entry.size} bytes large")
            source = tar.extractfile(entry)
            assert source is not None, "a regular file has content"
            with source, target.open("wb") as file:
                shutil.copyfileobj(source, file)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise StepFailed(f"the archive cannot be read: {error}") from error
    if target.stat().st_size != entry.size:
        raise StepFailed(f"{member} of the archive ends early")
