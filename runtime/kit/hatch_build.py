"""Put the docs into the wheel of the Kit, as `jr2/docs`, without the records of decisions.

The docs lie at the root of the repository, outside this project, so a source distribution carries a
copy for the wheel that is built from it. An editable install needs none: it reads the checkout's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class DocsHook(BuildHookInterface):
    """Adds each page to what the build includes."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the pages; hatchling calls it before it builds."""
        docs = self._docs()
        if version == "editable" or docs is None:
            return
        place = "docs" if self.target_name == "sdist" else "jr2/docs"
        for page in sorted(docs.rglob("*.md")):
            relative = page.relative_to(docs)
            if relative.parts[0] != "adr":
                build_data["force_include"][str(page)] = f"{place}/{relative.as_posix()}"

    def _docs(self) -> Path | None:
        root = Path(self.root)
        if (root / "docs").is_dir():
            return root / "docs"
        checkout = root.parent.parent
        if (checkout / "runtime" / "kit" / "pyproject.toml").is_file():
            return checkout / "docs"
        return None
