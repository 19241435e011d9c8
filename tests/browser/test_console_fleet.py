"""The fleet at the left and the picture in the middle, as an observer sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import sources

if TYPE_CHECKING:
    from tests.browser.conftest import Console
    from tests.browser.driver import Page

pytestmark = pytest.mark.timeout(400)

LEDGER_COUNT = "document.querySelector('[data-key=ledger] .live-count').textContent"
DRAWN = "document.querySelector('svg.picture')?.dataset.drawn"


def boxes(page: Page, names: str) -> list[str]:
    """Return the accessible names of the boxes with a class, as they stand in the picture."""
    found = page.run(f"[...document.querySelectorAll('.box.{names}')].map((one) => one.ariaLabel)")
    assert isinstance(found, list)
    return sorted(found)


def rows(page: Page, workflow: str) -> list[str]:
    """Return what the rows of a Workflow's runs say."""
    found = page.run(
        f"[...document.querySelectorAll('[data-key={workflow}] .run')]"
        ".map((one) => [...one.children].map((part) => part.textContent).join(' ').trim())"
    )
    assert isinstance(found, list)
    return found


def test_runs_come_and_go_while_somebody_looks(console: Console) -> None:
    pod = console.pod
    settled_before = pod.start_run("ledger")
    pod.client.post(f"/runs/{settled_before}/events", json={"type": "CANCEL"})
    page = console.open()
    page.shows("ledger")
    page.click("button", "Unfold the runs of ledger")
    page.shows("no live runs")

    run = pod.start_run("ledger")
    page.until(lambda: rows(page, "ledger") == [f"{run[:8]} active"], "the run")
    page.wait(f"{LEDGER_COUNT} === '1'")

    pod.client.post(f"/runs/{run}/events", json={"type": "CANCEL"})
    page.until(lambda: rows(page, "ledger") == [f"{run[:8]} cancelled"], "its end")
    page.wait(f"{LEDGER_COUNT} === '0'")

    page.go(console.origin)
    page.click("button", "Unfold the runs of ledger")
    page.shows("no live runs")
    assert page.said == []


def test_an_observer_has_no_start_no_attention_and_no_context(console: Console) -> None:
    run = console.pod.start_run("approval", {"title": "a secret title"})
    page = console.open(f"/workflows/approval?run={run}")
    page.wait(DRAWN)
    page.shows("A token shows the context, the Gates and the events.")

    assert page.find("button", "Start a run of approval") == []
    assert page.run("document.getElementById('tab-attention').hidden") is True
    assert "a secret title" not in page.text()
    assert "⚑1" not in page.text()
    assert not [each for each in page.requests if "/runs/" in each and "/workflows/" not in each]


def test_the_picture_is_lit_and_the_lights_move(console: Console) -> None:
    pod = console.pod
    run = pod.start_run("approval", {"title": "x"})
    page = console.open(f"/workflows/approval?run={run}")
    page.wait(DRAWN)
    page.until(lambda: "state review, active" in boxes(page, "lit"), "the first light")
    assert boxes(page, "final") == [
        *("final state lapsed", "final state rejected", "final state shipped"),
        "final state signed",
    ]

    approve = {"type": "approve", "by": "sam"}
    pod.client.post(f"/runs/{run}/gates/review/events", json=approve).raise_for_status()
    page.until(
        lambda: (
            boxes(page, "lit:not(.root)")
            == ["child Machine signature, active", "state signing, active", "state waiting, active"]
        ),
        "the lights of the child",
    )
    sign = {"type": "sign", "name": "lee"}
    pod.client.post(f"/runs/{run}/gates/signature.waiting/events", json=sign).raise_for_status()
    page.until(lambda: boxes(page, "lit:not(.root)") == ["final state shipped, active"], "the end")
    assert page.said == []


def test_a_child_machine_folds_by_its_icon_and_a_click_on_a_box_selects_it(
    console: Console,
) -> None:
    page = console.open("/workflows/approval")
    page.wait(DRAWN)
    assert page.find("button", "state waiting")

    page.click("button", "Fold Machine signature")
    page.until(lambda: not page.find("button", "state waiting"), "the fold")
    page.click("button", "child Machine signature")
    page.shows("Child Machine signature")
    assert page.find("button", "state waiting") == []

    page.click("button", "Unfold Machine signature")
    page.click("button", "state waiting")
    page.shows("State waiting")
    page.shows("sign → signed")


def test_states_whose_children_are_known_to_a_run_alone_are_named(console: Console) -> None:
    pod = console.pod
    run = pod.start_run("pair", {"keys": ["a", "b"]})
    page = console.open(f"/workflows/pair?run={run}")
    page.wait(DRAWN)
    page.shows("Opaque states: both.")
    page.until(lambda: "×2" in page.text(), "how many there are")

    pod.client.post(f"/runs/{run}/gates/a.deciding/events", json={"type": "pick"})
    page.until(lambda: "×2" not in page.text(), "one less")
    assert "state deciding, active" in boxes(page, "lit")


def test_the_picture_zooms_and_fits(console: Console) -> None:
    page = console.open("/workflows/approval")
    page.wait(DRAWN)
    percent = "document.querySelector('.percent').textContent"
    fitted = page.run(percent)

    page.click("button", "Zoom in")
    page.wait(f"{percent} !== {fitted!r}")
    page.click("button", "Reset zoom")
    page.wait(f"{percent} === '100%'")
    page.click("button", "Zoom out")
    page.wait(f"{percent} === '80%'")
    page.click("button", "Fit the picture")
    page.wait(f"{percent} === {fitted!r}")


def test_a_large_picture_begins_readable_and_brings_the_run_into_sight(console: Console) -> None:
    pod = console.pod
    run = pod.start_run("chain")
    pod.client.post(f"/runs/{run}/gates/step/events", json={"type": "last"}).raise_for_status()
    page = console.open("/workflows/chain")
    page.wait(DRAWN)
    page.wait("document.querySelector('.percent').textContent === '70%'")
    is_seen = """
      (() => {
        const box = document.querySelector('[data-box="step-29"]').getBoundingClientRect();
        const room = document.getElementById('diagram').getBoundingClientRect();
        return box.bottom <= room.bottom && box.top >= room.top;
      })()
    """
    assert page.run(is_seen) is False
    page.press("[data-key=chain] .run")
    page.wait(is_seen)
    page.click("button", "state step-29, active")
    page.shows("State step-29")


def test_the_keyboard_alone_reads_the_picture(console: Console) -> None:
    page = console.open("/workflows/approval")
    page.wait(DRAWN)
    focused = "document.activeElement.ariaLabel ?? document.activeElement.textContent"

    page.key("Tab", 9)
    assert page.run(focused) == "Skip to the diagram"
    page.enter()
    page.key("Tab", 9)
    assert page.run(focused) == "Machine approval-machine"
    page.key("ArrowDown", 40)
    assert page.run(focused) == "state review"
    page.enter()
    page.shows("State review")
    page.shows("approve → signing")
    page.key("+", 187, "+")
    page.key("0", 48, "0")
    page.wait("document.querySelector('.percent').textContent === '100%'")


def test_a_name_that_nobody_has_is_a_page_too(console: Console) -> None:
    page = console.open("/workflows/no%20such%3Cb%3E")
    page.shows("No Workflow no such<b> is registered.")
    assert page.said == []


def test_an_instance_without_an_assembly_says_so_and_notices_the_first(
    own_console: Console,
) -> None:
    page = own_console.open()
    page.shows("no workflows registered")

    names = [f"ledger{number}" for number in range(9)]
    (ledger,) = sources("ledger").values()
    assembly = own_console.pod.assembly(dict.fromkeys(names, ledger))
    assert own_console.pod.publish(assembly).status_code == 201
    page.hides("no workflows registered")
    page.shows("ledger8")

    # More than a browser has connections for: each is counted all the same, and answers still come.
    for name in names:
        own_console.pod.start_run(name)
        page.click("button", f"Unfold the runs of {name}")
    counts = "[...document.querySelectorAll('.live-count')].map((one) => one.textContent).join('')"
    page.wait(f"{counts} === '{'1' * 9}'")
    own_console.give(page, own_console.pod.instance_token, "live")
    page.until(lambda: page.text().count("⚑1") == 9, "the Gates of all")
    assert page.said == []


@pytest.mark.parametrize("file", ["main.js", "schema.js", "console.css"])
def test_a_page_that_lost_a_file_is_read_again(console: Console, file: str) -> None:
    page = console.signed_in("/workflows/approval")
    with page.losing(f"*/assets/{file}"):
        page.reload()
        page.until(lambda: page.lost, "the loss")
        if file.endswith(".js"):
            page.shows("A file of the Console was lost on its way. It is loaded again.")
    panels = "document.getElementById('panels')"
    styled = f"{panels} !== null && getComputedStyle({panels}).display === 'grid'"
    page.wait(styled, "the style")
    page.wait("document.querySelector('.feed')?.textContent === 'live'", "the feed")
    page.wait(DRAWN)
    page.wait("document.getElementById('token-state').textContent === 'live'", "the token")


def test_a_layout_that_was_lost_is_asked_for_again(console: Console) -> None:
    page = console.open("/")
    with page.losing("*/assets/elk-worker.min.js"):
        page.press("[data-key=approval] a")
        page.shows("The picture is laid out as soon as the Orchestrator answers.")
    page.wait(DRAWN)
    page.hides("The picture is laid out as soon as the Orchestrator answers.")
    assert page.lost
