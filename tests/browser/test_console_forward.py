"""A port forward that cuts, leads nowhere, or comes back: the page goes on by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from jr2_runtime.console import SHELL, load
from tests.chaos.wire import Proxy, proxied

if TYPE_CHECKING:
    from tests.browser.conftest import Console
    from tests.browser.driver import Page

pytestmark = pytest.mark.timeout(400)

DRAWN = "document.querySelector('svg.picture')?.dataset.drawn"
LIVE = "document.querySelector('.feed')?.textContent === 'live'"
SIGNED_IN = "document.getElementById('token-state')?.textContent === 'live'"
IMPATIENT = """
const real = AbortSignal.timeout.bind(AbortSignal);
AbortSignal.timeout = (milliseconds) => real(Math.min(milliseconds, 500));
const later = setTimeout;
setTimeout = (what, milliseconds) => later(what, Math.min(milliseconds, 300));
"""
"""The page's own patience, and its pauses, would be half a minute of this test."""
QUICK = "const later = setTimeout; setTimeout = (what, pause) => later(what, Math.min(pause, 300));"
"""The pauses alone."""
STYLED = "getComputedStyle(document.getElementById('panels') ?? document.head).display === 'grid'"


@pytest.fixture
def forward(console: Console) -> Iterator[Proxy]:
    with proxied(console.pod.port) as made:
        yield made


def signed_in(console: Console, forward: Proxy, path: str) -> Page:
    page = console.browser.open(f"{forward.url}{path}")
    page.wait(LIVE, "the feed")
    console.give(page, console.pod.instance_token, "live")
    return page


def shows_gate(page: Page, run: str) -> None:
    page.until(
        lambda: page.run(f"document.querySelector('#fleet').innerText.includes('{run[:8]}')"),
        f"run {run[:8]}",
    )
    page.until(lambda: page.find("button", "1 open Gate needs attention"), "its Gate")


@pytest.mark.parametrize("passed", [2_900, 6_000, 20_000, 60_000, 200_000])
def test_a_page_whose_forward_is_cut_while_it_loads_comes_up(
    console: Console, forward: Proxy, passed: int
) -> None:
    run = console.pod.start_run("ledger")
    forward.cut_answers_at = passed
    page = console.browser.open(f"{forward.url}/workflows/ledger?run={run}")
    page.until(lambda: forward.cut_answers_at is None, "the cut")
    page.wait(LIVE, "the feed")
    page.wait(DRAWN)
    console.give(page, console.pod.instance_token, "live")
    shows_gate(page, run)


@pytest.mark.parametrize("before", [b'<link rel="icon"', b"</html>"])
def test_a_page_that_is_cut_itself_comes_up(
    console: Console, forward: Proxy, before: bytes
) -> None:
    """The browser waits for the rest of it, so it runs nothing that waits for the end."""
    forward.cut_answers_in = (before, 0)
    page = console.browser.open("about:blank")
    page.send("Page.navigate", url=f"{forward.url}/workflows/ledger")
    page.until(lambda: forward.cut_answers_in is None, "the cut")
    page.wait(LIVE, "the feed")
    page.wait(DRAWN)


def length_of(file: str) -> bytes:
    """Return the line of a head that says how long a file of the page is, which no other has."""
    return b"content-length: %d\r\n" % len(load()[file].body)


@pytest.mark.parametrize("beyond", [-400, -4, 60])
@pytest.mark.parametrize("file", ["main.js", "feeds.js", "console.css", "elk-worker.min.js"])
def test_a_file_of_which_half_a_head_came_is_fetched_anew(
    console: Console, forward: Proxy, file: str, beyond: int
) -> None:
    """A browser makes an empty file of it, and keeps it when the half has the `ETag`."""
    page = console.browser.open("about:blank")
    page.send("Page.addScriptToEvaluateOnNewDocument", source=QUICK)
    forward.cut_answers_in = (length_of(file), beyond)
    page.go(f"{forward.url}/workflows/ledger")
    page.until(lambda: forward.cut_answers_in is None, "the cut")
    page.wait(LIVE, "the feed")
    page.wait(DRAWN)
    page.wait(STYLED, "the style")


@pytest.mark.parametrize("beyond", [-400, -4, 60])
def test_a_page_of_which_half_a_head_came_is_there_when_it_is_loaded_again(
    console: Console, forward: Proxy, beyond: int
) -> None:
    forward.cut_answers_in = (length_of(SHELL), beyond)
    page = console.browser.open(f"{forward.url}/workflows/ledger")
    page.until(lambda: forward.cut_answers_in is None, "the cut")
    page.reload()
    page.wait(LIVE, "the feed")
    page.wait(DRAWN)


def test_a_page_goes_on_after_each_cut_of_its_feeds(console: Console, forward: Proxy) -> None:
    run = console.pod.start_run("ledger")
    page = signed_in(console, forward, f"/workflows/ledger?run={run}")
    for number in range(5):
        # In a frame, at another place each time, and not in the head of a feed that attaches again:
        # a browser says itself what it thinks of half a head.
        forward.cut_answers_in = (b"event: status", 1 + 37 * number)
        console.pod.client.post(
            f"/runs/{run}/gates/writing/events", json={"type": "note", "number": number}
        ).raise_for_status()
        page.until(lambda: forward.cut_answers_in is None, "the cut")
        page.shows(f"list of {number + 1}")
    assert console.pod.status(run)["context"]["numbers"] == [0, 1, 2, 3, 4]
    assert page.said == []


@pytest.mark.parametrize("beyond", [-60, -10, 10])
def test_an_observer_goes_on_after_a_cut_in_the_head_of_the_feed(
    console: Console, forward: Proxy, beyond: int
) -> None:
    page = console.browser.open(f"{forward.url}/workflows/ledger")
    page.wait(LIVE, "the feed")
    # What is left of the head names another kind of answer, which ends a feed for good. There is no
    # other feed on this page, and nothing else tells of a new run.
    forward.cut_answers_in = (b"text/event-stream", beyond)
    forward.cut()
    page.until(lambda: forward.cut_answers_in is None, "the cut")
    run = console.pod.start_run("ledger")
    row = f"[data-key=ledger] .run[title='{run}']"
    page.wait(f"document.querySelector({row!r}) !== null", "the run")
    page.wait(LIVE, "the feed")


@pytest.mark.parametrize("beyond", [-60, -10, 10])
def test_a_page_goes_on_after_a_cut_in_the_head_of_one_of_its_feeds(
    console: Console, forward: Proxy, beyond: int
) -> None:
    run = console.pod.start_run("ledger")
    page = signed_in(console, forward, f"/workflows/ledger?run={run}")
    forward.cut_answers_in = (b"text/event-stream", beyond)
    forward.cut()
    page.until(lambda: forward.cut_answers_in is None, "the cut")
    console.pod.client.post(
        f"/runs/{run}/gates/writing/events", json={"type": "note", "number": 0}
    ).raise_for_status()
    page.shows("list of 1")
    page.wait(LIVE, "the feed")


def test_a_gate_whose_read_was_lost_is_asked_for_again(console: Console) -> None:
    page = console.signed_in("/workflows/ledger")
    with page.losing("*/runs/*"):
        run = console.pod.start_run("ledger")
        page.until(lambda: any(run in each for each in page.lost), "the loss")
    # The run says nothing more while it waits.
    shows_gate(page, run)


def test_a_token_stays_while_nobody_answers_and_the_page_is_read_again(console: Console) -> None:
    page = console.signed_in("/workflows/ledger")
    with page.losing("*/runs"):
        page.reload()
        page.until(lambda: page.lost, "the loss")
        page.wait("document.getElementById('token-state')?.textContent === 'checking'")
        page.reload()
    page.wait(SIGNED_IN, "the token")


def test_a_forward_that_leads_nowhere_is_said_and_left(console: Console, forward: Proxy) -> None:
    page = signed_in(console, forward, "/workflows/ledger")
    page.send("Page.addScriptToEvaluateOnNewDocument", source=IMPATIENT)
    page.reload()
    page.wait(LIVE, "the feed")
    page.wait(SIGNED_IN, "the token")

    forward.hang()
    page.wait("document.querySelector('.feed').textContent === 'reconnecting'", "the silence")
    run = console.pod.start_run("ledger")
    # What hangs stays so; only what is opened from now on leads somewhere.
    forward.pass_new()
    page.wait(LIVE, "the feed")
    shows_gate(page, run)
    assert page.said == []
