"""The kubeconfig as kubectl merges it, and the clients that stand on one context."""

from __future__ import annotations

import base64
import contextlib
import datetime
import os
import socket
import ssl
import stat
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from jr2.errors import StepFailed
from jr2.held import leaf_stem
from jr2_infra import kube, kube_auth, private
from jr2_infra.secrets.authority import decide_pki
from jr2_infra.secrets.certificates import Certificates
from jr2_infra.secrets.targets import Target
from tests.far_side import FarSide, Quiet


def write(path: Path, document: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def config(
    context: str = "one",
    *,
    server: str = "https://127.0.0.1:1",
    user: dict[str, Any] | None = None,
    cluster: dict[str, Any] | None = None,
    current: str | None = None,
    namespace: str | None = None,
) -> dict[str, Any]:
    entry: dict[str, Any] = {"cluster": context, "user": context}
    if namespace:
        entry["namespace"] = namespace
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current if current is not None else context,
        "clusters": [{"name": context, "cluster": {"server": server, **(cluster or {})}}],
        "contexts": [{"name": context, "context": entry}],
        "users": [{"name": context, "user": user or {}}],
    }


def environ(*paths: Path) -> dict[str, str]:
    return {"KUBECONFIG": ":".join(str(path) for path in paths), "HOME": "/nonexistent"}


def test_current_context_of_the_home_folder(tmp_path: Path) -> None:
    write(tmp_path / ".kube" / "config", config("kind-jr2", namespace="team"))

    found = kube.load_context(environ={"HOME": str(tmp_path)})

    assert (found.name, found.server, found.namespace) == (
        "kind-jr2",
        "https://127.0.0.1:1",
        "team",
    )


def test_the_first_file_that_names_a_thing_wins(tmp_path: Path) -> None:
    first = write(tmp_path / "a", config("shared", server="https://first:1", current=""))
    second = config("shared", server="https://second:1", current="extra")
    second["clusters"].append({"name": "extra", "cluster": {"server": "https://extra:1"}})
    second["contexts"].append({"name": "extra", "context": {"cluster": "extra"}})
    third = write(tmp_path / "c", config("late", current="late"))
    env = environ(first, tmp_path / "missing", write(tmp_path / "b", second), third)

    assert kube.load_context("shared", env).server == "https://first:1"
    assert kube.load_context(None, env).name == "extra"
    assert kube.load_context("late", env).name == "late"


@pytest.mark.parametrize("document", [None, {}, {"clusters": [], "current-context": ""}])
def test_no_context(tmp_path: Path, document: object) -> None:
    path = tmp_path / "config"
    if document is not None:
        write(path, document)

    with pytest.raises(StepFailed) as caught:
        kube.load_context(None, environ(path))

    assert caught.value.printed == (
        "error: no kube context — `jr2 cluster create` or `kind create cluster` "
        "(or point kubectl at one), then re-run `jr2 up`"
    )


def test_an_unknown_context_is_named_as_kubectl_names_it(tmp_path: Path) -> None:
    env = environ(write(tmp_path / "config", config()))

    with pytest.raises(kube.UnknownContext) as caught:
        kube.load_context("nope", env)

    assert kube.context_name("nope", env) == "nope"
    assert caught.value.printed == 'error: context "nope" does not exist'
    assert kube.unreachable("nope", caught.value.printed).printed == (
        "refusing: cannot reach the API server of nope "
        '(error: context "nope" does not exist). Nothing was applied.'
    )


def test_a_context_whose_cluster_or_user_is_missing(tmp_path: Path) -> None:
    document = config()
    document["clusters"] = []
    with pytest.raises(kube.UnknownContext, match='cluster "one" does not exist'):
        kube.load_context(None, environ(write(tmp_path / "a", document)))
    document = config()
    document["users"] = []
    with pytest.raises(kube.UnknownContext, match='auth info "one" does not exist'):
        kube.load_context(None, environ(write(tmp_path / "b", document)))


def test_a_context_without_a_user_has_a_client(tmp_path: Path, api: Api) -> None:
    document = config(server=api.url)
    del document["contexts"][0]["context"]["user"]

    context = kube.load_context(None, environ(write(tmp_path / "config", document)))

    assert context.user == {}
    with context.http() as client:
        assert client.get("/version").json() == {"authorization": None}
    with context.client() as lightkube_client:
        assert lightkube_client.namespace == "default"


def test_relative_files_belong_to_their_own_file_and_become_data(tmp_path: Path) -> None:
    folder = tmp_path / "sub"
    for name in ("ca.pem", "me.crt", "me.key", "token"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"content of {name}")
    user = {
        "client-certificate": "me.crt",
        "client-key": "me.key",
        "tokenFile": "token",
        "exec": {"command": "./bin/plugin", "apiVersion": "v1"},
    }
    path = write(folder / "config", config(user=user, cluster={"certificate-authority": "ca.pem"}))
    other = write(tmp_path / "config", {"current-context": "one"})

    text = kube.load_context(None, environ(other, path)).kubeconfig_text()
    alone = yaml.safe_load(text)

    inlined = alone["users"][0]["user"]
    assert base64.b64decode(inlined["client-certificate-data"]) == b"content of me.crt"
    assert base64.b64decode(inlined["client-key-data"]) == b"content of me.key"
    assert inlined["tokenFile"] == str(folder / "token")
    assert Path(inlined["exec"]["command"]) == folder / "bin" / "plugin"
    assert "client-certificate" not in inlined
    authority = alone["clusters"][0]["cluster"]["certificate-authority-data"]
    assert base64.b64decode(authority) == b"content of ca.pem"
    again = kube.load_context(None, environ(write(tmp_path / "alone", alone)))
    assert again.kubeconfig_text() == text


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "config", config(user={"client-certificate": "no.crt"}))

    with pytest.raises(StepFailed, match=rf"cannot read {tmp_path}/no\.crt, which the kubeconfig"):
        kube.load_context(None, environ(path)).kubeconfig_text()


def test_a_broken_file_is_named_and_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("users: [CANARY: {", encoding="utf-8")

    with pytest.raises(StepFailed) as caught:
        kube.load_context(None, environ(path))

    assert str(caught.value) == f"cannot read the kubeconfig {path}: it is not YAML"


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    with pytest.raises(StepFailed) as caught:
        kube.load_context(None, environ(pipe))
    assert str(caught.value) == f"cannot read the kubeconfig {pipe}: it is no regular file"

    path = write(tmp_path / "config", config(user={"tokenFile": str(pipe)}))
    with (
        kube.load_context(None, environ(path)).http() as client,
        pytest.raises(StepFailed) as caught,
    ):
        client.get("/version")
    assert str(caught.value) == (
        f"cannot read {pipe}, which the kubeconfig names: it is no regular file"
    )


def test_nothing_secret_is_shown(tmp_path: Path) -> None:
    user = {"token": "CANARY", "password": "CANARY"}
    context = kube.load_context(None, environ(write(tmp_path / "config", config(user=user))))

    assert "CANARY" not in repr(context)
    assert "CANARY" in context.kubeconfig_text()


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"token": "abc"}, "Bearer abc"),
        ({"username": "me", "password": "pw"}, "Basic bWU6cHc="),
        ({}, None),
    ],
)
def test_the_proof_of_a_user(
    tmp_path: Path, api: Api, user: dict[str, Any], expected: str | None
) -> None:
    path = write(tmp_path / "config", config(server=api.url, user=user))

    with kube.load_context(None, environ(path)).http() as client:
        assert client.get("/version").json() == {"authorization": expected}


def test_a_token_file_is_read_again_after_a_refusal(tmp_path: Path, api: Api) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    path = write(tmp_path / "config", config(server=api.url, user={"tokenFile": "token"}))
    with kube.load_context(None, environ(path)).http() as client:
        assert client.get("/version").json() == {"authorization": "Bearer old"}
        token.write_text("new\n")
        api.refused.add("Bearer old")

        assert client.get("/version").json() == {"authorization": "Bearer new"}


@pytest.mark.parametrize(
    ("busy", "status", "waited"),
    [
        (["1"], 200, [1.0]),
        (["2", "0", "3"], 200, [2.0, 1.0, 3.0]),
        # No longer than the request may wait for an answer, and not until a date.
        (["6", "5"], 429, [6.0]),
        (["60"], 429, []),
        (["Fri, 31 Dec 2049 23:59:59 GMT"], 429, []),
    ],
)
def test_a_server_without_room_is_asked_again_when_it_says(
    tmp_path: Path,
    api: Api,
    monkeypatch: pytest.MonkeyPatch,
    busy: list[str],
    status: int,
    waited: list[float],
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(kube_auth, "time", types.SimpleNamespace(sleep=slept.append))
    api.busy = [*busy]
    path = write(tmp_path / "config", config(server=api.url, user={"token": "t"}))

    with kube.load_context(None, environ(path)).http() as client:
        assert client.get("/version").status_code == status

    assert slept == waited


class Garbled:
    """A TLS server that says of the first handshakes that it cannot read them.

    Args:
        garbled: how many.
    """

    def __init__(self, garbled: int) -> None:
        self.connections = 0
        target = Target("127.0.0.1")
        now = datetime.datetime.now(datetime.UTC)  # OpenSSL judges by its own clock
        pki = decide_pki("demo", (target,), None, None, Certificates(now))
        leaf = pki.leaves[leaf_stem(target.host, target.port)]
        self.authority = pki.authority.certificate
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with private.secret_file((leaf.certificate + leaf.key).encode()) as pair:
            tls.load_cert_chain(pair)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, args=(garbled, tls))
        self.thread.start()

    def __enter__(self) -> Garbled:
        return self

    def __exit__(self, *exception: object) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()

    def serve(self, garbled: int, tls: ssl.SSLContext) -> None:
        with self.listener, contextlib.suppress(OSError):  # of the end
            while True:
                connection, _ = self.listener.accept()
                self.connections += 1
                with connection, contextlib.suppress(OSError):
                    if self.connections <= garbled:
                        connection.recv(2**16)
                        connection.sendall(bytes((21, 3, 3, 0, 2, 2, 50)))  # fatal: decode_error
                        continue
                    with tls.wrap_socket(connection, server_side=True) as stream:
                        stream.recv(2**16)
                        stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")


@pytest.mark.parametrize(
    ("garbled", "is_trusted", "connections"),
    [(0, True, 1), (1, True, 2), (9, True, 2), (0, False, 1)],
)
def test_a_handshake_that_the_server_could_not_read_is_made_once_more(
    tmp_path: Path, garbled: int, is_trusted: bool, connections: int
) -> None:
    with Garbled(garbled) as server:
        trust = {"certificate-authority-data": base64.b64encode(server.authority.encode()).decode()}
        where = config(
            server=f"https://127.0.0.1:{server.port}", cluster=trust if is_trusted else {}
        )
        path = write(tmp_path / "config", where)

        with kube.load_context(None, environ(path)).http() as client:
            if is_trusted and garbled < 2:
                assert client.post("/version").json() == {}
            else:
                why = "DECODE_ERROR" if is_trusted else "CERTIFICATE_VERIFY_FAILED"
                with pytest.raises(httpx2.ConnectError, match=why):
                    client.post("/version")
        assert server.connections == connections


def plugin(tmp_path: Path, body: str) -> dict[str, Any]:
    script = tmp_path / "plugin.py"
    script.write_text(body)
    return {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(script)],
        "env": [{"name": "WHO", "value": "me"}],
    }


def test_an_exec_plugin_is_asked_once_and_again_after_a_refusal(tmp_path: Path, api: Api) -> None:
    body = (
        "import json, os, pathlib\n"
        f"log = pathlib.Path({str(tmp_path / 'calls')!r})\n"
        "count = int(log.read_text()) + 1 if log.exists() else 1\n"
        "log.write_text(str(count))\n"
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "assert info['spec'] == {'interactive': False}\n"
        "print(json.dumps({'status': {'token': os.environ['WHO'] + str(count)}}))\n"
    )
    user = {"exec": plugin(tmp_path, body)}
    path = write(tmp_path / "config", config(server=api.url, user=user))
    with kube.load_context(None, environ(path)).http() as client:
        answers = [client.get("/version").json()["authorization"] for _ in range(2)]
        api.refused.add("Bearer me1")
        answers.append(client.get("/version").json()["authorization"])

    assert answers == ["Bearer me1", "Bearer me1", "Bearer me2"]


def test_an_exec_plugin_that_fails(tmp_path: Path, api: Api) -> None:
    body = "import sys; print('CANARY'); sys.exit('not logged in')"
    failing = {"exec": plugin(tmp_path, body)}
    path = write(tmp_path / "a", config(server=api.url, user=failing))
    with (
        kube.load_context(None, environ(path)).http() as client,
        pytest.raises(StepFailed, match=r"ended with 1: not logged in$"),
    ):
        client.get("/version")
    missing = {"exec": {**failing["exec"], "command": "jr2-no-such", "installHint": "get it"}}
    path = write(tmp_path / "b", config(server=api.url, user=missing))
    with (
        kube.load_context(None, environ(path)).http() as client,
        pytest.raises(StepFailed, match=r"jr2-no-such is not installed\nget it$"),
    ):
        client.get("/version")


@pytest.mark.parametrize("token", ["CANARY\nx", "CANARY\xe9", " CANARY", "CANARY\0"])
@pytest.mark.parametrize("source", ["token", "file", "exec"])
def test_a_token_that_no_header_carries_is_refused_and_not_shown(
    tmp_path: Path, api: Api, source: str, token: str
) -> None:
    body = f"import json; print(json.dumps({{'status': {{'token': {token!r}}}}}))\n"
    # White space around the content of a file is no part of the token.
    (tmp_path / "token").write_text(f"{token.strip()}\xe9\n", encoding="utf-8")
    users: dict[str, tuple[dict[str, Any], str]] = {
        "token": ({"token": token}, "the token of the kubeconfig"),
        "file": ({"tokenFile": "token"}, f"the token in {tmp_path / 'token'}"),
        "exec": ({"exec": plugin(tmp_path, body)}, f"the token that {sys.executable} gave"),
    }
    user, named = users[source]
    path = write(tmp_path / "config", config(server=api.url, user=user))

    with (
        kube.load_context(None, environ(path)).http() as client,
        pytest.raises(StepFailed) as raised,
    ):
        client.get("/version")

    assert raised.value.printed.startswith(
        f"error: context one: {named} holds a character a header cannot carry"
    )
    assert "CANARY" not in raised.value.printed


def test_impersonation(tmp_path: Path, api: Api) -> None:
    user = {"token": "t", "as": "someone", "as-groups": ["a", "b"]}
    path = write(tmp_path / "config", config(server=api.url, user=user))

    with kube.load_context(None, environ(path)).http() as client:
        client.get("/version")

    assert api.headers["impersonate-user"] == ["someone"]
    assert api.headers["impersonate-group"] == ["a", "b"]


def test_a_secret_file_is_private_and_goes() -> None:
    with private.secret_file(b"CANARY") as path:
        mode = stat.S_IMODE(path.stat().st_mode)
        content = path.read_bytes()

    assert (mode, content, path.exists()) == (0o600, b"CANARY", False)


class Api:
    """An API server that says what it was asked with."""

    def __init__(self) -> None:
        self.url = ""
        self.refused: set[str] = set()
        self.busy: list[str] = []
        """What it says of when to come back, for each request that it has no room for."""
        self.headers: dict[str, list[str]] = {}


@pytest.fixture
def api() -> Iterator[Api]:
    class Handler(Quiet):
        def do_GET(self) -> None:
            said.headers = {name.lower(): self.headers.get_all(name, []) for name in self.headers}
            authorization = self.headers.get("Authorization")
            busy = said.busy.pop(0) if said.busy else None
            status = 429 if busy else 401 if authorization in said.refused else 200
            headers = {"Content-Type": "application/json"}
            if busy:
                headers["Retry-After"] = busy
            self.reply(status, {"authorization": authorization}, headers)

    said = Api()
    with FarSide(Handler) as server:
        said.url = server.url
        yield said
