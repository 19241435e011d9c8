"""What `jr2 check` says of pushes and of the entries of `git.credentials` that pay for them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jr2.config import Config, Git, GitCredential
from jr2_infra import check
from tests.unit.infra.machine_folders import instance, refused

if TYPE_CHECKING:
    from tests.reporter import Reporter
    from tests.unit.infra.conftest import MakeInstance


def pushing(make_instance: MakeInstance, url: str, credential: str) -> Path:
    machine = f'wrap(body(effects={{"p": Push(repo="app")}}), repos={{"app": {url}}})'
    root = instance(make_instance, machine)
    (root / "jr2_config.py").write_text(
        f"from jr2 import *\nconfig = Config(git=Git(credentials=[GitCredential({credential})]))\n"
    )
    return root


@pytest.mark.parametrize(
    ("url", "credential", "why"),
    [
        (
            "git@github.com:acme/app.git",
            'match="*", token="UNSET"',
            'git.credentials entry "*" cannot push — it names no ssh_key for a url over ssh — add '
            "one, or a `push` with one (ADR-0051)",
        ),
        (
            "https://github.com/acme/app",
            'match="*", ssh_key="k"',
            'git.credentials entry "*" cannot push — it names no token for a url over https — add '
            "one, or a `push` with one (ADR-0051)",
        ),
        (
            "https://github.com/acme/app",
            'match="*", token="SET", push=GitPush(token="UNSET")',
            'git.credentials entry "*" cannot push — its token\'s variable UNSET is not set — set it '
            "in .env (ADR-0051)",
        ),
        (
            "https://me@github.com/acme/app",
            'match="gitlab.com/", token="UNSET"',
            'no git.credentials entry matches "github.com/acme/app" (entries: "gitlab.com/") — a '
            "push spends a credential: add an entry with one (ADR-0051)",
        ),
    ],
)
def test_a_push_that_no_credential_pays_for(
    make_instance: MakeInstance,
    said: Reporter,
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    credential: str,
    why: str,
) -> None:
    monkeypatch.setenv("SET", "CANARY")
    shown = url.replace("me@", "")
    assert refused(pushing(make_instance, f'"{url}"', credential), said) == [
        f'error: Workspace of workflow "w": the push of Repo Slot "app" ({shown}): {why}'
    ]


@pytest.mark.parametrize(
    ("url", "credential"),
    [
        ('"https://github.com/acme/app"', 'match="*", token="UNSET", push=GitPush(ssh_key="k")'),
        ('"git@github.com:acme/app.git"', 'match="*", token="UNSET", ssh_key="k"'),
        ("lambda door: door.branch", 'match="gitlab.com/", token="UNSET"'),
    ],
)
def test_a_push_that_needs_no_token_or_whose_url_comes_with_a_run_is_not_judged(
    make_instance: MakeInstance, said: Reporter, url: str, credential: str
) -> None:
    check.check(pushing(make_instance, url, credential), said)


@pytest.mark.parametrize(
    ("credential", "text"),
    [
        (
            'match="*", ssh_key="jr2-instance"',
            'git.credentials[0].ssh_key names Secret "jr2-instance", which jr2 writes itself — name '
            "a Secret of your own (ADR-0051)",
        ),
        (
            'match="*", push=GitPush(ssh_key="jr2-git-0123abcd")',
            'git.credentials[0].push.ssh_key names Secret "jr2-git-0123abcd", which jr2 writes '
            "itself — name a Secret of your own (ADR-0051)",
        ),
        (
            'match="*", sign=GitSign(gpg_key="GPG_KEY", name="n", email="e")',
            'git.credentials[0].sign.gpg_key is "GPG_KEY", and no Secret can have that name: a-z, '
            '0-9, "-" and "." alone, with a letter or a digit at each end (ADR-0051)',
        ),
    ],
)
def test_a_secret_that_nobody_can_name(
    make_instance: MakeInstance, said: Reporter, credential: str, text: str
) -> None:
    root = pushing(make_instance, "lambda door: door.branch", credential)
    assert refused(root, said) == [f"error: {text}"]


@pytest.mark.parametrize(
    ("match", "warns"),
    [
        ("https://github.com/you/", True),
        ("git@github.com:you/", True),
        ("GitHub.com/you/", True),
        ("github.com/you/ ", True),
        ("github.com//you/", True),
        ("github.com/You/", False),
        ("github.com:2222/you/", False),
        ("*", False),
        ("/srv/git/", False),
    ],
)
def test_a_match_that_no_repo_has_is_warned_about(match: str, warns: bool) -> None:
    config = Config(git=Git(credentials=[GitCredential(match=match)]))
    said = check.config_warnings(config)
    assert bool(said) == warns
    assert all(
        line.startswith(f'git.credentials[0].match: "{match}" matches no Repo') for line in said
    )


def test_a_match_that_stands_twice_is_warned_about() -> None:
    config = Config(git=Git(credentials=[GitCredential(match="a/"), GitCredential(match="a/")]))
    assert check.config_warnings(config) == [
        'git.credentials[1].match: "a/" stands twice, and the first entry wins'
    ]
