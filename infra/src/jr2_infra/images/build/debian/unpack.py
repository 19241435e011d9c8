"""A Debian package's files, extracted by our own code: no script runs, and `/usr` is merged.

A path that leaves the root is refused, what no image holds is left out, and owners and times are
not kept, since a layer has none.
"""

from __future__ import annotations

import fnmatch
import io
import os
import re
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from jr2.errors import StepFailed

from . import sets

_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_LEFT_OUT = re.compile(
    "|".join(rf"(?:{fnmatch.translate(pattern)[:-2]}(?:/.*)?\Z)" for pattern in sets.LEFT_OUT),
    re.DOTALL,
)


def is_left_out(path: str) -> bool:
    """Say whether no image holds an absolute path of a Debian package."""
    return _LEFT_OUT.match(path) is not None


def read_control(package: Path) -> dict[str, str]:
    """Return the fields of a package's control file; a field of many lines keeps them.

    Raises:
        StepFailed: the file is not a Debian package.
    """
    return parse_control(control_text(package))


def control_text(package: Path) -> str:
    """Return a package's control file."""
    with _open_member(package, "control.tar") as tar:
        for member in tar:
            if PurePosixPath(member.name).name == "control":
                file = tar.extractfile(member)
                assert file is not None, "the control file is a regular one"
                return file.read().decode()
    raise StepFailed(f"{package.name} has no control file")


def parse_control(text: str) -> dict[str, str]:
    """Return the fields of a control file."""
    fields: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if line[:1] in (" ", "\t"):
            fields[name] += f"\n{line.strip()}"
        elif ":" in line:
            name, value = line.split(":", 1)
            fields[name] = value.strip()
    return fields


def merge_usr(root: Path) -> None:
    """Make the links `/bin`, `/lib` and so on of a root whose programs all are below `/usr`."""
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")


def unpack(packages: Iterable[Path], root: Path) -> None:
    """Extract packages into a root file system.

    Raises:
        StepFailed: a file is not a Debian package, or a path of it leaves the root.
    """
    for package in packages:
        with _open_member(package, "data.tar") as tar:
            for member in tar:
                _place(tar, member, root, package.name)


def _place(tar: tarfile.TarFile, member: tarfile.TarInfo, root: Path, package: str) -> None:
    path = _inside(member.name, package)
    if not path.parts or is_left_out(f"/{path}"):
        return
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if member.isdir():
        target.mkdir(exist_ok=True)
        target.chmod(member.mode & 0o1777 | 0o755)
        return
    target.unlink(missing_ok=True)
    if member.issym():
        target.symlink_to(member.linkname)
    elif member.islnk():
        os.link(root / _inside(member.linkname, package), target)
    elif member.isreg():
        file = tar.extractfile(member)
        assert file is not None, "a regular file has content"
        with target.open("wb") as written:
            while block := file.read(1 << 20):
                written.write(block)
        target.chmod(0o755 if member.mode & 0o100 else 0o644)
    else:
        raise StepFailed(f"{package} holds {member.name}, which is no file, folder or link")


def _inside(name: str, package: str) -> PurePosixPath:
    path = PurePosixPath(name.removeprefix("/"))
    if ".." in path.parts:
        raise StepFailed(f"{package} holds {name}, which leaves the root")
    if path.parts[:1] and path.parts[0] in _MERGED:
        return PurePosixPath("usr") / path
    return path


def _open_member(package: Path, stem: str) -> tarfile.TarFile:
    for name, data in _ar_members(package):
        if name.startswith(stem):
            return tarfile.open(fileobj=io.BytesIO(data), mode="r:*")
    raise StepFailed(f"{package.name} is not a Debian package: it has no {stem}")


def _ar_members(package: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and bytes of each member of an `ar` file."""
    with package.open("rb") as file:
        if file.read(8) != b"!<arch>\n":
            raise StepFailed(f"{package.name} is not a Debian package")
        while header := file.read(60):
            size = int(header[48:58])
            yield header[:16].decode().strip().rstrip("/"), file.read(size)
            if size % 2:
                file.read(1)
