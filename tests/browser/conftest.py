"""A real browser: Mermaid in it, as a pull request shows a Chart, and the Console.

The Console is that of a real Orchestrator with a real worker, both as plain processes. Chromium comes from the distribution (`scripts/test` installs it); Mermaid is one file of its
package, pinned by its hash and kept below the home folder.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.browser.driver import Browser, Page
from tests.browser.driver import browser as opened_browser
from tests.chaos.conftest import Pod, opened

VERSION = "12.3.0"
INTEGRITY = "sha512-4113TdXeLAsMruJ79OpFL5O8+LTFXhQqZ260rF3tgUmiNAtRm4Uume04I+65PRN6yZ69J4f8rVYWW8zRk65UYw=="
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jr2"
PAGE = """<!doctype html><meta charset="utf-8"><div id="picture"></div><pre id="said"></pre>
<script src="mermaid.min.js"></script><script>
const text = %s;
const said = document.getElementById("said");
const texts = (what) => [...document.querySelectorAll(what)].map((one) => one.textContent.trim());
mermaid.initialize({ startOnLoad: false, securityLevel: "strict" });
mermaid
  .parse(text)
  .then(() => mermaid.render("chart", text))
  .then(({ svg }) => {
    document.getElementById("picture").innerHTML = svg;
    const edges = texts("#picture .edgeLabel .label").filter((one) => one);
    const words = texts("#picture .nodeLabel, #picture .cluster-label, #picture .label");
    const scripts = document.querySelectorAll("#picture script, #picture [onclick]").length;
    said.textContent = JSON.stringify({ edges, words, scripts });
  })
  .catch((error) => (said.textContent = JSON.stringify({ error: String(error) })));
</script>
"""


@dataclass(frozen=True)
class Picture:
    """What stands in the picture: the labels of its edges, and all of its texts."""

    edges: list[str]
    words: list[str]


Render = Callable[[str], Picture]


@pytest.fixture(scope="session")
def mermaid() -> Path:
    """The one file of Mermaid that a page loads."""
    place = CACHE / f"mermaid-{VERSION}"
    program = place / "mermaid.min.js"
    if not program.exists():
        place.mkdir(parents=True, exist_ok=True)
        packed = ["npm", "pack", f"mermaid@{VERSION}", "--silent", "--pack-destination", "."]
        subprocess.run(packed, check=True, cwd=place, stdout=subprocess.DEVNULL)
        archive = place / f"mermaid-{VERSION}.tgz"
        digest = hashlib.sha512(archive.read_bytes()).digest()
        assert f"sha512-{base64.b64encode(digest).decode()}" == INTEGRITY
        with tarfile.open(archive) as packages:
            held = packages.extractfile("package/dist/mermaid.min.js")
            assert held is not None
            written = place / f"{os.getpid()}.tmp"
            written.write_bytes(held.read())
        written.replace(program)
        archive.unlink()
    return program


@pytest.fixture
def render(tmp_path: Path, mermaid: Path) -> Render:
    """Render a Chart, or fail with what Mermaid says."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    assert browser is not None, "these tests need chromium on PATH: scripts/test installs it"
    (tmp_path / "mermaid.min.js").symlink_to(mermaid)

    def one(text: str) -> Picture:
        page = tmp_path / "page.html"
        page.write_text(PAGE % json.dumps(text).replace("<", "\\u003c"), encoding="utf-8")
        done = subprocess.run(
            [
                *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
                *("--virtual-time-budget=60000", f"--user-data-dir={tmp_path / 'profile'}"),
                page.as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=100,
            check=True,
        )
        found = re.search(r'<pre id="said">(.*?)</pre>', done.stdout, re.S)
        assert found is not None
        assert found[1], "the page did not end in its time"
        said = json.loads(html.unescape(found[1]))
        assert "error" not in said, said["error"]
        assert said["scripts"] == 0
        return Picture(edges=said["edges"], words=said["words"])

    return one


WORKFLOWS = Path(__file__).parent / "workflows"
CHAOS = Path(__file__).parents[1] / "chaos" / "workflows"


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests; each page has a profile of its own."""
    with opened_browser(tmp_path_factory.mktemp("chromium")) as made:
        yield made


@dataclass
class Console:
    """A real Orchestrator, and pages of it."""

    pod: Pod
    browser: Browser
    orchestrator: subprocess.Popen[bytes]

    def stop(self) -> None:
        """End the Orchestrator as the kubelet does."""
        self.orchestrator.terminate()
        self.orchestrator.wait(timeout=60)

    def start(self) -> None:
        """Start the Orchestrator again, on the same port."""
        self.orchestrator = self.pod.start_orchestrator()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.pod.port}"

    def open(self, path: str = "/", *, token: str | None = None, **how: Any) -> Page:
        """Open a page, and give it a token when there is one to give."""
        page = self.browser.open(f"{self.origin}{path}", **how)
        page.wait("document.querySelector('.feed')?.textContent === 'live'", "the feed")
        if token is not None:
            self.give(page, token, "live")
        return page

    def give(self, page: Page, token: str, state: str) -> None:
        """Write a token into the field, and wait for what becomes of it."""
        page.write("textbox", "Instance token", token)
        page.enter()
        page.wait(f"document.getElementById('token-state').textContent === '{state}'")

    def signed_in(self, path: str = "/", **how: Any) -> Page:
        """Open a page with the Instance token."""
        return self.open(path, token=self.pod.instance_token, **how)


def sources(*names: str) -> dict[str, str]:
    """Return the Workflows of this folder, and of the chaos tests, by name."""
    found = {}
    for name in names:
        place = WORKFLOWS / f"{name}.py"
        found[name] = (place if place.exists() else CHAOS / f"{name}.py").read_text()
    return found


@pytest.fixture(scope="module")
def served_console(chromium: Browser) -> Iterator[Console]:
    """An Orchestrator with a few Workflows, for all tests of a module."""
    with opened() as pod:
        pod.start_worker()
        orchestrator = pod.start_orchestrator()
        published = pod.publish(
            pod.assembly(sources("approval", "chain", "ledger", "pair", "review"))
        )
        assert published.status_code == 201, published.text
        yield Console(pod, chromium, orchestrator)


@pytest.fixture
def console(served_console: Console) -> Iterator[Console]:
    """The Orchestrator of the module; no run of a test is live in the next one."""
    with served_console.browser.closing_pages():
        yield served_console
    for run in served_console.pod.client.get("/runs").json():
        served_console.pod.client.post(f"/runs/{run['runId']}/events", json={"type": "CANCEL"})


@pytest.fixture
def own_console(chromium: Browser) -> Iterator[Console]:
    """An Orchestrator of the test's own, with no Assembly."""
    with opened() as pod, chromium.closing_pages():
        pod.start_worker()
        yield Console(pod, chromium, pod.start_orchestrator())
