"""Where the Instance is that a command stands in: the first folder upwards with its config file.

Only a look at the file system: nothing of the Instance is read or imported.

Source: spec/converge.md §2.2 and §2.4.
"""

from __future__ import annotations

from pathlib import Path

from jr2 import names


def find(start: Path) -> Path | None:
    """Return the Instance folder that `start` is in, or `None`.

    Args:
        start: an absolute path of a folder.
    """
    for folder in (start, *start.parents):
        if (folder / names.CONFIG_FILE).is_file():
            return folder
    return None
