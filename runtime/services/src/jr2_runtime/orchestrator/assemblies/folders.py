"""Where Assemblies lie on the state volume, and how a folder appears and goes as a whole.

`incoming/` is where blobs are received and trees are built; the worker does not see it. A finished
tree is renamed to `assemblies/<hash>`, and `listings/<hash>.json` says which blobs it is made of.
What no row of the store names is removed at the start, so a kill at any moment leaves nothing
behind; blobs that came before it are kept for a while (`blobs`).
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import uuid
from collections.abc import Collection
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from jr2 import names
from jr2.wire import AssemblyFile, AssemblyFiles

from ..disk import sync

_HASH: Final = re.compile(r"[0-9a-f]{64}")
INCOMING: Final = "incoming"
LISTINGS: Final = "listings"

log = logging.getLogger("jr2.publish")


class Folders:
    """The folders of the Assemblies below one state folder."""

    def __init__(self, state: Path) -> None:
        self._held = state / names.ASSEMBLIES_DIR
        self._incoming = state / INCOMING
        self._listings = state / LISTINGS

    def prepare(self) -> None:
        """Make the folders; the worker may read those of the Assemblies.

        Raises:
            OSError: the volume cannot be written.
        """
        self._held.mkdir(exist_ok=True)
        # The kubelet may have made it, as another user: then its own mode stands.
        with contextlib.suppress(PermissionError):
            self._held.chmod(0o755)
        if not os.access(self._held, os.W_OK | os.X_OK):
            raise PermissionError(f"{self._held} is not writable")
        shutil.rmtree(self._incoming, ignore_errors=True)
        self._incoming.mkdir(mode=0o700, exist_ok=True)
        self._listings.mkdir(mode=0o700, exist_ok=True)

    def clean(self, held: Collection[str]) -> list[str]:
        """Remove what no row names; return the rows whose folder is not there."""
        for entry in self._held.iterdir():
            if entry.name not in held and (
                _HASH.fullmatch(entry.name) or entry.name.startswith(".")
            ):
                remove_tree(entry)
        for entry in self._listings.iterdir():
            if entry.stem not in held:
                entry.unlink(missing_ok=True)
        return [hash_ for hash_ in held if not self.of(hash_).is_dir()]

    def of(self, hash_: str) -> Path:
        """Return the folder of an Assembly."""
        return self._held / hash_

    def new_incoming(self) -> Path:
        """Make an empty folder to receive into."""
        place = self._incoming / uuid.uuid4().hex
        place.mkdir(mode=0o700)
        return place

    def discard(self, place: Path) -> None:
        """Remove a folder that was received into; the next start removes what stays of it."""
        try:
            remove_tree(place)
        except OSError as failed:
            log.warning(
                "a received folder was not removed",
                extra={"folder": str(place), "reason": str(failed)},
            )

    def free(self) -> int:
        """Return how many bytes the volume has left for us."""
        facts = os.statvfs(self._incoming)
        return facts.f_bavail * facts.f_frsize

    def free_files(self) -> int | None:
        """Return how many more files the volume takes; `None` where it has no limit."""
        facts = os.statvfs(self._incoming)
        return facts.f_favail if facts.f_files else None

    def listing(self, hash_: str) -> list[AssemblyFile] | None:
        """Return the files of an Assembly; `None` when nobody wrote them down."""
        text = self.listing_text(hash_)
        if text is None:
            return None
        try:
            return AssemblyFiles.model_validate_json(text).files
        except ValidationError:
            # Whoever starts from it sends the whole list.
            log.warning("the list of an Assembly cannot be read", extra={"assembly": hash_[:12]})
            return None

    def listing_text(self, hash_: str) -> bytes | None:
        """Return `AssemblyFiles` of an Assembly as JSON; `None` when nobody wrote them down."""
        try:
            return (self._listings / f"{hash_}.json").read_bytes()
        except FileNotFoundError:
            return None

    def place(self, tree: Path, files: list[AssemblyFile], hash_: str) -> None:
        """Put a finished tree at the place of its hash, over a left one that no row names."""
        text = AssemblyFiles(files=files).model_dump_json(by_alias=True, exclude_defaults=True)
        (self._listings / f"{hash_}.json").write_text(text)
        target = self.of(hash_)
        if target.is_dir():
            remove_tree(target)
        tree.rename(target)
        sync(self._held)

    def remove(self, hash_: str) -> None:
        """Remove the folder of an Assembly, and what says which blobs it had."""
        (self._listings / f"{hash_}.json").unlink(missing_ok=True)
        remove_tree(self.of(hash_))


def remove_tree(place: Path) -> None:
    """Remove a folder as a whole: it vanishes under its name first, then its files go."""
    hidden = place.with_name(f".gone-{uuid.uuid4().hex}")
    with contextlib.suppress(FileNotFoundError):
        place.rename(hidden)
        shutil.rmtree(hidden, ignore_errors=True)
        if hidden.exists():
            # The next start removes them.
            log.warning("files of a removed folder are left", extra={"folder": str(hidden)})
