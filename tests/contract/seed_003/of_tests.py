"""The texts of a test: what its function, its parameters and the constants it names are written as.

A test that shows a text has it as a string of its own. It is read from the syntax tree, so a name
in a table of tests cannot stand for a test that is gone, or for one that compares something else.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.contract.messages.of_code import Reading, Source

ROOT: Final = Path(__file__).parents[3]


def texts(test: str) -> frozenset[str]:
    """Return the lines of each text of a test.

    Args:
        test: its name, such as `tests/unit/infra/test_kube.py::test_no_context`.

    Raises:
        LookupError: there is no such test.
    """
    path, _, name = test.partition("::")
    file = ROOT / path
    if not file.is_file():
        raise LookupError(f"there is no {path}")
    source = _read(file)
    function = source.functions.get(name)
    if function is None or not name.startswith("test_"):
        raise LookupError(f"{path} has no test {name}")
    reading = Reading(source, function, {}, arguments=_parameters(function))
    found: set[str] = set()
    for tree in (function, *_constants(source, function)):
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp):
                found |= {line for form in reading.forms(node) for line in form.split("\n")}
    return frozenset(line.strip() for line in found if line.strip())


@functools.cache
def _read(file: Path) -> Source:
    return Source.read(file, ROOT)


def _constants(source: Source, function: ast.AST) -> Iterator[ast.AST]:
    """Yield the module's constants that a function names, and those that these name."""
    seen: set[str] = set()
    waiting = [function]
    while waiting:
        for node in ast.walk(waiting.pop()):
            if isinstance(node, ast.Name) and node.id in source.constants and node.id not in seen:
                seen.add(node.id)
                waiting.append(source.constants[node.id])
                yield source.constants[node.id]


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, list[ast.expr]]:
    """Return the values that `pytest.mark.parametrize` gives to each argument of a test."""
    found: dict[str, list[ast.expr]] = {}
    for decorator in function.decorator_list:
        match decorator:
            case ast.Call(
                func=ast.Attribute(attr="parametrize"),
                args=[named, ast.List(elts=rows) | ast.Tuple(elts=rows), *_],
            ):
                names = _names(named)
            case _:
                continue
        for row in rows:
            values = row.elts if isinstance(row, ast.Tuple) and len(names) > 1 else [row]
            for name, value in zip(names, values, strict=False):
                found.setdefault(name, []).append(value)
    return found


def _names(node: ast.expr) -> list[str]:
    match node:
        case ast.Constant(value=str(text)):
            return [name.strip() for name in text.split(",")]
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return [str(one.value) for one in elements if isinstance(one, ast.Constant)]
        case _:
            return []
