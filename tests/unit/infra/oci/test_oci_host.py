"""A registry that is busy, that redirects, and that asks for secrets in the wrong place.

The far side is a real HTTP server that a test makes answer.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jr2_infra import oci
from jr2_infra.oci import media
from jr2_infra.oci.host import ATTEMPTS
from tests.far_side import FarSide, Quiet

Answer = tuple[int, dict[str, str], bytes]
MANIFEST = json.dumps(
    {
        "schemaVersion": 2,
        "mediaType": media.OCI_MANIFEST,
        "config": {"mediaType": "x", "digest": "sha256:" + "a" * 64, "size": 1},
        "layers": [],
    }
).encode()
FOUND: Answer = (200, {"Content-Type": media.OCI_MANIFEST}, MANIFEST)


class Far:
    """A server that answers each path from a list; the last answer stands for all later ones."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.asked: list[tuple[str, str | None]] = []
        outer = self

        class Handler(Quiet):
            def do_GET(self) -> None:
                outer._answer(self)

            do_HEAD = do_GET

        self._server = FarSide(Handler)
        self.host = self._server.host

    def _answer(self, request: Quiet) -> None:
        path = request.path.partition("?")[0]
        self.asked.append((path, request.headers.get("Authorization")))
        listed = self.answers.get(path, [(404, {}, b"")])
        status, headers, body = listed.pop(0) if len(listed) > 1 else listed[0]
        request.reply(status, body, headers)

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def far() -> Iterator[Far]:
    server = Far()
    yield server
    server.close()


@pytest.fixture
def environ(tmp_path: Path, far: Far) -> dict[str, str]:
    """Somebody who logged in to the far registry."""
    login = base64.b64encode(b"ann:CANARY").decode()
    (tmp_path / "config.json").write_text(json.dumps({"auths": {far.host: {"auth": login}}}))
    return {"DOCKER_CONFIG": str(tmp_path), "HOME": str(tmp_path)}


def read(far: Far, environ: dict[str, str], waited: list[float]) -> oci.Manifest:
    with oci.Client(environ, sleep=waited.append) as client:
        return client.manifest(oci.Reference(registry=far.host, repository="x", tag="1"))


PATH = "/v2/x/manifests/1"


def test_a_busy_registry_is_asked_again_as_it_says(far: Far, environ: dict[str, str]) -> None:
    far.answers[PATH] = [(429, {"Retry-After": "7"}, b""), (503, {}, b""), FOUND]
    waited: list[float] = []

    assert read(far, environ, waited).content == MANIFEST
    assert waited == [7.0, 0.4]


def test_a_registry_that_stays_busy_is_given_up(far: Far, environ: dict[str, str]) -> None:
    far.answers[PATH] = [(503, {"Retry-After": "100000"}, b"down")]
    waited: list[float] = []

    with pytest.raises(oci.RegistryError, match=r"fails at the read of 1 .*: 503 .*: down"):
        read(far, environ, waited)

    assert waited == [30.0] * (ATTEMPTS - 1)


def test_a_refusal_is_not_asked_again(far: Far, environ: dict[str, str]) -> None:
    far.answers[PATH] = [(403, {}, b"")]
    waited: list[float] = []

    with pytest.raises(oci.RegistryError) as raised:
        read(far, environ, waited)

    assert (raised.value.status, waited) == (403, [])


def test_a_manifest_of_another_digest_is_refused(far: Far, environ: dict[str, str]) -> None:
    digest = "sha256:" + "b" * 64
    status, headers, body = FOUND
    far.answers[PATH] = [(status, {**headers, "Docker-Content-Digest": digest}, body)]

    with pytest.raises(oci.RegistryError, match=f"has the digest sha256:.* and not {digest}"):
        read(far, environ, [])


def test_a_login_does_not_follow_a_redirect_to_another_host(
    far: Far, environ: dict[str, str]
) -> None:
    other = Far()
    try:
        other.answers["/stored"] = [FOUND]
        far.answers[PATH] = [
            (401, {"WWW-Authenticate": 'Basic realm="x"'}, b""),
            (307, {"Location": f"http://{other.host}/stored"}, b""),
        ]

        assert read(far, environ, []).content == MANIFEST

        assert [login for path, login in far.asked if path == PATH] == [
            None,
            f"Basic {base64.b64encode(b'ann:CANARY').decode()}",
        ]
        assert other.asked == [("/stored", None)]
    finally:
        other.close()


@pytest.mark.parametrize(
    ("realm", "said"),
    [
        ("http://tokens.example/t", "in the clear — they are not sent there"),
        ("ftp://tokens.example/t", "as the place of tokens"),
        ("", "as the place of tokens"),
    ],
)
def test_no_secret_goes_to_a_place_of_tokens_without_tls(
    far: Far, environ: dict[str, str], realm: str, said: str
) -> None:
    far.answers[PATH] = [(401, {"WWW-Authenticate": f'Bearer realm="{realm}"'}, b"")]

    with pytest.raises(oci.RegistryError, match=said) as raised:
        read(far, environ, [])

    assert "CANARY" not in raised.value.message


@pytest.mark.parametrize("body", [b"CANARY", b"[]", b"{}"])
def test_a_place_that_gives_no_token_is_named_without_its_words(
    far: Far, environ: dict[str, str], body: bytes
) -> None:
    realm = f"http://{far.host}/t"
    far.answers[PATH] = [(401, {"WWW-Authenticate": f'Bearer realm="{realm}"'}, b"")]
    far.answers["/t"] = [(200, {}, body)]

    with pytest.raises(oci.RegistryError, match="answers with no token") as raised:
        read(far, environ, [])

    assert "CANARY" not in raised.value.message


def test_a_token_that_is_shown_in_an_answer_is_not_shown(far: Far, environ: dict[str, str]) -> None:
    realm = f"http://{far.host}/t"
    challenge: dict[str, Any] = {"WWW-Authenticate": f'Bearer realm="{realm}"'}
    far.answers[PATH] = [(401, challenge, b""), (403, {}, b"your token CANARY-token is bad")]
    far.answers["/t"] = [(200, {}, b'{"token":"CANARY-token"}')]

    with pytest.raises(oci.RegistryError, match="your token … is bad"):
        read(far, environ, [])


def test_a_manifest_without_end_is_not_read(
    far: Far, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jr2_infra.oci.repository.MANIFEST_BYTES", 100)
    far.answers[PATH] = [FOUND]

    with pytest.raises(oci.RegistryError, match="answers with more than 100 bytes"):
        read(far, environ, [])
