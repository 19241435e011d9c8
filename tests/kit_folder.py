"""The folder that a worker gets as the Kit: the closure of `jr2`, laid out as in the image."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pydantic

import jr2

CLOSURE: Final = (
    *("pydantic", "pydantic_core", "annotated_types", "typing_inspection"),
    "typing_extensions.py",
)


def link_kit(folder: Path) -> None:
    """Lay out the closure of `jr2` in a new folder, by links.

    It is the `jr2` that these tests import, so with its machine code where that is on the path
    (`scripts/with-compiled-kernel`).
    """
    folder.mkdir()
    packages = Path(pydantic.__file__).parent.parent
    for name in CLOSURE:
        (folder / name).symlink_to(packages / name)
    ours = Path(jr2.__file__).parent
    for place in (ours, *ours.parent.glob("jr2__mypyc.*.so")):
        (folder / place.name).symlink_to(place)
