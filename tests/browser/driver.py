"""A browser that a test drives as a person does: by role and accessible name, mouse and keys.

Chromium is spoken to through two pipes (its DevTools protocol), so that no port is open and no
program stands between. Each page has a profile of its own, and remembers what it asked for, what
its console said and which scripts failed.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import math
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DEADLINE = 90.0
"""Seconds that something may take on a machine that is busy."""

_LEFT = ("navigated", "execution context", "Execution context", "context with specified id")
"""What the protocol says when the page is another one by now, or not yet the next one."""
_HEAR = """function () {
  this.isHit = false;
  const hear = (event) => { this.isHit ||= event.composedPath().includes(this); };
  addEventListener("click", hear, { capture: true, once: true });
}"""


class Gone(Exception):
    """The browser ended, or did not answer in time."""


class Navigated(AssertionError):
    """The page was left while something was asked of it."""


class Browser:
    """One Chromium; `close` ends it.

    Args:
        folder: for its profile.
    """

    def __init__(self, folder: Path) -> None:
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        assert program is not None, "these tests need chromium on PATH: scripts/test installs it"
        (read, self._write), (self._read, write) = os.pipe(), os.pipe()
        # The protocol is spoken on 3 and 4, so its ends must not be one of the two yet.
        in_read, out_write = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (read, write))
        self._process = subprocess.Popen(
            [
                *("bash", "-c", f'exec "$@" 3<&{in_read} 4>&{out_write}', "bash"),
                *(program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
                *(
                    "--remote-debugging-pipe",
                    f"--user-data-dir={folder}",
                    "--disable-dev-shm-usage",
                ),
                *("--disable-background-networking", "--disable-component-update", "about:blank"),
            ],
            pass_fds=(in_read, out_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for end in (in_read, out_write, read, write):
            os.close(end)
        self._rest = b""
        self._number = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._pages: dict[str, Page] = {}

    def send(self, method: str, session: str | None = None, /, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + DEADLINE
        while number not in self._answers:
            if not self.listen(end - time.monotonic()):
                raise Gone(f"{method} was not answered")
        answer = self._answers.pop(number)
        if "error" in answer:
            said = answer["error"]["message"]
            kind = Navigated if any(each in said for each in _LEFT) else AssertionError
            raise kind(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def tell(self, method: str, session: str, /, **parameters: Any) -> None:
        """Call a method of the protocol, and wait for no result."""
        self._number += 1
        message = {
            "id": self._number,
            "method": method,
            "params": parameters,
            "sessionId": session,
        }
        os.write(self._write, json.dumps(message).encode() + b"\0")

    def listen(self, seconds: float) -> bool:
        """Take what has come; return whether something had within the time."""
        ready, _, _ = select.select([self._read], [], [], max(0.0, seconds))
        if not ready:
            return False
        piece = os.read(self._read, 2**20)
        if not piece:
            raise Gone("the browser has ended")
        *messages, self._rest = (self._rest + piece).split(b"\0")
        for text in messages:
            message = json.loads(text)
            if "id" in message:
                self._answers[message["id"]] = message
            elif message.get("sessionId") in self._pages:
                self._pages[message["sessionId"]].hear(message["method"], message["params"])
        return True

    def open(self, url: str, *, width: int = 1440, height: int = 900, dark: bool = False) -> Page:
        """Open an address in a page with a profile of its own."""
        context = self.send("Target.createBrowserContext")["browserContextId"]
        target = self.send("Target.createTarget", url="about:blank", browserContextId=context)
        session = self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        page = Page(self, session["sessionId"], context)
        self._pages[session["sessionId"]] = page
        for domain in ("Page", "Network", "Runtime", "Log", "DOM", "Accessibility"):
            page.send(f"{domain}.enable")
        page.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        page.send(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        page.go(url)
        return page

    @contextlib.contextmanager
    def closing_pages(self) -> Iterator[None]:
        """Close what is opened within the block: a page asks the Orchestrator on and on."""
        before = set(self._pages)
        yield
        for session in self._pages.keys() - before:
            self._pages.pop(session).close()

    def close(self) -> None:
        """End the browser and wait for it."""
        with contextlib.suppress(Gone, OSError):
            os.write(self._write, b'{"id":0,"method":"Browser.close"}\0')
        try:
            self._process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)


@dataclass
class Page:
    """One page, and what it did."""

    browser: Browser
    session: str
    context: str
    requests: list[str] = field(default_factory=list)
    """The addresses that it asked for."""
    writes: list[dict[str, Any]] = field(default_factory=list)
    """Its requests that are no reads, as the protocol tells them, with their headers."""
    lost: list[str] = field(default_factory=list)
    """The addresses of which an answer was lost on its way."""
    to_lose: float = 0
    """How many more answers are lost."""
    said: list[str] = field(default_factory=list)
    """Errors of its scripts, of its console and of its policy."""

    def send(self, method: str, /, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol for this page."""
        return self.browser.send(method, self.session, **parameters)

    def hear(self, event: str, given: dict[str, Any]) -> None:
        """Remember an event of the protocol."""
        if event == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
            if given["request"]["method"] != "GET":
                self.writes.append(given["request"])
        elif event == "Fetch.requestPaused" and self.to_lose <= 0:
            paused = given["requestId"]
            self.browser.tell("Fetch.continueRequest", self.session, requestId=paused)
        elif event == "Fetch.requestPaused":
            self.to_lose -= 1
            self.lost.append(given["request"]["url"])
            self.browser.tell(
                "Fetch.failRequest",
                self.session,
                requestId=given["requestId"],
                errorReason="ConnectionReset",
            )
        elif event == "Network.webSocketCreated":
            self.requests.append(given["url"])
        elif event == "Runtime.exceptionThrown":
            self.said.append(json.dumps(given["exceptionDetails"])[:2000])
        elif event == "Runtime.consoleAPICalled" and given["type"] in (
            "error",
            "warning",
            "assert",
        ):
            self.said.append(json.dumps(given["args"])[:2000])
        elif event == "Log.entryAdded" and given["entry"]["source"] in ("security", "javascript"):
            self.said.append(given["entry"]["text"])
        elif event == "Page.javascriptDialogOpening":
            self.said.append(f"dialog: {given['message']}")
            self.browser.tell("Page.handleJavaScriptDialog", self.session, accept=False)

    def go(self, url: str) -> None:
        """Load an address; what is asked of the page from now on is asked of the new one."""
        self._leave("Page.navigate", url=url)

    def reload(self) -> None:
        """Load the page again; what is asked of it from now on is asked of the new one."""
        self._leave("Page.reload")

    def _leave(self, method: str, **parameters: Any) -> None:
        self.wait("globalThis.isOld = true", "the old page")
        self.send(method, **parameters)
        self.wait(
            "globalThis.isOld === undefined && document.readyState === 'complete'", "the page"
        )

    def run(self, script: str) -> Any:
        """Return what an expression of JavaScript gives, as JSON."""
        answer = self.send(
            "Runtime.evaluate",
            expression=script,
            returnByValue=True,
            awaitPromise=True,
            allowUnsafeEvalBlockedByCSP=False,
        )
        if "exceptionDetails" in answer:
            raise AssertionError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def until(self, what: Callable[[], Any], why: str) -> Any:
        """Return the first answer that is neither `None` nor false."""
        end = time.monotonic() + DEADLINE
        while True:
            found = None
            with contextlib.suppress(Navigated):  # a page that reads itself again
                found = what()
            if found:
                return found
            if time.monotonic() > end:
                raise AssertionError(f"{why} did not come; the page shows:\n{self.text()}")
            self.browser.listen(0.05)

    def wait(self, script: str, why: str = "") -> Any:
        """Wait until an expression is true; one that reads what is not drawn yet is not."""

        def is_true() -> Any:
            try:
                return self.run(script)
            except AssertionError as failed:
                if "TypeError: Cannot read properties of null" in str(failed):
                    return None
                raise

        return self.until(is_true, why or script)

    def text(self) -> str:
        """Return what a person reads on the page."""
        return str(self.run("document.body ? document.body.innerText : ''"))

    def shows(self, text: str) -> None:
        """Wait until a text is on the page."""
        self.until(lambda: text in self.text(), repr(text))

    def hides(self, text: str) -> None:
        """Wait until a text is no longer on the page."""
        self.until(lambda: text not in self.text(), f"the end of {text!r}")

    @contextlib.contextmanager
    def losing(self, pattern: str, most: float = math.inf) -> Iterator[None]:
        """Lose answers to requests whose address fits a pattern: they were done all the same.

        Args:
            pattern: an address with `*` for any text.
            most: how many answers are lost; those after them come.
        """
        self.to_lose = most
        patterns = [{"urlPattern": pattern, "requestStage": "Response"}]
        self.send("Fetch.enable", patterns=patterns)
        yield
        self.send("Fetch.disable")

    # --- what a person does -----------------------------------------------------------------------
    def find(self, role: str, name: str) -> list[int]:
        """Return the elements of a role and an accessible name, as they stand in the page."""
        root = self.send("DOM.getDocument", depth=0)["root"]["nodeId"]
        found = self.send("Accessibility.queryAXTree", nodeId=root, role=role, accessibleName=name)[
            "nodes"
        ]
        return [each["backendDOMNodeId"] for each in found if not each.get("ignored")]

    def one(self, role: str, name: str) -> int:
        """Wait until there is exactly one element of a role and a name."""
        found: list[int] = self.until(
            lambda: (found := self.find(role, name)) and len(found) == 1 and found,
            f"one {role} {name!r}",
        )
        return found[0]

    def place(self, role: str, name: str) -> tuple[float, float]:
        """Return the middle of the one element of a role and a name, once it stays where it is."""
        before: list[tuple[float, float]] = []

        def middle() -> tuple[float, float] | None:
            # A page that draws itself anew may have replaced it since it was found.
            try:
                element = self.one(role, name)
                self.send("DOM.scrollIntoViewIfNeeded", backendNodeId=element)
                (quad, *_) = self.send("DOM.getContentQuads", backendNodeId=element)["quads"]
            except (AssertionError, ValueError):
                return None
            before.append((sum(quad[0::2]) / 4, sum(quad[1::2]) / 4))
            return before[-1] if before[-1:] == before[-2:-1] else None

        found: tuple[float, float] = self.until(middle, f"the place of {role} {name!r}")
        return found

    def click(self, role: str, name: str) -> None:
        """Click on the one element of a role and a name, as often as it has moved from under it."""

        def is_hit() -> bool:
            x, y = self.place(role, name)
            try:
                element = self.send("DOM.resolveNode", backendNodeId=self.one(role, name))
                handle = element["object"]["objectId"]
                self._call(handle, _HEAR)
            except AssertionError:  # it was drawn anew meanwhile
                return False
            self.click_at(x, y)
            try:
                return bool(self._call(handle, "function () { return this.isHit; }"))
            except AssertionError:  # the click led to another page
                return True

        self.until(is_hit, f"the click on {role} {name!r}")

    def _call(self, handle: str, function: str) -> Any:
        """Call a function of JavaScript on an element, and return what it gives."""
        answer = self.send(
            "Runtime.callFunctionOn",
            objectId=handle,
            functionDeclaration=function,
            returnByValue=True,
        )
        return answer["result"].get("value")

    def click_at(self, x: float, y: float) -> None:
        """Click on a place."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.mouse(kind, x, y)

    def mouse(self, kind: str, x: float, y: float) -> None:
        """Move the mouse to a place, or press or release its button there."""
        pressed = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **pressed)

    def press(self, selector: str) -> None:
        """Click, wherever it stands, on the first element that a selector finds, once there is one."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.wait(f"((one) => one !== null && (one.click(), true))({found})", selector)

    def write(self, role: str, name: str, text: str) -> None:
        """Put a text into a field in place of what it holds."""

        def has_focus() -> bool:
            try:
                self.send("DOM.focus", backendNodeId=self.one(role, name))
            except AssertionError:  # it was drawn anew since it was found
                return False
            return True

        self.until(has_focus, f"the focus of {role} {name!r}")
        self.run("document.activeElement.select()")
        if text:
            self.send("Input.insertText", text=text)
        else:
            self.key("Delete", 46)

    def key(self, key: str, code: int, text: str = "") -> None:
        """Press and release one key.

        Args:
            key: its name, as an event's `key`.
            code: its virtual key code.
            text: what it writes.
        """
        for kind in ("keyDown", "keyUp"):
            written = {"text": text} if text and kind == "keyDown" else {}
            self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                windowsVirtualKeyCode=code,
                **written,
            )

    def enter(self) -> None:
        """Press the Enter key."""
        self.key("Enter", 13, "\r")

    def photograph(self, path: Path) -> None:
        """Write a picture of the page."""
        data = self.send("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        """Close the page with its profile."""
        self.browser.send("Target.disposeBrowserContext", browserContextId=self.context)


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser for the length of the block."""
    made = Browser(folder)
    try:
        yield made
    finally:
        made.close()
