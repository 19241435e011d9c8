"""Search for a planted value in texts, files and the arguments of programs.

A value is searched in the forms in which programs carry it: as it is, in base64 at each of the
three alignments that it can have inside of something longer, and in hex.
"""

from __future__ import annotations

import base64
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.waiting import LIMIT

SHORTEST: Final = 12
"""A shorter value would be found by chance."""
_LARGEST_FILE: Final = 16 << 20
_PAUSE_SECONDS: Final = 0.05


def forms(value: bytes) -> tuple[bytes, ...]:
    """Return every form in which a value is searched.

    Args:
        value: the planted value, of at least `SHORTEST` bytes.
    """
    assert len(value) >= SHORTEST, "a planted value is too short to be searched"
    found = [value, value.hex().encode()]
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + value)
        # The first and the last group hold bits of what stands beside the value.
        inner = encoded[4 if shift else 0 : len(encoded) // 4 * 4 - 4]
        found += [inner, inner.replace(b"+", b"-").replace(b"/", b"_")]
    return tuple(dict.fromkeys(found))


class Canaries:
    """The planted values, by the name under which a test speaks of them."""

    def __init__(self, values: Mapping[str, bytes]) -> None:
        self._forms = {name: forms(value) for name, value in values.items()}

    def found_in(self, content: bytes | str) -> list[str]:
        """Return the names of the values that stand in something, in any form."""
        raw = content.encode() if isinstance(content, str) else content
        return [name for name, made in self._forms.items() if any(form in raw for form in made)]

    def found_in_all(self, contents: Iterable[tuple[str, bytes | str]]) -> list[str]:
        """Return `<place>: <name>` for every value in any of many places."""
        return [
            f"{place}: {name}" for place, content in contents for name in self.found_in(content)
        ]


@dataclass(slots=True)
class Seen:
    """What was seen while a program ran.

    Args:
        files: each content that a file had, with its path.
        arguments: the command lines of all programs of the machine.
    """

    files: set[tuple[str, bytes]] = field(default_factory=set)
    arguments: set[bytes] = field(default_factory=set)

    def everything(self) -> Iterator[tuple[str, bytes]]:
        """Yield each place and what stood there."""
        yield from self.files
        for line in self.arguments:
            yield f"ps: {line[:60]!r}", line


class Watcher(threading.Thread):
    """Looks at folders and at the list of programs, again and again, until it is stopped."""

    def __init__(self, *folders: Path) -> None:
        super().__init__(daemon=True)
        self._folders = folders
        self._known: set[tuple[str, int, int, int]] = set()
        self._over = threading.Event()
        self.seen = Seen()
        self.rounds = 0

    def __enter__(self) -> Watcher:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join(LIMIT)
        # What is left behind counts too.
        self._look()

    def run(self) -> None:
        while not self._over.is_set():
            self._look()
            time.sleep(_PAUSE_SECONDS)

    def _look(self) -> None:
        for folder in self._folders:
            self._look_in(folder)
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                with suppress(OSError):
                    self.seen.arguments.add(Path(entry.path, "cmdline").read_bytes())
        self.rounds += 1

    def _look_in(self, folder: Path) -> None:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        self._look_in(Path(entry.path))
                    elif entry.is_file(follow_symlinks=False):
                        self._read(entry)

    def _read(self, entry: os.DirEntry[str]) -> None:
        status = entry.stat(follow_symlinks=False)
        version = (entry.path, status.st_ino, status.st_mtime_ns, status.st_size)
        if version in self._known or status.st_size > _LARGEST_FILE:
            return
        self.seen.files.add((entry.path, Path(entry.path).read_bytes()))
        self._known.add(version)
