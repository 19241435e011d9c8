"""Secrets for git on a real API server, by the real engine: tokens come, are renewed and go.

A key is made once: from then on it is the person's, whatever the Instance wants.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from jr2_infra import closed_list
from jr2_infra.git import DeployKey, GitWants
from jr2_infra.git.keys import generate
from jr2_infra.git.needs import SshUrl
from jr2_infra.git.tokens import GitToken
from tests.apiserver.derived.converged import Converged
from tests.apiserver.server import ApiServer

NUMBERS = itertools.count(1)
TOKEN = GitToken(match="github.com/you/", use="clone", value="CANARY-first")
URL = SshUrl(url="git@github.com:you/app.git", match=TOKEN.match, secret="deploy")
KEY = DeployKey(secret="deploy", urls=(URL.url,), pair=generate(), generated=True)


@pytest.fixture
def converged(api_server: ApiServer) -> Iterator[Converged]:
    name = f"git-secrets-{next(NUMBERS)}"
    api_server.add_namespace(name)
    with Converged(api_server, name) as made:
        yield made


def data(converged: Converged, name: str) -> dict[str, str] | None:
    found: Any = converged.api.get(closed_list.SECRET.path(converged.name, name))
    if found is None:
        return None
    return {key: base64.b64decode(text).decode() for key, text in found["data"].items()}


def wants(converged: Converged, git: GitWants) -> None:
    converged.world.wants = replace(converged.world.wants, git=git)


def test_tokens_come_are_renewed_and_go_and_a_key_stays(converged: Converged) -> None:
    wants(converged, GitWants(tokens=(TOKEN,), urls=(URL,), keys=(KEY,)))
    converged.heal(converged.look())

    assert data(converged, TOKEN.secret) == {"username": "x-access-token", "password": TOKEN.value}
    key = {"identity": KEY.pair.private, "identity.pub": f"{KEY.pair.public}\n"}
    assert data(converged, "deploy") == key

    # The next run was given no key, and finds all as it should be; the engine says the same.
    wants(converged, GitWants(tokens=(TOKEN,), urls=(URL,)))
    look = converged.look()
    assert (look.verdict(), look.plan.drift) == ({}, ())
    assert converged.preview(look) == {}

    renewed = replace(TOKEN, value="CANARY-second")
    wants(converged, GitWants(tokens=(renewed,), urls=(URL,)))
    look = converged.look()
    assert look.verdict() == {f"secret-{TOKEN.secret}": "update"}
    converged.heal(look)
    assert data(converged, TOKEN.secret) == {
        "username": "x-access-token",
        "password": renewed.value,
    }

    wants(converged, GitWants(urls=(URL,)))
    look = converged.look()
    assert list(look.verdict().values()) == ["delete"]
    converged.heal(look)
    assert data(converged, TOKEN.secret) is None
    assert data(converged, "deploy") == key
    assert converged.look().verdict() == {}


def test_a_token_that_somebody_changed_is_named_and_healed(converged: Converged) -> None:
    wants(converged, GitWants(tokens=(TOKEN,)))
    converged.apply(converged.look())
    path = closed_list.SECRET.path(converged.name, TOKEN.secret)
    evil = base64.b64encode(b"theirs").decode()
    converged.server.run_kubectl(
        "-n", converged.name, "patch", "secret", TOKEN.secret, "--type", "merge",
        "-p", f'{{"data": {{"password": "{evil}", "more": "{evil}"}}}}',
    )  # fmt: skip

    look = converged.look()
    assert look.plan.drift == (
        f"drift: Secret {TOKEN.secret} in {converged.name}: data.password was changed by kubectl-patch — set "
        "back",
        f'drift: Secret {TOKEN.secret} in {converged.name}: Secret key "more", put there by "kubectl-patch" — '
        "taken away",
    )
    converged.heal(look)
    found: Any = converged.api.get(path)
    assert found is not None
    assert data(converged, TOKEN.secret) == {"username": "x-access-token", "password": TOKEN.value}
