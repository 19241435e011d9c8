"""Tokens of `git.credentials`: which Secrets they make, and what none holds."""

from __future__ import annotations

import base64
import hashlib

import pytest

from jr2.config import GitCredential, GitPush
from jr2.errors import StepFailed
from jr2_infra import closed_list
from jr2_infra.git.tokens import GitToken, read_tokens, token_secret

ENTRIES = (
    GitCredential(match="github.com/you/", token="GITHUB", ssh_key="key"),
    GitCredential(match="gitlab.com/", token="UNSET", push=GitPush(token="PUSH")),
    GitCredential(match="github.com/you/", token="OTHER"),
    GitCredential(match="*"),
)
ENVIRON = {"GITHUB": "CANARY-a", "PUSH": "CANARY-b", "OTHER": "CANARY-c"}


def short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def test_each_entry_whose_variable_is_set_has_a_secret() -> None:
    clone, push = read_tokens(ENTRIES, ENVIRON, clones=True, pushes=True)

    assert clone.line == (
        f'git.credentials "github.com/you/": clone Secret jr2-git-{short("github.com/you/")}'
    )
    assert push.line == (
        f'git.credentials "gitlab.com/": push Secret jr2-git-{short("push:gitlab.com/")}'
    )
    for token in (clone, push):
        assert closed_list.is_instance_object(closed_list.SECRET, token.secret)
        assert "CANARY" not in repr(token)


@pytest.mark.parametrize(
    ("clones", "pushes", "count"), [(False, False, 0), (True, False, 1), (False, True, 1)]
)
def test_a_token_that_nothing_uses_is_not_written(clones: bool, pushes: bool, count: int) -> None:
    assert len(read_tokens(ENTRIES, ENVIRON, clones=clones, pushes=pushes)) == count


def test_a_variable_that_is_not_set_or_empty_gives_none() -> None:
    environ = {"GITHUB": "", "OTHER": "x"}
    # The second entry with the same match never wins, so its token is nobody's.
    assert read_tokens(ENTRIES, environ, clones=True, pushes=True) == ()


def test_the_secret_holds_the_user_that_every_host_takes() -> None:
    secret = token_secret("demo", "space", GitToken(match="*", use="clone", value="CANARY"))
    data = {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}
    assert data == {"username": "x-access-token", "password": "CANARY"}
    assert secret["metadata"]["namespace"] == "space"
    assert secret["metadata"]["labels"]["jr2.dev/instance"] == "demo"
    assert "CANARY" not in str(secret["metadata"])


@pytest.mark.parametrize(
    "value", ["CANARY\n", " CANARY", "CANARY ", "CAN\r\nARY", "CANARÝ", "\x7f"]
)
@pytest.mark.parametrize(
    ("path", "entry"),
    [
        ("token", GitCredential(match="*", token="TOKEN")),
        ("push.token", GitCredential(match="*", push=GitPush(token="TOKEN"))),
    ],
)
def test_a_token_that_no_header_carries_is_refused_and_not_shown(
    value: str, path: str, entry: GitCredential
) -> None:
    with pytest.raises(StepFailed) as raised:
        read_tokens([entry], {"TOKEN": value}, clones=True, pushes=True)
    assert raised.value.printed == (
        f"error: git.credentials[0].{path}: TOKEN holds a character a header cannot carry (outside "
        "printable ASCII) or leading or trailing space — a pasted newline, most likely; the value "
        "itself is not shown — correct TOKEN in .env (ADR-0051)"
    )
