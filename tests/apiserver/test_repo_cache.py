"""The Repo cache as a process, with a token of its own ServiceAccount and exactly its Role."""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
import yaml

from jr2 import names
from jr2_infra import crds
from jr2_infra.components import repo_cache
from tests.apiserver.derived.conftest import apply_all
from tests.apiserver.server import ApiServer
from tests.waiting import LIMIT, wait_for

SPACE = "cached"
REPOS = f"/apis/{names.API_GROUP}/{names.API_VERSION}/namespaces/{SPACE}/repos"


@pytest.fixture
def server(api_server: ApiServer) -> ApiServer:
    api_server.add_namespace(SPACE)
    rights = repo_cache.rights("demo", SPACE)
    apply_all(api_server, [*crds.load(), *rights])
    api_server.wait_for_rights(rights)

    with api_server.client() as http:
        # A new kind answers 404, then 429 while its storage is made.
        wait_for("the API serves Repos", lambda: http.get(REPOS).is_success)
    return api_server


def repo(server: ApiServer, name: str) -> dict[str, Any]:
    return dict(
        server.post(
            REPOS,
            {
                "apiVersion": f"{names.API_GROUP}/{names.API_VERSION}",
                "kind": "Repo",
                "metadata": {"name": name},
                "spec": {"url": f"https://github.com/acme/{name}.git"},
            },
        )
    )


def entries(server: ApiServer, name: str) -> list[dict[str, Any]]:
    return list((server.get(f"{REPOS}/{name}").get("status") or {}).get("nodes") or [])


def has_two(server: ApiServer, name: str) -> bool:
    return len(entries(server, name)) == 2


@contextlib.contextmanager
def agent(server: ApiServer, folder: Path, node: str) -> Iterator[httpx2.Client]:
    """Run the agent of one node; give a client of its probes."""
    account = folder / "account"
    cache = folder / "cache"
    for place in (account, cache):
        place.mkdir(parents=True)
    kubeconfig = yaml.safe_load(
        server.account_kubeconfig(SPACE, names.REPO_CACHE).read_text(encoding="utf-8")
    )
    (account / "token").write_text(kubeconfig["users"][0]["user"]["token"])
    cluster = kubeconfig["clusters"][0]["cluster"]
    (account / "ca.crt").write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    address = urlsplit(cluster["server"])
    with subprocess.Popen(
        [sys.executable, "-m", "jr2_runtime.repo_cache"],
        env={
            "PATH": os.environ["PATH"],
            "KUBERNETES_SERVICE_HOST": str(address.hostname),
            "KUBERNETES_SERVICE_PORT": str(address.port),
            "JR2_SERVICE_ACCOUNT_PATH": str(account),
            "JR2_CACHE_PATH": str(cache),
            "JR2_NAMESPACE": SPACE,
            "JR2_NODE_NAME": node,
            "PORT": "0",
        },
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            said = json.loads(process.stdout.readline())
            while said["message"] != "listening":
                said = json.loads(process.stdout.readline())
            with httpx2.Client(
                base_url=f"http://127.0.0.1:{said['port']}", timeout=LIMIT, trust_env=False
            ) as client:
                yield client
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=LIMIT)
            assert process.returncode == 0, out
            assert "forbidden" not in out
        finally:
            process.kill()


def test_each_node_says_what_it_holds_and_touches_no_other_entry(
    server: ApiServer, tmp_path: Path
) -> None:
    repo(server, "before")
    with agent(server, tmp_path / "1", "node-1") as first, agent(server, tmp_path / "2", "node-2"):
        wait_for("ready", lambda: first.get("/readyz").status_code == 200)
        assert first.get("/healthz").json() == {"ok": True, "version": names.KIT_VERSION}
        repo(server, "later")
        for name in ("before", "later"):
            wait_for(name, functools.partial(has_two, server, name))
            for entry in entries(server, name):
                assert entry["present"] is False
                assert entry["synced"] is False
                assert entry["observedGeneration"] == 1
                assert entry["lastError"] == "this Repo cache keeps no clones yet"

        # A new generation is looked at, and what somebody changed by hand is said again.
        server.patch(f"{REPOS}/later", {"spec": {"url": "https://github.com/acme/moved.git"}})
        wait_for(
            "both look at the new generation",
            lambda: {e["observedGeneration"] for e in entries(server, "later")} == {2},
        )
        before = server.get(f"{REPOS}/before")["metadata"]["resourceVersion"]
        server.remove(f"{REPOS}/later")
        repo(server, "later")
        wait_for("the Repo made again", lambda: len(entries(server, "later")) == 2)
        # What is said already is not written again.
        assert server.get(f"{REPOS}/before")["metadata"]["resourceVersion"] == before


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("JR2_NODE_NAME", None, "JR2_NODE_NAME is not set"),
        (
            "JR2_NAMESPACE",
            None,
            "no service account and no namespace: the Repo cache runs in a pod",
        ),
        ("JR2_CACHE_PATH", "/does/not/exist", "/does/not/exist cannot be written"),
    ],
)
def test_it_does_not_start_without_what_its_pod_gives(
    tmp_path: Path, variable: str, value: str | None, reason: str
) -> None:
    (tmp_path / "token").write_text("t")
    given: dict[str, str | None] = {
        "PATH": os.environ["PATH"],
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "JR2_SERVICE_ACCOUNT_PATH": str(tmp_path),
        "JR2_CACHE_PATH": str(tmp_path),
        "JR2_NAMESPACE": SPACE,
        "JR2_NODE_NAME": "node-1",
        "PORT": "0",
        variable: value,
    }
    done = subprocess.run(
        [sys.executable, "-m", "jr2_runtime.repo_cache"],
        env={name: text for name, text in given.items() if text is not None},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert (said["message"], said["reason"]) == ("the Repo cache cannot start", reason)
