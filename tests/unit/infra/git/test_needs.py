"""Which Secrets with ssh keys an Instance needs, decided from its urls and entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jr2.config import GitCredential, GitPush, GitSign
from jr2_infra.git import needs
from jr2_infra.git.needs import KeyUse, SshUrl
from jr2_infra.git.wants import named_secrets

if TYPE_CHECKING:
    from tests.unit.infra.git.conftest import MakeWorkflow

ENTRIES = (
    GitCredential(match="*", ssh_key="any"),
    GitCredential(match="h/you/", token="T", ssh_key="you"),
    GitCredential(match="h/you/special", ssh_key="special"),
    GitCredential(match="h/you/special", ssh_key="never"),
    GitCredential(match="h/none/"),
)


@pytest.mark.parametrize(
    ("url", "match", "secret"),
    [
        ("git@h:you/app.git", "h/you/", "you"),
        ("ssh://git@h/you/app", "h/you/", "you"),
        ("git+ssh://git@H:22/you/app/", "h/you/", "you"),
        # The longest prefix wins, and of two equal ones the first.
        ("git@h:you/special", "h/you/special", "special"),
        ("git@h:you/specially", "h/you/special", "special"),
        ("git@h:yours/app", "*", "any"),
        ("ssh://git@h:2222/you/app", "*", "any"),
        # An entry without a key wins all the same, so `*` does not pay for it.
        ("git@h:none/app", None, None),
    ],
)
def test_an_ssh_url_finds_the_key_of_its_entry(
    make_workflow: MakeWorkflow, url: str, match: str | None, secret: str | None
) -> None:
    (found,) = needs.ssh_urls([make_workflow(url)], ENTRIES)
    assert (found.match, found.secret) == (match, secret)
    # A user before the host is no secret in the scp form, and goes from a url.
    assert found.url == url.replace("ssh://git@", "ssh://")


def test_without_entries_no_url_has_a_key(make_workflow: MakeWorkflow) -> None:
    assert needs.ssh_urls([make_workflow("git@h:a/b")], ()) == (
        SshUrl(url="git@h:a/b", match=None, secret=None),
    )


def test_other_ways_need_no_key(make_workflow: MakeWorkflow) -> None:
    workflow = make_workflow("https://h/you/a", "http://h/you/b", "git://h/you/c", "/srv/d")
    assert needs.ssh_urls([workflow], ENTRIES) == ()


def test_the_urls_of_one_secret_are_asked_for_together(make_workflow: MakeWorkflow) -> None:
    workflows = [
        make_workflow("git@h:you/a", "git@x:b/c"),
        # A slot that is pushed by another spelling than the first one of its Repo.
        make_workflow("git@h:you/a", "https://h/you/e", pushes=["git@h:you/e", None]),
    ]
    urls = needs.ssh_urls(workflows, ENTRIES)
    missing = {one.secret: one.urls for one in needs.missing_keys(urls, {})}
    assert missing == {"you": ("git@h:you/a", "git@h:you/e"), "any": ("git@x:b/c",)}
    assert [one.listed for one in needs.missing_keys(urls, {"any": {}})] == [
        "git@h:you/a, git@h:you/e"
    ]


IDENTITY, KNOWN = "identity", "known_hosts"


def uses(*found: tuple[str, str, str]) -> tuple[KeyUse, ...]:
    return tuple(KeyUse(match=match, secret=secret, key=key) for match, secret, key in found)


@pytest.mark.parametrize(
    ("entries", "pushes", "found"),
    [
        # Nothing pushes: nothing is looked at.
        ([GitCredential(match="*", ssh_key="k")], [], ()),
        (
            [GitCredential(match="*", ssh_key="k")],
            ["git@h:a/b"],
            uses(("*", "k", IDENTITY), ("*", "k", KNOWN)),
        ),
        # Over https a token pushes.
        ([GitCredential(match="*", token="T", ssh_key="k")], ["https://h/a/b"], ()),
        (
            [GitCredential(match="*", ssh_key="k", push=GitPush(ssh_key="p"))],
            ["git@h:a/b"],
            uses(("*", "p", IDENTITY), ("*", "p", KNOWN)),
        ),
        ([GitCredential(match="*", ssh_key="k", push=GitPush(token="T"))], ["git@h:a/b"], ()),
        # An entry that no push falls under needs nothing.
        ([GitCredential(match="x/", push=GitPush(ssh_key="p"))], ["git@h:a/b"], ()),
        (
            [
                GitCredential(match="*", token="T", sign=GitSign(gpg_key="g", name="n", email="e")),
                GitCredential(match="x/", sign=GitSign(ssh_key="s", name="n", email="e")),
            ],
            ["https://h/a/b"],
            uses(("*", "g", "git.asc")),
        ),
        # A url that comes with a run may fall under any entry, and be of either kind.
        (
            [
                GitCredential(match="*", token="T", ssh_key="k"),
                GitCredential(match="x/", ssh_key="only"),
                GitCredential(match="y/", token="T", push=GitPush(ssh_key="p")),
                GitCredential(match="z/", sign=GitSign(ssh_key="s", name="n", email="e")),
                GitCredential(match="z/", ssh_key="never"),
            ],
            [None],
            uses(
                ("x/", "only", IDENTITY),
                ("x/", "only", KNOWN),
                ("y/", "p", IDENTITY),
                ("y/", "p", KNOWN),
                ("z/", "s", IDENTITY),
            ),
        ),
    ],
)
def test_what_pushes_need_of_secrets(
    make_workflow: MakeWorkflow,
    entries: list[GitCredential],
    pushes: list[str | None],
    found: tuple[KeyUse, ...],
) -> None:
    urls = [url for url in pushes if url is not None]
    assert needs.key_uses([make_workflow(*urls, pushes=pushes)], entries) == found


def test_each_secret_that_an_entry_names_is_read() -> None:
    entries = (
        *ENTRIES,
        GitCredential(
            match="p",
            push=GitPush(ssh_key="push"),
            sign=GitSign(gpg_key="gpg", name="n", email="e"),
        ),
        GitCredential(match="s", sign=GitSign(ssh_key="sign", name="n", email="e")),
    )
    assert named_secrets(entries) == {
        "any", "you", "special", "never", "push", "gpg", "sign"
    }  # fmt: skip
