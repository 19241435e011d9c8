"""The first form of the Effector: it takes what the Orchestrator signed, and signs its refusal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jr2 import names, signed, signed_effects
from jr2.signed_effects import Asked
from tests.unit.services.served import Served, fails_to_start, served

MODULE = "jr2_runtime.effector"
KEY_TEXT = signed.effector_key(b"k" * 32, names.INSTANCE_EFFECTOR)
KEY = signed.read_key(KEY_TEXT)
NONCE = "0123456789abcdefghijkl"
BODY = b'{"kind":"http"}'


@pytest.fixture(scope="module")
def effector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("values")
    (folder / names.FILE_SIGNING_KEY).write_text(KEY_TEXT)
    with served(MODULE, JR2_VALUES_PATH=str(folder)) as found:
        yield found


def ask(
    effector: Served,
    *,
    key: bytes = KEY,
    method: str = "POST",
    path: str = "/effects",
    sent: str | None = None,
    body: bytes = BODY,
    age: int = 0,
    sent_body: bytes | None = None,
) -> tuple[int, dict[str, str], bool]:
    """Send a signed request; return status and body, and whether the Effector signed the answer."""
    headers = signed_effects.request_headers(
        key,
        id="run-1/post/1",
        time=int(time.time()) - age,
        nonce=NONCE,
        method=method,
        path=path,
        body=body,
    )
    content = body if sent_body is None else sent_body
    answer = effector.client.request(method, sent or path, headers=headers, content=content)
    asked = Asked(method=method, path=path, headers=headers, body=body)
    is_theirs = signed_effects.is_answer(
        KEY, asked, status=answer.status_code, headers=answer.headers, body=answer.content
    )
    return answer.status_code, answer.json(), is_theirs


def test_the_health_check_is_open(effector: Served) -> None:
    assert effector.client.get("/healthz").json() == {"ok": True, "version": names.KIT_VERSION}


def test_a_signed_effect_is_refused_with_a_signature(effector: Served) -> None:
    assert ask(effector) == (501, {"error": "this Effector runs no Effects yet"}, True)
    looked = ask(effector, method="GET", path="/effects/run-1%2Fpost?wait=25", body=b"")
    assert looked == (404, {"error": "no such Effect"}, True)


def test_what_somebody_else_signed_or_changed_is_refused(effector: Served) -> None:
    stranger = signed.read_key(signed.effector_key(b"k" * 32, "some-sandbox"))
    for found in (
        ask(effector, key=stranger),
        ask(effector, age=signed_effects.WINDOW + 5),
        ask(effector, age=-signed_effects.WINDOW - 5),
        ask(effector, sent_body=b'{"kind":"push"}'),
        ask(effector, path="/effects", sent="/effects?again=1"),
    ):
        assert found == (401, {"error": "unauthorized"}, False)
    answer = effector.client.post("/effects", content=BODY)
    assert answer.status_code == 401


def test_a_body_without_end_is_not_read(effector: Served) -> None:
    status, body, _ = ask(effector, body=b"x" * (2 * 2**20 + 1))
    assert (status, body) == (413, {"error": "a request has at most 2097152 bytes"})


def test_an_answer_is_worth_nothing_for_another_request() -> None:
    headers = signed_effects.request_headers(
        KEY, id="a", time=1, nonce=NONCE, method="POST", path="/effects", body=BODY
    )
    asked = Asked(method="POST", path="/effects", headers=headers, body=BODY)
    given = signed_effects.answer_headers(KEY, asked, status=200, body=b"{}")

    def holds(asked: Asked, status: int = 200, body: bytes = b"{}") -> bool:
        return signed_effects.is_answer(KEY, asked, status=status, headers=given, body=body)

    assert holds(asked)
    assert not holds(asked, status=500)
    assert not holds(asked, body=b"[]")
    other = {**headers, signed_effects.HEADER_NONCE: NONCE[::-1]}
    assert not holds(Asked(method="POST", path="/effects", headers=other, body=BODY))


def test_it_does_not_start_without_its_key_and_ends_when_told(
    effector: Served, tmp_path: Path
) -> None:
    place = tmp_path / names.FILE_SIGNING_KEY
    assert fails_to_start(MODULE, JR2_VALUES_PATH=str(tmp_path))["reason"] == (
        f"{place} cannot be read"
    )
    place.write_text("c2hvcnQ")
    assert fails_to_start(MODULE, JR2_VALUES_PATH=str(tmp_path))["reason"] == (
        f"{place}: it has fewer than 32 bytes"
    )
    place.write_text(KEY_TEXT)
    with served(MODULE, JR2_VALUES_PATH=str(tmp_path)) as found:
        code, log = found.stop()
    assert code == 0
    assert log[-1]["message"] == "stopped"
