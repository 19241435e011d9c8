"""The order of a converge at its first contact: what refuses, then the programs, then a write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx2
import pytest

from jr2 import names
from jr2.config import Config
from jr2.errors import Aborted, Jr2Error, Refusal, StepFailed
from jr2_infra import converge
from jr2_infra.facts.cluster import Contact
from jr2_infra.rules import KitRefs, Place
from jr2_infra.session import Session
from jr2_infra.tooling import LocalImport, Tooling
from tests.reporter import Reporter

PLACE = Place(instance="demo", context="jr2-local", namespace="demo")


class Writes:
    """An API server that takes every write and counts it, and grants every right."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.grants = True

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/selfsubjectaccessreviews"):
            return httpx2.Response(201, json={"status": {"allowed": self.grants}})
        if request.method == "GET":
            return httpx2.Response(404, json={"message": "not found"})
        self.paths.append(f"{request.method} {request.url.path}")
        return httpx2.Response(200, json={})


@pytest.fixture
def writes() -> Iterator[Writes]:
    converge._writes.clear()
    yield Writes()
    converge._writes.clear()


def missing() -> Tooling:
    raise StepFailed("kubectl is not installed — run `jr2 tools install kubectl`, then try again")


LOCAL = LocalImport(ctr=Path("ctr"), socket=Path("socket"), server="https://127.0.0.1:1")
TOOLING = Tooling(
    pulumi=Path("p"), kubernetes_plugin=Path("k"), kubectl=Path("c"), local_import=LOCAL
)


def contact(
    version: str = "v1.36.3", owner: str | None = None, namespace: dict[str, Any] | None = None
) -> Contact:
    if owner is not None:
        namespace = {"metadata": {"name": "demo", "labels": {names.LABEL_INSTANCE: owner}}}
    return Contact(version=version, cluster_uid="0123456789ab", namespace=namespace, nodes=())


def session(
    writes: Writes,
    *,
    yes: bool = True,
    force: bool = False,
    find_tooling: Callable[[], Tooling] = missing,
    instance: object = None,
    reporter: Reporter | None = None,
) -> Session:
    http = httpx2.Client(base_url="http://api", transport=httpx2.MockTransport(writes))
    return Session(
        PLACE,
        cast(
            Any,
            instance or SimpleNamespace(config=Config(), workflows=(), kit_version="1.0.0.dev0"),
        ),
        yes=yes,
        force=force,
        context=cast(Any, SimpleNamespace(server="https://127.0.0.1:1")),
        http=http,
        find_tooling=find_tooling,
        reporter=reporter or Reporter(answer=False, warns=True),
    )


@pytest.mark.parametrize(
    ("met", "yes", "error", "words"),
    [
        (contact(version="v1.20.0"), True, Refusal, "jr2 needs Kubernetes"),
        (contact(owner="other"), True, Refusal, "belongs to another instance"),
        (contact(), False, Aborted, "nothing was changed"),
        (contact(), True, StepFailed, "run `jr2 tools install kubectl`"),
        (contact(owner="demo"), True, StepFailed, "run `jr2 tools install kubectl`"),
    ],
)
def test_a_missing_program_hides_no_refusal_and_is_said_before_the_first_write(
    writes: Writes, met: Contact, yes: bool, error: type[Jr2Error], words: str
) -> None:
    with pytest.raises(error, match=words):
        session(writes, yes=yes)._first_contact(met)
    assert writes.paths == []
    assert not converge.has_written()


def test_the_namespace_is_made_when_nothing_is_missing(writes: Writes) -> None:
    found = cast(Tooling, object())
    session(writes, find_tooling=lambda: found)._first_contact(contact())
    assert writes.paths == ["PATCH /api/v1/namespaces/demo"]
    # An interrupt from here on says that something was applied.
    assert converge.has_written()


def test_rights_are_asked_for_before_the_namespace_and_before_the_rest(writes: Writes) -> None:
    plan = cast(Any, SimpleNamespace(writes_shared=True))
    writes.grants = False
    refused = session(writes, find_tooling=lambda: TOOLING)
    with pytest.raises(Refusal, match=r"Nothing was applied\."):
        refused._first_contact(contact())
    assert writes.paths == []
    writes.grants = True
    made = session(writes, find_tooling=lambda: TOOLING)
    made._first_contact(contact())
    made.check_rights(plan)
    writes.grants = False
    with pytest.raises(Refusal, match=r"The namespace was applied; nothing else was\.") as caught:
        made.check_rights(plan)
    assert '  patch secrets in namespace "demo"' in caught.value.printed.splitlines()
    assert writes.paths == ["PATCH /api/v1/namespaces/demo"]


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize(
    ("imported", "words"),
    [(False, "nothing to build again"), (True, "delivers the Kit images of the checkout again")],
)
def test_force_says_what_it_does(writes: Writes, force: bool, imported: bool, words: str) -> None:
    reporter = Reporter(answer=False, warns=True)
    instance = SimpleNamespace(
        config=Config(platforms=["linux/amd64"]), workflows=(), root=Path("/instance")
    )
    refs = KitRefs(orchestrator="o", operator="p", harness="h", line="images: x", imported=imported)
    found = TOOLING
    made = session(
        writes, force=force, instance=instance, reporter=reporter, find_tooling=lambda: found
    )
    made._first_contact(contact(owner="demo"))

    made._deliverable(refs, contact())

    said = [line for line in reporter.lines if "--force" in line]
    assert len(said) == force
    assert all(words in line for line in said)


class OneNamespace:
    """An API server that has one namespace, or none."""

    def __init__(self, namespace: dict[str, Any] | None) -> None:
        self._namespace = namespace

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        assert request.method == "GET"
        if request.url.path == "/version":
            return httpx2.Response(200, json={}, headers={"Date": "Thu, 01 Jan 2026 00:10:00 GMT"})
        assert request.url.path == "/api/v1/namespaces/demo"
        if self._namespace is None:
            return httpx2.Response(404, json={"message": "not found"})
        return httpx2.Response(200, json=self._namespace)


DELETED = {"metadata": {"name": "demo", "deletionTimestamp": "2026-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("namespace", "words"),
    [
        (
            DELETED,
            'namespace "demo" on jr2-local is being deleted — run this again once it is gone',
        ),
        (None, 'namespace "demo" on jr2-local was deleted while `jr2 up` ran'),
    ],
)
def test_a_namespace_that_was_deleted_meanwhile_is_no_success(
    monkeypatch: pytest.MonkeyPatch, namespace: dict[str, Any] | None, words: str
) -> None:
    with pytest.raises(StepFailed) as raised:
        run_engine_over(monkeypatch, namespace)

    assert raised.value.printed.startswith(f"error: {words}")


def test_a_namespace_that_stays_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_engine_over(monkeypatch, {"metadata": {"name": "demo"}}) == ["engine"]


def run_engine_over(monkeypatch: pytest.MonkeyPatch, namespace: dict[str, Any] | None) -> list[str]:
    """Run the engine's part of a session with an engine that does nothing."""
    did: list[str] = []
    monkeypatch.setattr("jr2_infra.engine.run.run_engine", lambda *_, **__: did.append("engine"))
    made = session(cast(Any, OneNamespace(namespace)))
    made._tooling = TOOLING
    made._context = cast(Any, SimpleNamespace(kubeconfig_text=str))
    plan = SimpleNamespace(
        differences=(), program=None, live={}, surplus=(), images_digest="i", held_digest="h"
    )
    leases = SimpleNamespace(nonces=dict, record_engine=None)
    staged = SimpleNamespace(manifest=SimpleNamespace(workflows=()), parts=())
    made._engine(cast(Any, plan), cast(Any, leases), "stamp", cast(Any, staged))
    return did
