"""What the dynamic providers do, against an API server and an Orchestrator that speak HTTP."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from jr2 import names, signed
from jr2.errors import Refusal, StepFailed
from jr2.tree_hash import Entry
from jr2_infra.api import Api
from jr2_infra.assembly import write_parcel
from jr2_infra.steps import nothing_more, publish
from jr2_infra.steps.surroundings import (
    SETTING_HELD_DIGEST,
    SETTING_IMAGES_DIGEST,
    SETTING_OBJECTS,
    SETTING_PARCEL,
    SETTING_WORKFLOWS,
    Surroundings,
)
from tests.far_side import FarSide, Quiet

ASSEMBLY = "ab" * 32
OLDER = "cd" * 32
SIGNING_KEY = "A" * 43
PATH = "/apis/apps/v1/namespaces/demo/deployments/jr2-orchestrator"


class Lease:
    """Counts how often a step asked whether it may write; it is lost after some of them."""

    def __init__(self, lost_after: int = 100) -> None:
        self.asked = 0
        self._lost_after = lost_after

    def __call__(self) -> None:
        self.asked += 1
        if self.asked > self._lost_after:
            raise StepFailed("another `jr2 up` took over")


class FakeApi:
    """An API server with one Deployment and the Instance's Secret."""

    def __init__(self) -> None:
        self.version, self.generation = 7, 3
        self.patches: list[Any] = []
        self.bumps = 0
        self.edits = False
        self.deleted: list[Any] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/secrets/jr2-instance"):
            values = {
                names.KEY_INSTANCE_TOKEN: "read-me",
                names.KEY_PUBLISH_TOKEN: "publish-me",
                names.KEY_SIGNING_KEY: SIGNING_KEY,
            }
            data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
            return httpx2.Response(200, json={"data": data})
        if request.method == "DELETE":
            self.deleted.append(json.loads(request.content)["preconditions"])
            return httpx2.Response(200, json={})
        if request.method == "GET" and self.deleted:
            return httpx2.Response(404, json={})
        if request.method == "PATCH":
            operations = json.loads(request.content)
            self.patches.append(operations)
            if self.bumps:
                self.bumps -= 1
                self.version += 1
                self.generation += self.edits
            if operations[0]["value"] != str(self.version):
                return httpx2.Response(422, json={"message": "test failed"})
            return httpx2.Response(200, json={})
        metadata = {"resourceVersion": str(self.version), "generation": self.generation}
        return httpx2.Response(200, json={"metadata": metadata})


@pytest.fixture
def fake() -> FakeApi:
    return FakeApi()


def surroundings(fake: FakeApi, said: list[str], **changed: Any) -> Surroundings:
    client = httpx2.Client(base_url="http://api", transport=httpx2.MockTransport(fake))
    given: dict[str, Any] = {
        "api": Api(client),
        "kubectl": Path("/nowhere"),
        "kubeconfig": Path("/nowhere"),
        "namespace": "demo",
        "check_lease": Lease(),
        "lease": "2026-01-01T00:00:00.000000Z nonce",
        "say": said.append,
        "progress": lambda _: None,
        "settings": {},
    }
    return Surroundings(**{**given, **changed})


def healing(**changed: str) -> dict[str, str]:
    operations = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "remove", "path": "/spec/template/spec/containers/2"},
    ]
    return {
        "object": "Deployment jr2-orchestrator",
        "path": PATH,
        "patch": json.dumps(operations),
        "generation": "3",
        **changed,
    }


def test_what_is_more_is_taken_away_under_the_lease(fake: FakeApi) -> None:
    around = surroundings(fake, [])
    nothing_more.take_away(healing(), around)
    assert fake.patches == [json.loads(healing()["patch"])]
    assert isinstance(around.check_lease, Lease)
    assert around.check_lease.asked == 1


def test_a_status_that_moves_is_no_other_object(fake: FakeApi) -> None:
    fake.bumps = 2
    nothing_more.take_away(healing(), surroundings(fake, []))
    assert [patch[0]["value"] for patch in fake.patches] == ["7", "8", "9"]
    assert all(patch[1]["op"] == "remove" for patch in fake.patches)


def test_a_lease_that_is_lost_between_two_tries_stops_the_step(fake: FakeApi) -> None:
    fake.bumps = 2
    around = dataclasses.replace(surroundings(fake, []), check_lease=Lease(lost_after=1))
    with pytest.raises(StepFailed, match="took over"):
        nothing_more.take_away(healing(), around)
    assert len(fake.patches) == 1


def test_an_object_that_was_changed_again_is_not_touched(fake: FakeApi) -> None:
    fake.bumps, fake.edits = 1, True
    with pytest.raises(StepFailed, match="was changed while it was being healed"):
        nothing_more.take_away(healing(), surroundings(fake, []))
    assert len(fake.patches) == 1


def test_a_plain_run_applies_an_object_again_under_the_lease(tmp_path: Path) -> None:
    asked: list[httpx2.Request] = []

    def server(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return httpx2.Response(200, json={})

    wanted = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "demo"}}
    objects = tmp_path / "objects.json"
    objects.write_text(json.dumps({"secret-s": wanted}))
    lease = Lease()
    around = surroundings(
        server,  # type: ignore[arg-type]
        [],
        check_lease=lease,
        settings={SETTING_OBJECTS: str(objects)},
    )

    nothing_more.take_away({"object": "Secret s", "applies": "secret-s"}, around)

    [request] = asked
    assert (request.method, request.url.path) == ("PATCH", "/api/v1/namespaces/demo/secrets/s")
    assert dict(request.url.params) == {"fieldManager": "jr2", "force": "true"}
    assert json.loads(request.content) == wanted
    assert lease.asked == 1


def test_an_object_that_cannot_be_changed_is_deleted_by_uid(fake: FakeApi) -> None:
    nothing_more.take_away(healing(patch="", uid="u-1"), surroundings(fake, []))
    assert fake.deleted == [{"uid": "u-1"}]


class Orchestrator:
    """An Orchestrator that answers the routes of a publish; it holds no blob."""

    def __init__(self) -> None:
        self.current: str | None = OLDER
        self.signing_key = SIGNING_KEY
        self.maps = {"images": "i", "held": "h"}
        self.answer: tuple[int, dict[str, Any]] = (201, {"hash": ASSEMBLY, "workflows": ["ping"]})
        self.puts: list[dict[str, str]] = []
        self.asked: list[str] = []
        self.cuts = 0
        """How many commits are cut, once they were read."""
        self.after_cut: str | None = None
        """What is current after one of them, when it was done all the same."""
        outer = self

        class Handler(Quiet):
            def do_GET(self) -> None:
                held: dict[str, Any] = {
                    "current": outer.current,
                    "assemblies": [],
                    "maps": outer.maps,
                }
                if self.path == "/healthz":
                    nonce = self.headers[names.HEADER_NONCE]
                    key = signed.read_key(outer.signing_key)
                    self.reply(200, {"proof": signed.proof(key, nonce)})
                elif self.path.endswith("/files"):
                    self.reply(404, {"error": "no list is held"})
                else:
                    self.reply(200 if self._token() == "read-me" else 401, held)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.asked.append(self.path)
                if self.path == "/blobs":
                    self.reply(200, {"ok": True})
                else:
                    files = json.loads(gzip.decompress(body))["files"]
                    self.reply(200, {"missing": [each["sha256"] for each in files]})

            def do_PUT(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                if outer.cuts:
                    outer.cuts -= 1
                    outer.current = outer.after_cut or outer.current
                    self.close_connection = True
                    return
                outer.puts.append(dict(self.headers) | {"path": self.path})
                self.reply(*(outer.answer if self._token() == "publish-me" else (401, {})))

            def _token(self) -> str:
                return self.headers["Authorization"].removeprefix("Bearer ")

        self.handler = Handler
        self.port = 0


@pytest.fixture
def orchestrator() -> Iterator[Orchestrator]:
    made = Orchestrator()
    with FarSide(made.handler) as server:
        made.port = server.port
        yield made


@pytest.fixture
def kubectl(tmp_path: Path, orchestrator: Orchestrator) -> Path:
    """A kubectl whose forward leads to the Orchestrator of the test."""
    port = orchestrator.port
    script = tmp_path / "kubectl"
    # It may be ended as soon as it has said its port.
    script.write_text(
        "#!/bin/sh\n"
        'echo "$@" > "$(dirname "$0")/arguments"\n'
        f"echo 'Forwarding from 127.0.0.1:{port} -> 4000'\n"
        "exec sleep 3600\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


@pytest.fixture
def around(fake: FakeApi, kubectl: Path, tmp_path: Path) -> tuple[Surroundings, list[str]]:
    parcel = tmp_path / "assembly"
    write_parcel([Entry("assembly.json", "file", b"{}")], parcel)
    said: list[str] = []
    settings = {
        SETTING_PARCEL: str(parcel),
        SETTING_WORKFLOWS: "ping",
        SETTING_IMAGES_DIGEST: "i",
        SETTING_HELD_DIGEST: "h",
    }
    return surroundings(fake, said, kubectl=kubectl, settings=settings), said


def test_a_publish_says_what_it_replaces_and_carries_the_lease(
    around: tuple[Surroundings, list[str]], orchestrator: Orchestrator, kubectl: Path
) -> None:
    publish.publish_assembly({"assembly": ASSEMBLY}, around[0])
    assert around[1] == [
        "assembly: publishing abababababab (over cdcdcdcdcdcd)",
        "assembly: abababababab is current — workflows: ping",
    ]
    (put,) = orchestrator.puts
    assert put["path"] == f"/assemblies/{ASSEMBLY}"
    assert put["X-JR2-Lease"] == "2026-01-01T00:00:00.000000Z nonce"
    assert put["traceparent"].startswith("00-")
    assert isinstance(around[0].check_lease, Lease)
    assert around[0].check_lease.asked == 1
    arguments = (kubectl.parent / "arguments").read_text()
    assert "--namespace=demo port-forward" in arguments
    assert "publish-me" not in arguments


def test_a_publish_whose_forward_breaks_goes_on_through_another(
    around: tuple[Surroundings, list[str]], orchestrator: Orchestrator
) -> None:
    orchestrator.cuts = 2
    publish.publish_assembly({"assembly": ASSEMBLY}, around[0])
    assert around[1] == [
        "assembly: publishing abababababab (over cdcdcdcdcdcd)",
        "assembly: abababababab is current — workflows: ping",
    ]
    assert isinstance(around[0].check_lease, Lease)
    assert around[0].check_lease.asked == 3
    orchestrator.cuts = 3
    with pytest.raises(StepFailed, match="broke off"):
        publish.publish_assembly({"assembly": ASSEMBLY}, around[0])


def test_a_publish_whose_answer_alone_was_lost_is_done(
    around: tuple[Surroundings, list[str]], orchestrator: Orchestrator
) -> None:
    orchestrator.cuts, orchestrator.after_cut = 1, ASSEMBLY
    publish.publish_assembly({"assembly": ASSEMBLY}, around[0])
    assert orchestrator.puts == []
    assert around[1] == [
        "assembly: publishing abababababab (over cdcdcdcdcdcd)",
        "assembly: abababababab is current — workflows: ping",
    ]


def test_nothing_is_published_to_what_is_not_the_instance(
    around: tuple[Surroundings, list[str]], orchestrator: Orchestrator
) -> None:
    orchestrator.signing_key = "B" * 43
    with pytest.raises(StepFailed, match="no token was sent"):
        publish.publish_assembly({"assembly": ASSEMBLY}, around[0])
    assert orchestrator.puts == []


def test_an_orchestrator_without_an_assembly_gets_its_first(
    around: tuple[Surroundings, list[str]], orchestrator: Orchestrator
) -> None:
    orchestrator.current = None
    publish.publish_assembly({"assembly": ASSEMBLY}, around[0])
    assert around[1][0] == "assembly: publishing abababababab (no current Assembly)"


def test_a_current_assembly_is_not_published(
    around: tuple[Surroundings, list[str]], orchestrator: Orchestrator
) -> None:
    orchestrator.current = ASSEMBLY
    publish.publish_assembly({"assembly": ASSEMBLY}, around[0])
    assert around[1] == ["assembly: abababababab is current already — workflows: ping"]
    assert orchestrator.puts == []


def test_a_refused_assembly_lists_its_problems(
    around: tuple[Surroundings, list[str]], orchestrator: Orchestrator
) -> None:
    orchestrator.answer = (422, {"error": "it does not load", "problems": ["a: no", "b: no"]})
    with pytest.raises(Refusal) as caught:
        publish.publish_assembly({"assembly": ASSEMBLY}, around[0])
    assert caught.value.printed == (
        "refusing: the Orchestrator refused Assembly abababababab (HTTP 422): it does not load — "
        "the previous Assembly is still current\n  a: no\n  b: no"
    )


def test_nothing_is_published_while_the_maps_are_older(
    around: tuple[Surroundings, list[str]], orchestrator: Orchestrator
) -> None:
    orchestrator.maps = {"images": "older", "held": "h"}
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += 20

    with pytest.raises(Refusal) as caught:
        publish.publish_assembly(
            {"assembly": ASSEMBLY}, around[0], sleep=sleep, clock=lambda: now[0]
        )
    assert caught.value.printed == (
        "refusing: after 180s the Orchestrator still reads an older jr2-images from its mount — "
        "the kubelet has not refreshed it; nothing was published, and the previous Assembly is "
        "still current. Run `jr2 up` again"
    )
    assert orchestrator.puts == []


def test_a_publish_goes_on_once_the_maps_were_read(
    around: tuple[Surroundings, list[str]], orchestrator: Orchestrator
) -> None:
    orchestrator.maps = {"images": "i", "held": "older"}

    def sleep(_: float) -> None:
        orchestrator.maps = {"images": "i", "held": "h"}

    publish.publish_assembly({"assembly": ASSEMBLY}, around[0], sleep=sleep)
    assert len(orchestrator.puts) == 1


def test_a_forward_that_ends_says_its_last_words(fake: FakeApi, tmp_path: Path) -> None:
    script = tmp_path / "kubectl"
    script.write_text("#!/bin/sh\necho 'error: pod is not running' >&2\nexit 1\n")
    script.chmod(0o700)
    with pytest.raises(StepFailed, match=r"it ended\n  error: pod is not running"):
        publish.publish_assembly({"assembly": ASSEMBLY}, surroundings(fake, [], kubectl=script))
