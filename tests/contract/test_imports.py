"""Each distribution asks for what it imports itself, whoever else brings it."""

from __future__ import annotations

import ast
import importlib.metadata
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
DISTRIBUTIONS = ("runtime/kit", "runtime/services", "runtime/machines", "infra", "cli")
PART_OF = {
    "pydantic": "jr2",
    "pydantic-core": "pydantic",
    "starlette": "fastapi",
    # The types of pydantic's own interface; the Kit imports it for type checkers alone.
    "typing-extensions": "pydantic",
}
"""What another distribution shows in its own interface, and so brings at the version that fits."""
BROUGHT_BY = importlib.metadata.packages_distributions()


def imported(source: str) -> Iterator[str]:
    """Give each module that a source imports by its whole name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def distributions_of(module: str) -> set[str]:
    """The distributions that hold a module; none for the standard library."""
    parts = module.split(".")
    if parts[0] in sys.stdlib_module_names:
        return set()
    if parts[0] == "google":
        # A package without a file of its own, that many distributions share.
        return {"protobuf"} if parts[:2] == ["google", "protobuf"] else {module}
    return {canonicalize_name(name) for name in BROUGHT_BY.get(parts[0], [parts[0]])}


@pytest.mark.parametrize("folder", DISTRIBUTIONS)
def test_each_import_is_a_dependency(folder: str) -> None:
    project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
    asked = {canonicalize_name(Requirement(text).name) for text in project["dependencies"]}
    asked.add(canonicalize_name(project["name"]))
    missing = {
        f"{path.relative_to(ROOT)} imports {module}"
        for path in sorted((ROOT / folder / "src").rglob("*.py"))
        if "templates" not in path.parts
        for module in imported(path.read_text(encoding="utf-8"))
        if (brought := distributions_of(module))
        and not (brought | {PART_OF.get(name, name) for name in brought}) & asked
    }
    assert missing == set()
