"""The list of an Assembly's files: what must not stand in it is refused before a byte is sent.

What is refused: an absolute name, a `.` or `..` in one, a name twice, a name below a file or a
link, a link that leaves the Assembly by its text, a file without its digest, too many files, and
too many bytes. A list may start from one that is held, and name only what differs.

Source: design §5.5, ADR-0118.
"""

from __future__ import annotations

import posixpath
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from jr2 import names
from jr2.wire import AssemblyFile, AssemblyListing

from .refused import PublishError

SPARE_BYTES: Final = 64 * 2**20
"""What must stay free on the volume, so that the store can go on."""
SPARE_FILES: Final = 1_000
"""As many files must be possible still, on a volume that has a limit of them."""
_TOP: Final = (names.ASSEMBLY_MANIFEST, names.ASSEMBLY_INSTANCE, names.ASSEMBLY_PACKAGES)
_LONGEST_NAME: Final = 1024
_DEEPEST: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one Assembly may hold."""

    files: int = names.MAX_ASSEMBLY_FILES
    unpacked: int = names.MAX_ASSEMBLY_BYTES
    spare: int = SPARE_BYTES


def read(body: bytes, *, is_packed: bool) -> AssemblyListing:
    """Return the list that a body is.

    Args:
        body: JSON.
        is_packed: it is packed with gzip.

    Raises:
        PublishError: 400, it is none; 413, it is larger than a list may be.
    """
    if is_packed:
        unpacking = zlib.decompressobj(31)
        try:
            body = unpacking.decompress(body, names.MAX_ASSEMBLY_LISTING + 1)
        except zlib.error as bad:
            raise PublishError(400, f"the body is no gzip: {bad}") from bad
        if len(body) > names.MAX_ASSEMBLY_LISTING:
            raise PublishError(413, f"the list is larger than {names.MAX_ASSEMBLY_LISTING} bytes")
        if not unpacking.eof or unpacking.unused_data:
            raise PublishError(400, "the body is cut, or something follows its end")
    try:
        return AssemblyListing.model_validate_json(body)
    except ValidationError as bad:
        first = bad.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the body"
        raise PublishError(
            400, f"the body is no list of files: {place}: {first['msg'].lower()}"
        ) from bad


def resolve(listing: AssemblyListing, base: Sequence[AssemblyFile]) -> list[AssemblyFile]:
    """Return the files that a list means, in the order of their paths.

    Args:
        listing: what was sent.
        base: the files of the Assembly that it starts from; none when it starts from none.

    Raises:
        PublishError: 400, it takes away what is not there, or names a path twice.
    """
    found = {each.path: each for each in base}
    for path in listing.removed:
        if found.pop(path, None) is None:
            raise PublishError(400, f"the list takes {path!r} away, which its base does not have")
    sent: set[str] = set()
    for each in listing.files:
        if each.path in sent:
            raise PublishError(400, f"the list holds {each.path!r} twice")
        sent.add(each.path)
        found[each.path] = each
    return sorted(found.values(), key=lambda each: each.path)


def check(files: Sequence[AssemblyFile], limits: Limits) -> None:
    """Refuse a list of files that no Assembly has.

    Args:
        files: all of them, each path once.
        limits: how much is allowed.

    Raises:
        PublishError: 413 or 400, the first thing that is wrong.
    """
    if len(files) > limits.files:
        raise PublishError(
            413, f"the Assembly has more than {limits.files} files: it has {len(files)}"
        )
    size = sum(each.size for each in files)
    if size > limits.unpacked:
        raise PublishError(
            413, f"the Assembly is larger than {limits.unpacked} bytes: it has {size}"
        )
    sizes: dict[str, int] = {}
    for each in files:
        _check_path(each.path)
        if each.kind == "link":
            _check_link(each.path, each.target)
        elif each.sha256 is None or each.target is not None:
            raise PublishError(400, f"{each.path!r} is a file, which has a digest and no target")
        elif sizes.setdefault(each.sha256, each.size) != each.size:
            raise PublishError(400, f"{each.path!r} has another size than the same bytes elsewhere")
    paths = {each.path for each in files}
    for path in paths:
        for parent in parents(path):
            if parent in paths:
                raise PublishError(400, f"{path!r} lies below {parent!r}, which is no folder")
    if not any(each.path == names.ASSEMBLY_MANIFEST and each.kind == "file" for each in files):
        raise PublishError(400, f"the list holds no {names.ASSEMBLY_MANIFEST}")


def blobs(files: Iterable[AssemblyFile]) -> dict[str, int]:
    """Return the size of each blob that the files need, by its digest."""
    return {each.sha256: each.size for each in files if each.sha256 is not None}


def parents(path: str) -> Iterator[str]:
    """Yield the folders that a path lies in, the nearest first."""
    parent = posixpath.dirname(path)
    while parent:
        yield parent
        parent = posixpath.dirname(parent)


def _check_path(path: str) -> None:
    parts = path.split("/")
    if (
        len(path.encode(errors="surrogatepass")) > _LONGEST_NAME
        or len(parts) > _DEEPEST
        or any(part in ("", ".", "..") for part in parts)
        or not path.isprintable()
        or "\\" in path
    ):
        raise PublishError(400, f"the list holds a name that is not allowed: {path!r}")
    if parts[0] not in _TOP or (len(parts) == 1) != (parts[0] == names.ASSEMBLY_MANIFEST):
        raise PublishError(400, f"the list holds {path!r}, which is no part of an Assembly")


def _check_link(path: str, target: str | None) -> None:
    """Refuse a link whose target is absolute or leaves the Assembly by its text."""
    resolved = posixpath.normpath(posixpath.join(posixpath.dirname(path), target or ""))
    if (
        not target
        or target.startswith("/")
        or "\\" in target
        or not target.isprintable()
        or len(target) > _LONGEST_NAME
        or resolved == ".."
        or resolved.startswith("../")
    ):
        raise PublishError(400, f"the symlink {path!r} points outside the Assembly ({target!r})")
