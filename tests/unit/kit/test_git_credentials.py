"""What an entry of `git.credentials` gives: a name for its Secret, and the fence."""

from __future__ import annotations

import re

import pytest

from jr2 import git_credentials
from jr2.config import GitCredential
from jr2.repo_identity import RepoUrlError

ENTRIES = [GitCredential(match="github.com/you/"), GitCredential(match="gitlab.example.com/team/")]


def test_a_secret_is_named_by_its_match() -> None:
    # A name of an earlier run must be the name of this one.
    assert git_credentials.clone_secret("*") == "jr2-git-684888c0"
    found = [git_credentials.clone_secret(match) for match in ("*", "a", "push:a")]
    found += [git_credentials.push_secret(match) for match in ("*", "a")]
    assert all(re.fullmatch("jr2-git-[0-9a-f]{8}", name) for name in found)
    assert len(set(found[:2] + found[3:])) == 4


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/you/app.git",
        "git@github.com:you/app",
        "ssh://git@GitHub.com:22/you/app",
        "https://gitlab.example.com/team/a/b",
    ],
)
def test_a_url_that_an_entry_admits_passes_the_fence(url: str) -> None:
    assert git_credentials.fence_refusal("sandbox-1", "app", url, ENTRIES) is None


@pytest.mark.parametrize(
    ("url", "identity"),
    [
        ("https://evil.example/you/app", "evil.example/you/app"),
        ("https://github.com/other/app", "github.com/other/app"),
        ("https://github.com/youth/app", "github.com/youth/app"),
        ("https://github.com:444/you/app", "github.com:444/you/app"),
        ("git@github.com.evil.example:you/app", "github.com.evil.example/you/app"),
        ("/srv/git/app", "/srv/git/app"),
    ],
)
def test_a_url_that_none_admits_is_refused(url: str, identity: str) -> None:
    assert git_credentials.fence_refusal("sandbox-1", "app", url, ENTRIES) == (
        f'Sandbox "sandbox-1" refuses the per-run repo {url} for slot "app": no git.credentials '
        f'entry matches "{identity}" (entries: "github.com/you/", "gitlab.example.com/team/"). A '
        "per-run url can spend the cluster's credential against any host, so jr2_config.py must "
        "admit it by prefix (ADR-0051)."
    )


def test_without_an_entry_no_url_passes_and_with_a_star_each_does() -> None:
    url = "https://me@h/a"
    text = git_credentials.fence_refusal("s", "app", url, [])
    assert text is not None
    assert "(entries: none)" in text
    assert "me@" not in text
    star = [GitCredential(match="*")]
    assert git_credentials.fence_refusal("s", "app", url, star) is None


def test_what_could_mean_another_repository_is_no_url() -> None:
    with pytest.raises(RepoUrlError):
        git_credentials.fence_refusal("s", "app", "https://github.com/you/../other/app", ENTRIES)
