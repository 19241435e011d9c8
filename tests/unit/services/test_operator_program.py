"""The operator as a process against an API server that speaks the wire protocol.

The server allows exactly what the operator's ClusterRole grants and records what was asked.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from jr2 import names
from jr2.rbac import OPERATOR_RULES
from tests.far_side import FarSide, Quiet
from tests.ports import free_port
from tests.waiting import LIMIT

GROUP_PATH = f"/apis/{names.API_GROUP}/{names.API_VERSION}"
KINDS = {"sandboxes": "Sandbox", "repos": "Repo"}


@dataclass
class Cluster:
    """What the server answers from, and what it was asked."""

    installed: bool = True
    granted: bool = True
    silent: bool = False
    objects: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {"sandboxes": [], "repos": []}
    )
    asked: list[tuple[str, str]] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def discovery(self, path: str) -> dict[str, Any] | None:
        namespaces = {"name": "namespaces", "singularName": "namespace", "kind": "Namespace"}
        core = {
            "groupVersion": "v1",
            "resources": [namespaces | {"namespaced": False, "verbs": ["list", "watch"]}],
        }
        version = {"groupVersion": f"{names.API_GROUP}/{names.API_VERSION}", "version": "v1alpha1"}
        groups = [{"name": names.API_GROUP, "versions": [version], "preferredVersion": version}]
        resources = [
            {"name": plural, "singularName": kind.lower(), "kind": kind, "namespaced": True}
            | {"verbs": ["get", "list", "watch", "create", "patch", "update", "delete"]}
            for plural, kind in KINDS.items()
        ]
        answers: dict[str, dict[str, Any]] = {
            "/api": {"versions": ["v1"]},
            "/api/v1": core,
            "/apis": {"groups": groups if self.installed else []},
        }
        if self.installed:
            answers[GROUP_PATH] = {"groupVersion": version["groupVersion"], "resources": resources}
        return answers.get(path)


def handler(cluster: Cluster) -> type[Quiet]:
    class Handler(Quiet):
        protocol_version = "HTTP/1.1"

        def answer(self, status: int, body: dict[str, Any]) -> None:
            self.reply(status, body, {"Content-Type": "application/json"})

        def refuse(self, status: int, message: str) -> None:
            self.answer(status, {"kind": "Status", "code": status, "message": message})

        def do_GET(self) -> None:
            if cluster.silent:
                cluster.stopping.wait()
            split = urlsplit(self.path)
            plural = split.path.rpartition("/")[2]
            verb = "watch" if "watch" in parse_qs(split.query) else "list"
            found = cluster.discovery(split.path)
            if found is not None:
                cluster.asked.append(("discover", split.path))
                self.answer(200, found)
                return
            cluster.asked.append((verb, split.path))
            if split.path != f"{GROUP_PATH}/{plural}" or not cluster.installed:
                self.refuse(404, f"the server could not find {split.path}")
            elif not cluster.granted:
                self.refuse(403, f"{plural} is forbidden")
            elif verb == "list":
                meta = {"resourceVersion": "7"}
                kind = KINDS[plural]
                items = cluster.objects[plural]
                self.answer(200, {"kind": f"{kind}List", "metadata": meta, "items": items})
            else:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                cluster.stopping.wait()
                self.close_connection = True

        def refuse_write(self) -> None:
            cluster.asked.append((self.command, self.path))
            self.refuse(403, "nothing may be written")

        do_POST = do_PUT = do_PATCH = do_DELETE = refuse_write

    return Handler


@dataclass
class Operator:
    process: subprocess.Popen[str]
    port: int

    def health(self, path: str = "healthz") -> tuple[int, Any]:
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}/{path}", timeout=LIMIT
            ) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, None
        except OSError:
            return 0, None

    def listens(self) -> bool:
        """Whether the health port is open; the answer to a probe is kept for a while."""
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT).close()
        except OSError:
            return False
        return True

    def stop(self) -> tuple[int, list[dict[str, Any]]]:
        self.process.send_signal(signal.SIGTERM)
        _, log = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, [json.loads(line) for line in log.splitlines()]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def operator(cluster: Cluster, tmp_path: Path) -> Iterator[Callable[[], Operator]]:
    server = FarSide(handler(cluster))
    config = tmp_path / "kubeconfig"
    context = {"cluster": "c", "user": "u"}
    config.write_text(
        json.dumps(
            {
                "current-context": "x",
                "contexts": [{"name": "x", "context": context}],
                "clusters": [{"name": "c", "cluster": {"server": server.url}}],
                "users": [{"name": "u", "user": {"token": "not-a-secret"}}],
            }
        )
    )
    started: list[Operator] = []

    def start() -> Operator:
        port = free_port()
        process = subprocess.Popen(
            [sys.executable, "-m", "jr2_runtime.operator", "--health-port", str(port)],
            env={"KUBECONFIG": str(config), "PATH": os.environ["PATH"], "HOME": str(tmp_path)},
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(Operator(process, port))
        return started[-1]

    try:
        yield start
    finally:
        for each in started:
            if each.process.poll() is None:
                each.process.kill()
                each.process.communicate()
        cluster.stopping.set()
        server.close()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met"
        threading.Event().wait(0.05)


def sandbox(name: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{names.API_GROUP}/{names.API_VERSION}",
        "kind": "Sandbox",
        "metadata": {"name": name, "namespace": "demo", "uid": name, "resourceVersion": "5"},
        "spec": {"image": "example"},
    }


def allowed(verb: str, path: str) -> bool:
    if verb == "discover":
        return True
    return any(
        verb in rule.verbs and path == f"/apis/{group}/{names.API_VERSION}/{resource}"
        for rule in OPERATOR_RULES
        for group in rule.groups
        for resource in rule.resources
    )


def test_watches_both_kinds_within_its_rules(
    cluster: Cluster, operator: Callable[[], Operator]
) -> None:
    cluster.objects["sandboxes"] = [sandbox("ws-a"), sandbox("ws-b")]
    running = operator()
    watches = [("watch", f"{GROUP_PATH}/{plural}") for plural in KINDS]
    wait_for(lambda: set(watches) <= set(cluster.asked) and running.listens())
    status, body = running.health()
    ready, missing = running.health("readyz")[0], running.health("other")[0]
    code, log = running.stop()

    assert (status, body) == (200, {"api": "well", "repos": 0, "sandboxes": 2})
    assert (ready, missing) == (200, 404)
    assert code == 0
    assert [request for request in cluster.asked if not allowed(*request)] == []
    used = {verb for verb, _ in cluster.asked} - {"discover"}
    assert used == {verb for rule in OPERATOR_RULES for verb in rule.verbs}
    messages = [entry["message"] for entry in log]
    assert "watching sandboxes and repos in all namespaces" in messages


def test_is_not_healthy_before_the_kinds_exist(
    cluster: Cluster, operator: Callable[[], Operator]
) -> None:
    cluster.installed = False
    running = operator()
    wait_for(lambda: len(cluster.asked) >= 2)
    assert running.health() == (0, None)
    cluster.installed = True
    wait_for(lambda: running.health()[0] == 200)
    code, log = running.stop()

    assert code == 0
    waiting = [entry["message"] for entry in log if "waiting for the API" in entry["message"]]
    assert sorted(line.split(":")[0] for line in waiting) == [
        "waiting for the API to list repos",
        "waiting for the API to list sandboxes",
    ]


def test_is_not_healthy_when_the_permission_is_taken(
    cluster: Cluster, operator: Callable[[], Operator]
) -> None:
    running = operator()
    wait_for(lambda: [verb for verb, _ in cluster.asked].count("watch") == 2 and running.listens())
    cluster.granted = False

    # A refusal that comes later than a probe waits for it is found by a later probe.
    wait_for(lambda: running.health() == (500, None))
    code, log = running.stop()
    assert code == 0
    assert any("sandboxes: the API refuses the list" in json.dumps(entry) for entry in log)


def test_a_silent_api_is_no_reason_to_start_again(
    cluster: Cluster, operator: Callable[[], Operator]
) -> None:
    running = operator()
    wait_for(lambda: [verb for verb, _ in cluster.asked].count("watch") == 2 and running.listens())
    cluster.silent = True
    began = time.monotonic()

    assert running.health() == (200, {"api": "well", "repos": 0, "sandboxes": 0})
    assert time.monotonic() - began >= 0.5, "the probe did not ask"
    assert running.stop()[0] == 0
