"""A name that two parts agree on is spelt once: in `jr2.names`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from jr2 import names

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (
    "infra/src",
    "cli/src",
    "runtime/kit/src",
    "runtime/services/src",
    "runtime/machines/src",
)
HOME = ROOT / "runtime/kit/src/jr2/names.py"
SHORTEST = 8
"""Below this a value is a word that many things may have, such as `worker`."""
ALLOWED = {
    # The version of this very distribution: `jr2` may be another one, and is compared with it.
    ("infra/src/jr2_infra/facts/kit.py", "KIT_VERSION"),
}


def distinctive() -> dict[str, str]:
    """The values that nobody writes by chance, each with its name.

    A plain word is none, nor a path of one word: a mount and a route may have the same.
    """
    found: dict[str, str] = {}
    for name, value in vars(names).items():
        is_text = name.isupper() and isinstance(value, str) and len(value) >= SHORTEST
        if is_text and not re.fullmatch("/?[a-z]+", value):
            found.setdefault(value, name)
    return found


def spelt_again(source: str, known: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Give line and name of each string of a source that is one of the values."""
    nodes = list(ast.walk(ast.parse(source)))
    # A string that stands alone is a docstring, and `prog` is what a program's usage calls it.
    texts = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    texts |= {
        id(node.value) for node in nodes if isinstance(node, ast.keyword) and node.arg == "prog"
    }
    for node in nodes:
        if isinstance(node, ast.Constant) and id(node) not in texts and node.value in known:
            yield node.lineno, known[str(node.value)]


def test_a_second_spelling_is_found() -> None:
    source = '"""jr2-orchestrator"""\nx = f(["jr2-orchestrator"], "jr2-orchestrator of demo")\n'
    found = list(spelt_again(source, {"jr2-orchestrator": "ORCHESTRATOR"}))
    assert found == [(2, "ORCHESTRATOR")]


@pytest.mark.parametrize("folder", SOURCES)
def test_each_name_is_spelt_once(folder: str) -> None:
    known = distinctive()
    assert "jr2-orchestrator" in known
    again = [
        f"{path.relative_to(ROOT)}:{line} spells names.{name}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path != HOME
        for line, name in spelt_again(path.read_text(encoding="utf-8"), known)
        if (str(path.relative_to(ROOT)), name) not in ALLOWED
    ]
    assert again == []
