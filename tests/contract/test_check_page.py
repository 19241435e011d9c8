"""The page of `jr2 check` says something of each rule of the walk; `messages/` reads its texts."""

from __future__ import annotations

from pathlib import Path

from jr2.walk import RULES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
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


def test_each_rule_is_on_the_page() -> None:
    assert tuple(WORDS) == RULES
    assert [rule for rule in RULES if WORDS[rule] not in PAGE] == []
