"""The Kit packages: the distribution `jr2` and all that it needs, at the versions of the image.

The Orchestrator's image ships exactly these, so an Assembly carries none of them.

Source: design §5.5.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from packaging.utils import canonicalize_name

from jr2 import names

_PIN: Final = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;\\]+)", re.M)

# What a Kit distribution is imported as, where that is not its own name.
_IMPORT_NAMES: Final[Mapping[str, str]] = {
    "typing-extensions": "typing_extensions",
    "annotated-types": "annotated_types",
    "typing-inspection": "typing_inspection",
    "pydantic-core": "pydantic_core",
}


@dataclass(frozen=True, slots=True)
class KitClosure:
    """Kit distributions by normalised name, with the version that the image ships."""

    versions: Mapping[str, str]

    def import_names(self) -> Mapping[str, str]:
        """Top-level import name → distribution."""
        return {_IMPORT_NAMES.get(name, name.replace("-", "_")): name for name in self.versions}


def parse_pins(text: str) -> dict[str, str]:
    """Return the `name==version` pins of a requirements file, names normalised."""
    return {canonicalize_name(m["name"]): m["version"] for m in _PIN.finditer(text)}


def kit_closure(checkout: Path | None) -> KitClosure:
    """Return the Kit packages of this Kit version.

    Args:
        checkout: the repository root when the Kit is a checkout; its `requirements/kit.txt` is
            what the image is built from. A released Kit carries the same file.
    """
    if checkout is not None:
        text = (checkout / "requirements" / "kit.txt").read_text()
    else:
        text = (resources.files("jr2_infra.assembly") / "kit.txt").read_text()
    return KitClosure({"jr2": names.KIT_VERSION, **parse_pins(text)})
