"""Debian packages and a mirror of them, written as files: small ones for tests, by no other program."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def member(name: str, content: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    """A member of a package's archive; `fields` are those of `TarInfo`."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def pack(members: Sequence[tuple[tarfile.TarInfo, bytes]], compression: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=f"w:{compression}") as tar:  # type: ignore[call-overload]
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def deb(fields: Mapping[str, str], members: Sequence[tuple[tarfile.TarInfo, bytes]] = ()) -> bytes:
    """The bytes of a package: `ar` with the three members that Debian writes."""
    control = "".join(f"{name}: {value}\n" for name, value in fields.items()).encode()
    parts = {
        "debian-binary": b"2.0\n",
        "control.tar.xz": pack([member("./control", control)], "xz"),
        "data.tar.xz": pack(members, "xz"),
    }
    data = b"!<arch>\n"
    for name, content in parts.items():
        data += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        data += content + b"\n" * (len(content) % 2)
    return data


class Mirror:
    """A Debian mirror in a folder, for one suite and one architecture.

    It is not signed: the sources that name it say that it is trusted.
    """

    def __init__(self, folder: Path, suite: str, architecture: str) -> None:
        self.folder = folder
        self._suite = suite
        self._architecture = architecture
        self._packages: dict[str, bytes] = {}

    @property
    def sources(self) -> str:
        return (
            f"Types: deb\nURIs: file:{self.folder}\nSuites: {self._suite}\nComponents: main\n"
            "Trusted: yes\n"
        )

    def offer(self, *packages: Mapping[str, str]) -> None:
        """Offer these packages and no others."""
        pool = self.folder / "pool"
        pool.mkdir(parents=True, exist_ok=True)
        index = ""
        for package in packages:
            fields = {
                "Architecture": self._architecture,
                "Maintainer": "Test <t@example>",
                **package,
            }
            data = deb(fields, [member(f"./usr/share/{fields['Package']}", b"content")])
            file = f"{fields['Package']}_{fields['Version'].replace(':', '%3a')}.deb"
            (pool / file).write_bytes(data)
            fields |= {
                "Filename": f"pool/{file}",
                "Size": str(len(data)),
                "SHA256": hashlib.sha256(data).hexdigest(),
            }
            index += "".join(f"{name}: {value}\n" for name, value in fields.items()) + "\n"
        binary = f"main/binary-{self._architecture}/Packages"
        release = self.folder / "dists" / self._suite
        (release / binary).parent.mkdir(parents=True, exist_ok=True)
        (release / binary).write_text(index)
        digest = hashlib.sha256(index.encode()).hexdigest()
        (release / "Release").write_text(
            f"Suite: {self._suite}\nCodename: {self._suite}\nComponents: main\n"
            f"Architectures: {self._architecture}\nSHA256:\n {digest} {len(index)} {binary}\n"
        )
