"""Which `Accept` means a browser that wants a page."""

from __future__ import annotations

import pytest

from jr2_runtime.orchestrator.api.negotiation import prefers_html

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "html"),
    [
        ([BROWSER], True),
        (["text/html"], True),
        (["TEXT/HTML"], True),
        (["text/html;level=1;q=0.5"], True),
        (["text/html", "*/*;q=0.1"], True),
        (["application/json;q=0.5, text/html"], True),
        (["text/*"], True),
        (["text/html ; q=0.9 , application/json ; q = 0.8"], True),
        ([], False),
        ([""], False),
        (["*/*"], False),
        (["application/json"], False),
        (["text/event-stream"], False),
        (["text/html, application/json"], False),
        (["text/html;q=0.5, application/json"], False),
        (["text/html;q=0.5", "*/*"], False),
        (["text/html;q=0"], False),
        (["text/html;q=0.0, */*;q=0.1"], False),
        (["application/*, text/html;q=0.9"], False),
        (["text/html;q=1, application/json;q=1, */*"], False),
        (["text/plain"], False),
        ([",,;q=1,\x00"], False),
    ],
)
def test_only_an_accept_that_prefers_html_gets_a_page(accept: list[str], html: bool) -> None:
    assert html is prefers_html(accept)


def test_a_quality_that_is_none_does_not_count() -> None:
    assert prefers_html(["text/html;q=7, application/json;q=0.9"]) is True
    assert prefers_html(["text/html, application/json;q=0.9;q=nan"]) is True
