"""The watch of the two maps, at the wire of the API server."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from jr2.rbac import ORCHESTRATOR_RULES
from jr2_runtime import orchestrator
from jr2_runtime.cluster import Cluster, following
from jr2_runtime.orchestrator.watch import Watches
from tests.waiting import LIMIT

pytestmark = pytest.mark.anyio


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def config_map(name: str, version: int, **data: str) -> dict[str, Any]:
    return {
        "kind": "ConfigMap",
        "metadata": {"name": name, "resourceVersion": str(version)},
        "data": data,
    }


class FakeServer(httpx2.AsyncBaseTransport):
    """Lists and watches ConfigMaps by name; a test feeds each watch line by line."""

    def __init__(self) -> None:
        self.maps: dict[str, dict[str, Any]] = {}
        self.version = 100
        self.requests: list[httpx2.Request] = []
        self.lists: dict[str, int] = {}
        self.watches: dict[str, asyncio.Queue[dict[str, Any] | None]] = {}
        self.from_versions: list[str] = []
        self.fail = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        if self.fail:
            raise httpx2.ConnectError("no route")
        query = request.url.params
        name = query["fieldSelector"].removeprefix("metadata.name=")
        if query.get("watch") != "true":
            self.lists[name] = self.lists.get(name, 0) + 1
            items = [self.maps[name]] if name in self.maps else []
            body = {"metadata": {"resourceVersion": str(self.version)}, "items": items}
            return httpx2.Response(200, json=body)
        self.from_versions.append(query["resourceVersion"])
        lines: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self.watches[name] = lines

        async def content() -> AsyncIterator[bytes]:
            while (event := await lines.get()) is not None:
                yield json.dumps(event).encode() + b"\n"

        return httpx2.Response(200, content=content())

    def say(self, name: str, type_: str, object_: dict[str, Any]) -> None:
        self.watches[name].put_nowait({"type": type_, "object": object_})

    def end(self, name: str) -> None:
        self.watches.pop(name).put_nowait(None)


class Rig:
    def __init__(self, folder: Path) -> None:
        self.server = FakeServer()
        self.watches = Watches()
        self.token = folder / "token"
        self.token.write_text("first\n")
        self.cluster = Cluster(
            url="https://api", namespace="demo", token_file=self.token, ca_file=None
        )

    async def eventually(self, what: Any) -> None:
        async with asyncio.timeout(LIMIT):
            while not what():  # noqa: ASYNC110 - any condition
                await asyncio.sleep(0.002)

    async def watched(self, name: str) -> None:
        await self.eventually(lambda: name in self.server.watches)


@pytest.fixture
async def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    monkeypatch.setattr(following, "FIRST_PAUSE", 0.01)
    made = Rig(tmp_path)
    running = asyncio.ensure_future(made.watches.run(made.cluster, made.server))
    yield made
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_map_is_listed_then_followed(rig: Rig) -> None:
    await rig.watched("jr2-images")
    await rig.watched("jr2-held")
    assert (rig.watches.digests().images, rig.watches.digests().held) == (None, None)
    rig.server.say("jr2-images", "ADDED", config_map("jr2-images", 101, **{"images.json": "{}"}))
    await rig.eventually(lambda: rig.watches.digests().images == sha("{}"))
    rig.server.say("jr2-held", "ADDED", config_map("jr2-held", 102, **{"held.json": "é"}))
    await rig.eventually(lambda: rig.watches.digests().held == sha("é"))
    rig.server.say("jr2-images", "MODIFIED", config_map("jr2-images", 103, other="x"))
    await rig.eventually(lambda: rig.watches.digests().images is None)
    rig.server.say("jr2-held", "DELETED", config_map("jr2-held", 104, **{"held.json": "é"}))
    await rig.eventually(lambda: rig.watches.digests().held is None)


async def test_each_request_names_one_map_and_carries_the_token_of_that_moment(rig: Rig) -> None:
    await rig.watched("jr2-images")
    rig.token.write_text("second\n")
    rig.server.say("jr2-images", "BOOKMARK", {"metadata": {"resourceVersion": "140"}})
    rig.server.end("jr2-images")
    await rig.watched("jr2-images")
    for request in rig.server.requests:
        assert request.url.path == "/api/v1/namespaces/demo/configmaps"
        assert request.url.params["fieldSelector"] in (
            "metadata.name=jr2-images",
            "metadata.name=jr2-held",
        )
    assert rig.server.requests[0].headers["authorization"] == "Bearer first"
    assert rig.server.requests[-1].headers["authorization"] == "Bearer second"
    assert rig.server.requests[-1].url.params["allowWatchBookmarks"] == "true"


async def test_an_ended_watch_resumes_from_its_bookmark(rig: Rig) -> None:
    await rig.watched("jr2-images")
    rig.server.say("jr2-images", "BOOKMARK", {"metadata": {"resourceVersion": "140"}})
    rig.server.end("jr2-images")
    await rig.eventually(lambda: "140" in rig.server.from_versions)
    assert rig.server.lists["jr2-images"] == 1


async def test_an_error_event_lists_again(rig: Rig) -> None:
    await rig.watched("jr2-images")
    rig.server.maps["jr2-images"] = config_map("jr2-images", 150, **{"images.json": "new"})
    rig.server.version = 150
    rig.server.say("jr2-images", "ERROR", {"code": 410, "message": "too old"})
    await rig.eventually(lambda: rig.watches.digests().images == sha("new"))
    assert rig.server.lists["jr2-images"] == 2
    await rig.eventually(lambda: "150" in rig.server.from_versions)


async def test_a_watch_that_ends_without_a_word_lists_again(rig: Rig) -> None:
    await rig.watched("jr2-images")
    rig.server.end("jr2-images")
    await rig.eventually(lambda: rig.server.lists["jr2-images"] == 2)


async def test_a_line_that_is_no_event_lists_again(rig: Rig) -> None:
    await rig.watched("jr2-images")
    rig.server.watches["jr2-images"].put_nowait([1])  # type: ignore[arg-type]
    await rig.eventually(lambda: rig.server.lists["jr2-images"] == 2)


async def test_a_server_that_is_away_is_asked_again_and_what_was_known_stays(rig: Rig) -> None:
    await rig.watched("jr2-images")
    rig.server.say("jr2-images", "ADDED", config_map("jr2-images", 101, **{"images.json": "1"}))
    await rig.eventually(lambda: rig.watches.digests().images == sha("1"))
    rig.server.fail = True
    rig.server.end("jr2-images")
    before = len(rig.server.requests)
    await rig.eventually(lambda: len(rig.server.requests) > before + 2)
    assert rig.watches.digests().images == sha("1")
    rig.server.fail = False
    await rig.watched("jr2-images")


Right = tuple[str, str, str, str | None]
"""Verb, API group, resource, and the one name it is for."""
_RESOURCE = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/[^/]+(?:/namespaces/[^/]+)?/(?P<resource>[^/]+)(?P<rest>/.*)?"
)
_WRITES = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def right(request: httpx2.Request) -> Right:
    """Return what the API server asks RBAC for before it answers a request."""
    parts = _RESOURCE.fullmatch(request.url.path)
    assert parts is not None, request.url.path
    rest: str = parts["rest"] or ""
    name, _, below = rest.removeprefix("/").partition("/")
    selected = request.url.params.get("fieldSelector", "").removeprefix("metadata.name=")
    if request.method == "GET" and name:
        verb = "get"
    elif request.method == "GET":
        verb = "watch" if request.url.params.get("watch") == "true" else "list"
    else:
        verb = _WRITES[request.method]
    resource: str = parts["resource"] + (f"/{below}" if below else "")
    return verb, parts["group"] or "", resource, name or selected or None


async def test_what_is_asked_is_granted_and_what_is_granted_is_asked(rig: Rig) -> None:
    granted: set[Right] = {
        (verb, group, resource, name)
        for rule in ORCHESTRATOR_RULES
        for verb in rule.verbs
        for group in rule.groups
        for resource in rule.resources
        for name in rule.resource_names or (None,)
    }
    for name in ("jr2-images", "jr2-held"):
        await rig.watched(name)
        # Whatever can happen to a watch: it ends, it is too old, the server is away.
        rig.server.say(name, "BOOKMARK", {"metadata": {"resourceVersion": "140"}})
        rig.server.end(name)
        await rig.watched(name)
        rig.server.say(name, "ERROR", {"code": 410, "message": "too old"})
        await rig.eventually(lambda name=name: rig.server.lists[name] == 2)
    asked = {right(request) for request in rig.server.requests}

    assert asked - granted == set(), "asked and not granted"
    assert granted - asked == set(), "granted and never asked"


def test_the_watch_alone_asks_the_api_server() -> None:
    """So what the rig above sees is everything that the Orchestrator asks."""
    package = Path(str(orchestrator.__file__)).parent
    clients = re.compile(
        r"^\s*(?:import|from) (?:httpx2?|lightkube|urllib|http\.client|aiohttp)", re.M
    )
    found = {
        str(file.relative_to(package))
        for file in package.rglob("*.py")
        if clients.search(file.read_text())
    }
    assert found == {"watch.py"}


def test_outside_of_a_cluster_nothing_is_watched(tmp_path: Path) -> None:
    inside = {"KUBERNETES_SERVICE_HOST": "fd00::1", "JR2_NAMESPACE": "demo"}
    assert Cluster.find(inside, tmp_path) is None
    (tmp_path / "token").write_text("t")
    found = Cluster.find(inside, tmp_path)
    assert found is not None
    assert (found.url, found.namespace) == ("https://[fd00::1]:443", "demo")
    assert Cluster.find({}, tmp_path) is None
    assert Cluster.find({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path) is None
