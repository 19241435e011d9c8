"""The addresses of the Console: what they answer, to whom, and with which headers."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

import pytest

from jr2_runtime import console

pytestmark = pytest.mark.anyio

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
JSON = {"Accept": "application/json"}
PAGES = ("/", "/workflows/gate", "/workflows/nobody", "/workflows/%3Cscript%3E", "/workflows/a%20b")


async def test_every_address_gives_a_browser_the_same_page(bench: Any) -> None:
    bodies = set()
    for path in PAGES:
        answer = await bench.client.get(path, headers=BROWSER)
        assert answer.status_code == 200, path
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["vary"] == "Accept"
        bodies.add(answer.content)

    assert bodies == {console.load()[console.SHELL].body}


@pytest.mark.parametrize("headers", [{}, JSON, {"Accept": "*/*"}, {"Accept": "text/event-stream"}])
async def test_every_other_dialect_is_json(bench: Any, headers: dict[str, str]) -> None:
    root = await bench.client.get("/", headers=headers)
    assert (root.status_code, list(root.json())) == (404, ["error"])

    door = await bench.client.get("/workflows/gate", headers=headers)
    assert door.status_code == 200
    assert door.json()["name"] == "gate"
    assert door.headers["vary"] == "Accept"

    nobody = await bench.client.get("/workflows/nobody", headers=headers)
    assert (nobody.status_code, list(nobody.json())) == (404, ["error"])


async def test_a_page_is_for_the_orchestrators_own_names_alone(bench: Any) -> None:
    for path in ("/", "/assets/main.js", "/workflows/gate"):
        answer = await bench.client.get(path, headers={**BROWSER, "Host": "evil.example"})
        assert (answer.status_code, list(answer.json())) == (421, ["error"])


async def test_page_and_files_are_sent_with_strict_headers(bench: Any) -> None:
    for path in ("/", *(f"/assets/{name}" for name in console.load() if name != console.SHELL)):
        answer = await bench.client.get(path, headers=BROWSER)
        assert answer.status_code == 200, path
        policy = dict(
            part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; ")
        )
        assert policy["default-src"] == "'none'"
        assert policy["frame-ancestors"] == "'none'"
        assert policy["base-uri"] == "'none'"
        assert policy["form-action"] == "'none'"
        assert policy["require-trusted-types-for"] == "'script'"
        fetched = {kind: value for kind, value in policy.items() if kind.endswith("-src")}
        scripts = fetched.pop("script-src")
        assert set(fetched.values()) == {"'none'", "'self'"}
        assert re.fullmatch(r"'self' 'sha256-[A-Za-z0-9+/]{43}='", scripts)
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-cache"


MEDIA = {
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}


async def test_each_file_has_its_type_and_is_sent_once(bench: Any) -> None:
    for name, asset in console.load().items():
        if name == console.SHELL:
            continue
        first = await bench.client.get(f"/assets/{name}")
        assert (first.status_code, first.content) == (200, asset.body)
        assert first.headers["content-type"] == MEDIA[name.rpartition(".")[2]]

        for known in (first.headers["etag"], f'"x", W/{first.headers["etag"]}'):
            again = await bench.client.get(f"/assets/{name}", headers={"If-None-Match": known})
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["etag"] == first.headers["etag"]
            assert again.headers["x-content-type-options"] == "nosniff"
        other = await bench.client.get(f"/assets/{name}", headers={"If-None-Match": '"other"'})
        assert other.status_code == 200


def test_no_two_files_have_one_etag() -> None:
    assets = console.load()

    assert len({each.etag for each in assets.values()}) == len(assets)


@pytest.mark.parametrize(
    "path",
    [
        "/assets/",
        "/assets",
        "/assets/index.html",
        "/assets/nothing.js",
        "/assets/files.py",
        "/assets/..%2ffiles.py",
        "/assets/%2e%2e%2f__init__.py",
        "/assets/../console/files.py",
        "/assets/static/main.js",
        "/assets/./main.js/",
        "/assets/main.js%00",
        "/assets/%2Fetc%2Fpasswd",
        "/assets/..\\files.py",
        "/assets/MAIN.JS",
        "/assets/__pycache__",
    ],
)
async def test_nothing_but_a_file_of_the_table_is_found(bench: Any, path: str) -> None:
    answer = await bench.client.get(path, headers=BROWSER)

    assert (answer.status_code, list(answer.json())) == (404, ["error"])


def test_the_page_names_files_of_its_own_alone_and_holds_one_script() -> None:
    assets = console.load()
    page = assets[console.SHELL].body.decode()

    named = re.findall(r'(?:src|href)="(?!#)([^"]*)"', page)
    assert named
    assert all(each.removeprefix("/assets/") in assets for each in named)
    assert re.search(r"<head>\s*<script>", page), "a page that is cut before it is never read again"
    (script,) = re.findall(r"<script(?![^>]* src=)[^>]*>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in console.security(page.encode())["Content-Security-Policy"]
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=", page) == []
