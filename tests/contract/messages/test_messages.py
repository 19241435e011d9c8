"""Each message of the command is on a page, and each message of a page is one of the command."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final

import pytest

from tests.contract.messages import of_code, of_pages
from tests.contract.messages.fitting import fits, holds
from tests.contract.messages.of_code import HOLE, Message, Source
from tests.contract.messages.of_pages import Quoted

ROOT: Final = Path(__file__).parents[3]
COMMAND: Final = ("runtime/kit/src/jr2/walk", "infra/src", "cli/src")
"""What the command says. The rules of the authoring surface are on its own pages, with its tests."""
KIT: Final = "runtime/kit/src"


@functools.cache
def sources(*packages: str) -> tuple[Source, ...]:
    return tuple(
        Source.read(path, ROOT)
        for package in packages
        for path in sorted((ROOT / package).rglob("*.py"))
    )


@functools.cache
def messages() -> tuple[Message, ...]:
    # The whole Kit is read, since the command uses its names and its functions.
    found = of_code.messages(sources(KIT, *COMMAND[1:]))
    return tuple(message for message in found if message.path.startswith(COMMAND))


@functools.cache
def pages() -> tuple[Quoted, ...]:
    return tuple(
        found for page in sorted((ROOT / "docs").glob("*.md")) for found in of_pages.quoted(page)
    )


def test_each_message_of_the_code_is_on_a_page() -> None:
    missing = [
        str(message)
        for message in messages()
        if not any(fits(found.text, form) for form in message.forms for found in pages())
    ]

    assert missing == []


def test_each_message_of_a_page_is_one_of_the_code() -> None:
    # A text may reach the reporter by a way that the tree does not show; then it is among these.
    said = [form for message in messages() for form in message.forms]
    written = of_code.texts(sources(KIT, *COMMAND[1:]))

    lost = [
        str(found)
        for found in pages()
        if found.is_message
        and not any(fits(found.text, form) for form in said)
        and not any(
            fits(bare, text) or holds(bare, text)
            for bare in [found.text.partition(": ")[2]]
            for text in written
        )
    ]

    assert lost == []


def test_the_pages_and_the_code_have_many_messages() -> None:
    assert len(messages()) > 250
    assert sum(found.is_message for found in pages()) > 250


# --- The reading itself ---------------------------------------------------------------------------
EXAMPLE = '''
from jr2 import names
from jr2.errors import Refusal, StepFailed

class Lost(StepFailed):
    """Not an error text: a docstring of many words."""

def refuse(place, many):
    why = f"too {'old' if many else 'new'}"
    raise Refusal(f'namespace "{place}" is {why} for {names.CONFIG_FILE}' "\\nsecond line")

def lost(place):
    return Lost("\\n".join([f"{place} was lost again", "evidence"]))

def said(place):
    yield f"warning: the disk of {place.name} is nearly full"

def passed_on(error):
    raise StepFailed(str(error))
'''


def example(tmp_path: Path) -> list[str]:
    path = tmp_path / "example.py"
    path.write_text(EXAMPLE, encoding="utf-8")
    return [form for one in of_code.messages([Source.read(path, tmp_path)]) for form in one.forms]


def test_the_texts_of_errors_are_read_from_the_tree(tmp_path: Path) -> None:
    assert example(tmp_path) == [
        f'refusing: namespace "{HOLE}" is too old for jr2_config.py',
        f'refusing: namespace "{HOLE}" is too new for jr2_config.py',
        f"error: {HOLE} was lost again",
        f"warning: the disk of {HOLE} is nearly full",
    ]


@pytest.mark.parametrize(
    ("quoted", "is_it"),
    [
        ('refusing: namespace "<namespace>" is too old for jr2_config.py', True),
        ('refusing: namespace "demo" is too old for jr2_config.py', True),
        ("refusing: namespace <namespace> is too …", True),
        ('error: namespace "<namespace>" is too old for jr2_config.py', False),
        ('refusing: namespace "<namespace>" is too odd for jr2_config.py', False),
        ('refusing: namespace "<namespace>" is too old', False),
        ("refusing: something else is wrong with jr2_config.py", False),
    ],
)
def test_a_text_fits_word_for_word(quoted: str, is_it: bool) -> None:
    assert fits(quoted, f'refusing: namespace "{HOLE}" is too old for jr2_config.py') is is_it


def test_the_messages_of_a_page_are_its_spans_and_the_lines_of_its_blocks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Say `error: one` or ``error: run `jr2 up` again``; `jr2 up` is none.\n"
        "```text\nrefusing: two\n  evidence\n```\nerror: in prose is none\n",
        encoding="utf-8",
    )

    assert [(f.line, f.text) for f in of_pages.quoted(page) if f.is_message] == [
        (1, "error: one"),
        (1, "error: run `jr2 up` again"),
        (3, "refusing: two"),
    ]
