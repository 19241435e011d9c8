"""The page of `jr2 check`: each text on it is one that the code says, and each rule is on it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from jr2.walk import RULES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
SOURCES = (ROOT / "runtime" / "kit" / "src", ROOT / "infra" / "src")
WORDS = {
    "loads": "did not load",
    "door": "but Machine(…).build() did not make it",
    "open": "open — bind it where the Machine is registered",
    "size": "the Size leaves the Harness container",
    "place": "no workspace() is around it",
    "effect": "does not declare",
    "push": "cannot push",
    "image": "the Sandbox Image context",
}
"""What each rule of the walk says, in the order in which the rules are judged."""


def longest_words(text: str) -> str:
    """The longest run of plain words: a name, a number or a place may be a value in the code."""
    words = re.sub(r"^(refusing|error|warning): ", "", text)
    runs = re.findall(r"(?:^|(?<=\s))[A-Za-z'’-]+(?: [A-Za-z'’-]+)+", words)
    return max(runs, key=len, default="")


def texts() -> list[str]:
    """The longest run of words of each refusal, error and warning that the page quotes."""
    quoted = re.findall(r"``(.+?)``|`([^`\n]+)`", PAGE)
    found = [one or other for one, other in quoted]
    return [
        words
        for text in found
        if text.startswith(("refusing: ", "error: ", "warning: "))
        and (words := longest_words(text))
    ]


def said(tree: ast.AST) -> Iterator[str]:
    """Each text of a source; a value that is put into one is `<>`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else "<>" for p in node.values)
            yield "".join(str(part) for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.fixture(scope="module")
def code() -> str:
    return "\n".join(
        text
        for source in SOURCES
        for path in sorted(source.rglob("*.py"))
        for text in said(ast.parse(path.read_text(encoding="utf-8")))
    )


@pytest.mark.parametrize("words", texts())
def test_a_text_of_the_page_is_one_of_the_code(code: str, words: str) -> None:
    assert words in code


def test_the_page_has_many_texts() -> None:
    assert len(texts()) > 15


def test_each_rule_is_on_the_page() -> None:
    assert tuple(WORDS) == RULES
    assert [rule for rule in RULES if WORDS[rule] not in PAGE] == []
