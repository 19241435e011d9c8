"""Texts stay texts, and nothing leaves the origin; and every control has a name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import sources

if TYPE_CHECKING:
    from tests.browser.conftest import Console
    from tests.browser.driver import Page

pytestmark = pytest.mark.timeout(400)

ATTACK = '<img src=x onerror="globalThis.pwned=1"><script>globalThis.pwned=1</script>'
NAMES = {
    "hostile-machine": "<script>globalThis.pwned=1</script>",
    "hostile-state": "<svg onload=globalThis.pwned=1>",
    "hostile-end": "</text></svg><script>globalThis.pwned=1</script>",
    "hostile_event": '"><img src=x onerror=globalThis.pwned=1>',
}
"""What a build refuses as a name, and a store that was tampered with says all the same."""
ELSEWHERE = "http://127.0.0.1:1/x"
DRAWN = "document.querySelector('svg.picture')?.dataset.drawn"
FOREIGN = """
  [...document.querySelectorAll('img, script, iframe, svg, object, embed, link, style, a, [style]')]
    .filter((one) => !one.matches('header img, head *, svg.picture, header a, #fleet a, .skip'))
    .length
"""


def unfold(page: Page) -> None:
    """Open the form of the first event on the first card."""
    page.press("details.answer > summary")


def tamper(console: Console) -> None:
    """Have the store say names that no build lets through."""
    for plain, hostile in NAMES.items():
        quoted = json.dumps(hostile)[1:-1]
        for table, column in (("assemblies", "workflows"), ("runs", "view")):
            console.pod.change_store(
                f"UPDATE {table} SET {column} = replace({column}, ?, ?)",
                (plain, quoted),
            )


def is_inert(console: Console, page: Page) -> None:
    assert page.run("globalThis.pwned") is None
    assert page.run(FOREIGN) == 0
    assert (
        page.run("[...document.querySelectorAll('*')].some((one) => one.onerror || one.onload)")
        is False
    )
    assert page.said == []
    assert {each for each in page.requests if not each.startswith(f"{console.origin}/")} == set()
    assert not [each for each in page.requests if each.endswith("/x")]


def test_hostile_texts_are_shown_as_texts(own_console: Console) -> None:
    pod = own_console.pod
    assert pod.publish(pod.assembly(sources("hostile"))).status_code == 201
    run = pod.start_run("hostile")
    own_console.stop()
    tamper(own_console)
    own_console.start()

    page = own_console.signed_in(f"/workflows/hostile?run={run}")
    page.wait(DRAWN)
    page.shows(NAMES["hostile-machine"])
    page.shows(NAMES["hostile-state"])
    page.shows(ATTACK)
    is_inert(own_console, page)

    page.click("button", f"state {NAMES['hostile-state']}, active, waits at a Gate")
    page.shows(f"State {NAMES['hostile-state']}")
    is_inert(own_console, page)

    page.click("button", "1 open Gate needs attention")
    page.shows("⚑ <img src=x onerror=globalThis.pwned=1>")
    unfold(page)
    page.shows("javascript:globalThis.pwned=1")
    is_inert(own_console, page)

    page.click("button", "Start a run of hostile")
    page.wait("!!document.querySelector('dialog')", "the form")
    is_inert(own_console, page)


def test_a_hostile_address_is_a_text_too(console: Console) -> None:
    page = console.open(
        "/workflows/%3Cimg%20src%3Dx%20onerror%3DglobalThis.pwned%3D1%3E?run=%3Cscript%3E"
    )
    page.shows("No Workflow <img src=x onerror=globalThis.pwned=1> is registered.")
    is_inert(console, page)


def test_the_policy_stops_markup_scripts_frames_and_other_origins(console: Console) -> None:
    """What the page never tries is refused by the browser as well."""
    page = console.open()
    page.run(
        "globalThis.stopped = [];"
        "document.addEventListener('securitypolicyviolation',"
        " (event) => stopped.push(event.effectiveDirective))"
    )
    for attempt in (
        "document.body.innerHTML = '<b>x</b>'",
        "document.body.insertAdjacentHTML('beforeend', '<b>x</b>')",
        "new DOMParser().parseFromString('<b>x</b>', 'text/html')",
        "document.createElement('script').text = '1'",
        "document.createElement('script').src = '/x.js'",
        "eval('1')",
        "new Function('return 1')()",
        "new Worker('data:text/javascript,1')",
        "trustedTypes.createPolicy('other', {})",
    ):
        refused = f"(() => {{ try {{ {attempt}; return false }} catch {{ return true }} }})()"
        assert page.run(refused) is True, attempt
    page.run(f"fetch('{ELSEWHERE}').catch(() => 0)")
    for tag in ("img", "iframe"):
        page.run(
            f"document.body.append(Object.assign(document.createElement('{tag}'), "
            f"{{src: '{ELSEWHERE}'}}))"
        )
    page.run("document.body.setAttribute('style', 'color: red')")
    for directive in ("connect-src", "img-src", "frame-src", "style-src-attr"):
        page.wait(f"stopped.includes('{directive}')")


def test_every_control_has_a_name(console: Console) -> None:
    run = console.pod.start_run("approval", {"title": "named"})
    page = console.signed_in(f"/workflows/approval?run={run}")
    page.wait(DRAWN)
    page.click("button", "1 open Gate needs attention")
    page.click("button", "Start a run of approval")
    page.wait("!!document.querySelector('dialog')", "the form")
    nodes = page.send("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "link", "textbox", "spinbutton", "checkbox", "combobox", "tab", "dialog"}
    controls = [
        (each["role"]["value"], each.get("name", {}).get("value", ""))
        for each in nodes
        if not each["ignored"] and each["role"]["value"] in roles
    ]
    assert len(controls) > 5
    assert [control for control in controls if not control[1].strip()] == []


def test_a_light_and_a_dark_page(console: Console) -> None:
    colours = {}
    for dark in (False, True):
        page = console.open("/workflows/approval", dark=dark)
        page.wait(DRAWN)
        colours[dark] = page.run(
            "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
        )
    assert colours[False] != colours[True]
    assert len({colour for pair in colours.values() for colour in pair}) == 4
