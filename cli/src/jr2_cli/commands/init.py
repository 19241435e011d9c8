"""`jr2 init`: write a new Instance folder.

Source: spec/authoring.md §6, spec/converge.md §2.5.
"""

from __future__ import annotations

from pathlib import Path

from .. import output


def init(directory: Path = Path(), /, *, name: str | None = None) -> int:
    """Write a new Instance into a folder, and leave alone what is there.

    The Instance pins the Kit at the version of this command.

    Args:
        directory: the folder; it is made when it does not exist.
        name: the name of the Instance, and of its namespace; without it, the folder's name.
    """
    from jr2_infra import scaffold
    from jr2_infra.facts import kit

    checkout = kit.find_checkout(kit.running_copy().path)
    scaffold.scaffold(directory, name, checkout, output.current())
    return 0
