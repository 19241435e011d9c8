"""Each text of seed 003 is in the code, on its page, and in a test that exists and compares it."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final

import pytest

from tests.contract.messages import of_code, of_pages
from tests.contract.messages.fitting import fits, says, shows
from tests.contract.messages.of_code import Source
from tests.contract.seed_003 import of_tests
from tests.contract.seed_003.rows.row import GIT, NOWHERE, Row
from tests.contract.seed_003.table import ROWS

ROOT: Final = Path(__file__).parents[3]
SHOWN: Final = tuple(row for row in ROWS if row.tests)
ANY_ORDER: Final = (GIT,)
"""The guides of the seed that do not list their texts in an order."""
SOURCES: Final = ("runtime/kit/src", "infra/src", "cli/src")


@functools.cache
def said() -> tuple[str, ...]:
    """Return every text of the sources, with what stands before it where it is a message."""
    sources = [
        Source.read(path, ROOT)
        for package in SOURCES
        for path in sorted((ROOT / package).rglob("*.py"))
    ]
    messages = [form for message in of_code.messages(sources) for form in message.forms]
    return (*messages, *sorted(of_code.texts(sources)))


@functools.cache
def is_said(text: str) -> bool:
    bare = text.partition(": ")[2] if text.startswith(of_code.PREFIXES) else text
    return any(says(form, text) or says(form, bare) for form in said())


def shown_by(text: str, tests: tuple[str, ...]) -> list[str]:
    return [test for test in tests if any(shows(form, text) for form in of_tests.texts(test))]


def of(row: Row) -> str:
    return row.text[:60]


@pytest.mark.parametrize("row", ROWS, ids=of)
def test_each_text_is_shown_by_a_test_as_soon_as_the_code_says_it(row: Row) -> None:
    if not row.tests:
        assert not is_said(row.text), "a test must show it: name that one here"
        pytest.skip("no part says this yet")
    for text in (row.text, *row.below):
        assert shown_by(text, row.tests), text


@pytest.mark.parametrize("row", SHOWN, ids=of)
def test_each_test_of_a_row_shows_a_text_of_it(row: Row) -> None:
    for test in row.tests:
        assert any(shown_by(text, (test,)) for text in (row.text, *row.below)), test


@pytest.mark.parametrize("page", sorted({row.page for row in SHOWN} - {NOWHERE}))
def test_a_page_has_its_texts_in_the_order_of_the_seed(page: str) -> None:
    quoted = list(of_pages.quoted(ROOT / "docs" / page))
    lost: list[str] = []
    last = 0
    for row in SHOWN:
        if row.page != page:
            continue
        places = [found.line for found in quoted if fits(found.text, row.text)]
        following = [place for place in places if place >= last or page in ANY_ORDER]
        if following:
            last = following[0]
        else:
            lost.append(f"{row.text} {f'stands before line {last}' if places else 'is not there'}")

    assert lost == []


def test_no_text_stands_twice() -> None:
    texts = [row.text for row in ROWS]

    assert len(texts) == len(set(texts)) > 70


def test_a_test_that_is_gone_is_noticed() -> None:
    with pytest.raises(LookupError, match="has no test test_that_is_gone"):
        of_tests.texts("tests/contract/seed_003/test_table.py::test_that_is_gone")
    with pytest.raises(LookupError, match=r"there is no tests/gone\.py"):
        of_tests.texts("tests/gone.py::test_that_is_gone")


EXAMPLE: Final = "error: {what} is gone"


@pytest.mark.parametrize("place", ["here", "there"])
def test_the_texts_of_a_test_are_its_own(place: str) -> None:
    """Its own function, its parameters, and the constants that it names; nothing else."""
    texts = of_tests.texts(
        "tests/contract/seed_003/test_table.py::test_the_texts_of_a_test_are_its_own"
    )

    assert EXAMPLE.format(what="it") == "error: it is gone"
    assert f"{place} it is" in {"here it is", "there it is"}
    assert {"there", "here it is", "error: it is gone"} <= texts
    others = of_tests.texts(
        "tests/contract/seed_003/test_table.py::test_a_test_that_is_gone_is_noticed"
    )
    assert len(others - texts) > 2
