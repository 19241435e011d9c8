"""What a token opens: starting runs, answering Gates, cancelling; and what closes it again."""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Any

import pytest

from jr2 import names
from tests.browser.conftest import sources

if TYPE_CHECKING:
    from tests.browser.conftest import Console
    from tests.browser.driver import Page

pytestmark = pytest.mark.timeout(400)

DRAWN = "document.querySelector('svg.picture')?.dataset.drawn"


def unfold(page: Page) -> None:
    """Open the form of the first event on the first card."""
    page.press("details.answer > summary")


def headers(request: dict[str, Any]) -> dict[str, str]:
    return {name.lower(): value for name, value in request["headers"].items()}


def selected(page: Page) -> str:
    """Return the run that the address names, once it names one."""
    found = page.wait("new URLSearchParams(location.search).get('run')", "the run")
    assert isinstance(found, str)
    return found


def state(page: Page) -> str:
    return str(page.run("document.getElementById('token-state').textContent"))


def test_a_form_follows_the_schema_of_the_door(console: Console) -> None:
    page = console.signed_in()
    page.click("button", "Start a run of approval")
    page.shows("What to ship.")
    page.write("textbox", "Title", "A <b>house</b>")
    page.write("spinbutton", "Copies", "2.5")
    page.click("button", "Start run")
    page.shows("Copies: 2.5 is no whole number")
    page.write("spinbutton", "Copies", "3")
    page.write("spinbutton", "Weight", "0.5")
    page.click("checkbox", "Urgent")
    page.run("document.querySelector('select').value = '1'")
    page.write("spinbutton", "Width", "7")
    page.write("textbox", "Tags", '["a", ]')
    page.click("button", "Start run")
    page.shows("Tags is not JSON")
    page.write("textbox", "Tags", '["a", "b"]')
    page.click("button", "Start run")
    run = selected(page)

    assert console.pod.status(run)["context"]["door"] == {
        "title": "A <b>house</b>",
        "copies": 3,
        "weight": 0.5,
        "urgent": True,
        "colour": "blue",
        "size": {"width": 7, "height": 1},
        "tags": ["a", "b"],
    }
    page.shows(f"Run {run[:8]}")
    page.shows("A <b>house</b>")
    assert page.run("document.querySelector('dialog')") is None
    assert page.said == []


def test_what_is_left_out_has_the_doors_default_and_a_refusal_stays_in_the_form(
    console: Console,
) -> None:
    page = console.signed_in("/workflows/pair")
    page.click("button", "Start a run of pair")
    page.click("button", "Start run")
    page.shows("Keys is needed")
    page.write("textbox", "Keys", "[1]")
    page.click("button", "Start run")
    page.wait("document.querySelector('dialog .problem').textContent.includes('keys')", "a refusal")
    page.write("textbox", "Keys", '["k"]')
    page.click("button", "Start run")
    run = selected(page)
    assert console.pod.status(run)["context"] == {"items": [{"key": "k"}]}

    page.click("button", "Start a run of approval")
    page.write("textbox", "Title", "plain")
    page.click("button", "Start run")
    page.wait(f"!location.search.includes('{run}')")
    run = selected(page)
    assert console.pod.status(run)["context"]["door"]["copies"] == 1


def test_a_workflow_without_a_schema_takes_json(console: Console) -> None:
    page = console.signed_in()
    page.click("button", "Start a run of ledger")
    page.write("textbox", "Input as JSON", "[1]")
    page.click("button", "Start run")
    page.shows("The input is not a JSON object")
    page.write("textbox", "Input as JSON", '{"any": 1}')
    page.click("button", "Start run")
    run = selected(page)

    assert page.writes[-1]["postData"] == '{"any":1}'
    assert console.pod.status(run)["workflow"] == "ledger"


def test_a_gate_is_answered_and_its_card_goes_with_the_next_frame(console: Console) -> None:
    pod = console.pod
    run = pod.start_run("approval", {"title": "the ship", "copies": 2})
    page = console.signed_in(f"/workflows/approval?run={run}")
    page.wait(DRAWN)
    page.click("button", "1 open Gate needs attention")
    card = page.one("group", f"Gate review of run {run[:8]}")
    assert card
    page.shows("the ship")
    page.shows("⚑ parked here")
    page.shows("Throw it away.")
    gate = pod.status(run)["gates"][0]["id"]

    unfold(page)
    page.write("textbox", "By", "sam")
    page.click("button", "approve")
    page.until(lambda: not page.find("group", f"Gate review of run {run[:8]}"), "the card's end")
    page.until(lambda: page.find("group", f"Gate signature.waiting of run {run[:8]}"), "the next")
    assert pod.status(run)["context"]["by"] == "sam"
    assert pod.status(run)["context"]["note"] is None
    sent = page.writes[-1]
    assert headers(sent)["if-gate"] == gate
    assert headers(sent)["idempotency-key"].startswith("console-")
    assert sent["postData"] == '{"by":"sam","type":"approve"}'

    unfold(page)
    page.write("textbox", "Name", "lee")
    page.enter()
    page.shows("No run waits for an answer.")
    assert pod.settled(run)["status"] == "done"
    page.click("tab", "Details")
    page.shows("shipped")
    assert page.said == []


def test_a_gate_of_a_workflow_that_no_feed_follows_is_answered_too(console: Console) -> None:
    run = console.pod.start_run("approval", {"title": "elsewhere"})
    page = console.signed_in("/workflows/ledger")
    page.click("button", "1 open Gate needs attention")
    page.click("button", "reject")
    page.shows("No run waits for an answer.")
    assert console.pod.settled(run)["value"] == "rejected"


def test_a_start_whose_answer_was_lost_is_sent_again_and_done_once(console: Console) -> None:
    page = console.signed_in("/workflows/ledger")
    page.click("button", "Start a run of ledger")
    with page.losing("*/workflows/ledger/runs"):
        page.click("button", "Start run")
        page.shows("the Orchestrator does not answer. Send it again: it is done once.")
    (done,) = console.pod.client.get("/runs").json()
    page.click("button", "Start run")
    assert selected(page) == done["runId"]
    first, again = page.writes[-2:]
    assert headers(first)["idempotency-key"] == headers(again)["idempotency-key"]
    assert len(console.pod.client.get("/runs").json()) == 1

    page.click("button", "Start a run of ledger")
    page.click("button", "Start run")
    page.wait(f"!location.search.includes('{done['runId']}')", "another run")
    assert headers(page.writes[-1])["idempotency-key"] != headers(again)["idempotency-key"]


def test_a_write_whose_answer_was_cut_is_sent_again_by_the_page(console: Console) -> None:
    """As a network that changes cuts it, once or twice."""
    page = console.signed_in("/workflows/ledger")
    page.click("button", "Start a run of ledger")
    with page.losing("*/workflows/ledger/runs", most=2):
        page.click("button", "Start run")
        run = selected(page)
    assert len({headers(each)["idempotency-key"] for each in page.writes}) == 1
    assert [len(page.lost), len(page.writes)] == [2, 3]
    assert [each["runId"] for each in console.pod.client.get("/runs").json()] == [run]


def test_a_card_goes_with_the_frame_also_when_the_answer_was_lost(console: Console) -> None:
    run = console.pod.start_run("ledger")
    page = console.signed_in(f"/workflows/ledger?run={run}")
    page.click("button", "1 open Gate needs attention")
    unfold(page)
    page.wait("!!document.querySelector('.card')", "the card")
    page.run("window.first = document.querySelector('.card')")
    page.write("spinbutton", "Number", "5")
    with page.losing("*/gates/*"):
        page.click("button", "note")
        page.until(lambda: page.lost, "the lost answer")
        page.wait("!window.first.isConnected && !!document.querySelector('.card')", "the next card")
    assert console.pod.status(run)["context"]["numbers"] == [5]


def test_an_answer_to_an_entry_that_is_over_changes_nothing(console: Console) -> None:
    pod = console.pod
    run = pod.start_run("ledger")
    page = console.signed_in(f"/workflows/ledger?run={run}")
    page.click("button", "1 open Gate needs attention")
    unfold(page)
    page.write("spinbutton", "Number", "5")
    # The same request, with the entry that the page holds, after somebody else was quicker.
    gate = pod.status(run)["gates"][0]["id"]
    note = {"type": "note", "number": 1}
    pod.client.post(f"/runs/{run}/gates/writing/events", json=note).raise_for_status()
    answer = pod.client.post(
        f"/runs/{run}/gates/writing/events",
        json={"type": "note", "number": 5},
        headers={names.HEADER_IF_GATE: gate},
    )
    assert answer.status_code == 412
    page.wait("document.querySelector('details.answer input').value === ''", "the card of the next")
    assert pod.status(run)["context"]["numbers"] == [1]


def test_a_run_is_cancelled_by_a_second_click_alone(console: Console) -> None:
    run = console.pod.start_run("ledger")
    page = console.signed_in(f"/workflows/ledger?run={run}")
    page.click("button", "Cancel run…")
    page.click("button", "Keep it")
    assert console.pod.status(run)["status"] == "active"
    page.click("button", "Cancel run…")
    page.one("button", "Cancel it")
    # The run moves on between the two clicks, and the details are drawn anew.
    gate = console.pod.status(run)["gates"][0]["gate"]
    note = {"type": "note", "number": 70707}
    assert console.pod.client.post(f"/runs/{run}/gates/{gate}/events", json=note).is_success
    page.wait("document.querySelector('.details').innerText.includes('70707')", "the number")
    assert page.run("document.activeElement.textContent") == "Cancel it"
    page.click("button", "Cancel it")
    page.wait("document.querySelector('.details .chip').textContent === 'cancelled'")
    assert console.pod.status(run)["status"] == "cancelled"


def test_a_click_that_a_frame_falls_into_is_one_all_the_same(console: Console) -> None:
    """A run that never rests can be cancelled: what is clicked on stays while all else is drawn anew."""
    run = console.pod.start_run("ledger")
    page = console.signed_in(f"/workflows/ledger?run={run}")
    x, y = page.place("button", "Cancel run…")
    page.mouse("mouseMoved", x, y)
    page.mouse("mousePressed", x, y)
    note = {"type": "note", "number": 70707}
    assert console.pod.client.post(f"/runs/{run}/gates/writing/events", json=note).is_success
    page.wait("document.querySelector('.details').innerText.includes('70707')", "the number")
    page.mouse("mouseReleased", x, y)
    page.one("button", "Cancel it")


def test_a_card_keeps_its_focus_when_the_one_before_it_goes(console: Console) -> None:
    first, second = (console.pod.start_run("ledger") for _ in range(2))
    page = console.signed_in("/workflows/ledger")
    page.click("button", "2 open Gates need attention")
    page.wait("document.querySelectorAll('.card').length === 2", "the cards")
    of = page.run(
        "[...document.querySelectorAll('.card h3 + button')].map((one) => one.textContent)"
    )
    before, after = (first, second) if first[:8] in of[0] else (second, first)
    page.run("document.querySelectorAll('details.answer')[1].open = true")
    page.run("document.querySelectorAll('.card input')[1].focus()")
    page.send("Input.insertText", text="12")
    cancelled = console.pod.client.post(f"/runs/{before}/events", json={"type": "CANCEL"})
    assert cancelled.is_success
    page.wait("document.querySelectorAll('.card').length === 1", "the end of the first")
    page.send("Input.insertText", text="34")
    assert page.run("document.querySelector('.card input').value") == "1234"
    assert page.run("document.querySelector('.card').textContent.includes('" + after[:8] + "')")


def test_a_wrong_token_is_invalid_and_opens_nothing(console: Console) -> None:
    page = console.open()
    for wrong in ("who", "ü token", console.pod.publish_token, console.pod.instance_token + "x"):
        console.give(page, wrong, "invalid")
        assert page.find("button", "Start a run of ledger") == []
        assert page.run("sessionStorage.length") == 0
    console.give(page, console.pod.instance_token, "live")
    assert page.run("sessionStorage.length") == 1
    page.one("button", "Start a run of ledger")
    console.give(page, "", "none")
    page.until(lambda: not page.find("button", "Start a run of ledger"), "the end of the button")
    assert page.run("[sessionStorage.length, localStorage.length, document.cookie]") == [0, 0, ""]


def test_a_token_lives_as_long_as_its_tab(console: Console) -> None:
    page = console.signed_in()
    page.go(console.origin)
    page.wait("document.getElementById('token-state').textContent === 'live'")
    page.one("button", "Start a run of ledger")
    assert state(console.open()) == "none"


def test_a_token_that_is_revoked_makes_an_observer(own_console: Console) -> None:
    pod = own_console.pod
    assert pod.publish(pod.assembly(sources("ledger"))).status_code == 201
    run = pod.start_run("ledger")
    page = own_console.signed_in(f"/workflows/ledger?run={run}")
    page.until(lambda: page.find("button", "1 open Gate needs attention"), "the Gate")
    page.shows("Context")

    own_console.stop()
    page.wait("document.querySelector('.feed').textContent === 'reconnecting'", "the end")
    token = secrets.token_hex(24)
    digest = hashlib.sha256(token.encode()).hexdigest()
    (pod.folder / "values" / names.FILE_INSTANCE_TOKEN_DIGEST).write_text(digest)
    pod.client.headers["Authorization"] = f"Bearer {token}"
    own_console.start()

    page.wait("document.getElementById('token-state').textContent === 'invalid'", "the 401")
    page.wait("document.querySelector('.feed').textContent === 'live'", "the feed")
    page.until(lambda: not page.find("button", "Start a run of ledger"), "the end of the button")
    page.hides("Context")
    assert page.run("document.getElementById('tab-attention').hidden") is True
    assert page.run("sessionStorage.length") == 0
    page.shows(run[:8])
    own_console.give(page, token, "live")
    page.until(lambda: page.find("button", "1 open Gate needs attention"), "the Gate again")
