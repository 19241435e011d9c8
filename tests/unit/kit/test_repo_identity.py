"""Repo identities: which urls are one Repo, which are none, and which credential one falls under."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jr2 import repo_identity
from jr2.repo_identity import RepoUrlError, identify

SAME = {
    "github.com/acme/app": [
        "https://github.com/acme/app.git",
        "https://github.com/acme/app",
        "https://github.com/acme/app/",
        "https://github.com//acme//app.git/",
        "https://GitHub.COM/acme/app",
        "HTTPS://github.com:443/acme/app",
        "https://github.com:/acme/app",
        "https://github.com:0443/acme/app",
        "https://github.com./acme/app",
        "https://me@github.com/acme/app.git",
        "http://github.com:80/acme/app",
        "ssh://git@github.com/acme/app.git",
        "ssh://git@github.com:22/acme/app.git",
        "git+ssh://git@github.com/acme/app",
        "git://github.com:9418/acme/app",
        "git@github.com:acme/app.git",
        "git@GitHub.com:/acme/app",
    ],
    "github.com/Acme/App": ["git@github.com:Acme/App.git"],
    "github.com/acme/app.git": ["https://github.com/acme/app.git.git"],
    "github.com/acme/.git": ["https://github.com/acme/.git"],
    "github.com:8443/acme/app": ["https://github.com:8443/acme/app"],
    "github.com:443/acme/app": ["ssh://git@github.com:443/acme/app"],
    "github.com:22/acme/app": ["https://github.com:22/acme/app"],
    "github.com/2222/app": ["git@github.com:2222/app"],
    "host/~me/app": ["git@host:~me/app.git", "ssh://git@host/~me/app.git"],
    "[::1]/app": [
        "ssh://git@[::1]/app",
        "git@[::1]:app",
        "git@[0:0:0:0:0:0:0:1]:app",
        "https://[::0001]:443/app",
    ],
    "[2001:db8::1:0:0:1]/app": [
        "https://[2001:DB8:0:0:1::1]/app",
        "https://[2001:0db8::1:0000:0:1]/app.git",
    ],
    "[::ffff:192.0.2.1]/app": [
        "https://[::ffff:192.0.2.1]/app",
        "https://[::FFFF:c000:201]/app",
        "git@[0:0:0:0:0:ffff:c000:0201]:app",
    ],
    "[fe80::1]:2222/app": ["ssh://git@[FE80::1]:2222/app"],
    "10.0.0.7/a/b/c": ["http://10.0.0.7/a/b/c.git"],
    "/srv/git/app": ["/srv/git/app", "/srv//git/app/", "file:///srv/git/app"],
    "/srv/git/app.git": ["file:///srv/git/app.git", "file://localhost/srv/git/app.git"],
}
WAYS = {
    "https://h/a": "https",
    "http://h/a": "http",
    "ssh://h/a": "ssh",
    "git+ssh://h/a": "ssh",
    "u@h:a": "ssh",
    "git://h/a": "git",
    "/a": "file",
    "file:///a": "file",
}
SAMPLE = 'write one such as "https://github.com/you/app.git"'
NEITHER = f"is neither a url, nor user@host:path, nor an absolute path; {SAMPLE}"
ELSEWHERE = "which can lead elsewhere"
WRONG = {
    "app": NEITHER,
    "./app": NEITHER,
    "../app": NEITHER,
    "~/app": NEITHER,
    "github.com/acme/app": NEITHER,
    "github.com:acme/app": NEITHER,
    "C:/app": NEITHER,
    "ftp://h/a": 'has the scheme "ftp", and jr2 takes https, http, ssh, git+ssh, git, file',
    "ext::sh -c id": "holds a space, a backslash or a control character",
    "https://h/a\n": "holds a space, a backslash or a control character",
    "https://h\\@evil/a": "holds a space, a backslash or a control character",
    "https:///a": "has no host",
    "git@:a": "has no host",
    "https://h": "has no path",
    "https://h/": "has no path",
    "https://h/.git": "has no path",
    "git@h:": "has no path",
    "file:///": "has no path",
    "/": "has no path",
    "file://h/a": "names a host, and a file url has none; three slashes start its path",
    "https://h:0/a": "has a port that is not in 1–65535",
    "https://h:65536/a": "has a port that is not in 1–65535",
    "https://h:x/a": "has a host that cannot be read",
    "https://a:b:c/x": "has a host that cannot be read",
    "https://[::1/a": "has a host that cannot be read",
    "https://[1::2::3]/a": "has a host that is neither a DNS name in ASCII nor an IP address",
    "git@[12345::]:a": "has a host that is neither a DNS name in ASCII nor an IP address",
    "https://[192.0.2.1]/a": "has a host that is neither a DNS name in ASCII nor an IP address",
    "https://münchen.de/a": "has a host that is neither a DNS name in ASCII nor an IP address",
    "ssh://-oProxyCommand=id/a": "has a host that is neither a DNS name in ASCII nor an IP address",
    "git@-oProxyCommand=id:a": "has a host that is neither a DNS name in ASCII nor an IP address",
    "ssh://-x@h/a": "has a user that starts with a hyphen",
    "-x@h:a": "has a user that starts with a hyphen",
    "https://h/a?b": "has a query or a fragment",
    "https://h/a#b": "has a query or a fragment",
    "https://h/acme/../evil/a": f'has the path segment "..", {ELSEWHERE}',
    "https://h/acme/%2e%2E/evil/a": f'has the path segment "%2e%2E", {ELSEWHERE}',
    "https://h/acme/a%2fb": f'has the path segment "a%2fb", {ELSEWHERE}',
    "git@h:acme/./a": f'has the path segment ".", {ELSEWHERE}',
    "/srv/../a": f'has the path segment "..", {ELSEWHERE}',
}


@pytest.mark.parametrize("identity", SAME)
def test_these_urls_are_one_repo(identity: str) -> None:
    found = {url: repo_identity.identity(url) for url in SAME[identity]}

    assert set(found.values()) == {identity}, found


@pytest.mark.parametrize("url", WAYS)
def test_the_scheme_says_which_credential_it_takes(url: str) -> None:
    assert identify(url).way == WAYS[url]


@pytest.mark.parametrize("url", WRONG)
def test_what_is_no_url_of_a_repository(url: str) -> None:
    with pytest.raises(RepoUrlError) as raised:
        identify(url)

    assert str(raised.value).endswith(f'" {WRONG[url]}')


def test_an_empty_url() -> None:
    with pytest.raises(RepoUrlError) as raised:
        identify("")

    assert str(raised.value) == f"a repository url is empty — {SAMPLE}"


@pytest.mark.parametrize(
    "url", ["https://x:CANARY@h/a", "https://CANARY@h/a?b", "ssh://CANARY@h", "ftp://CANARY@h/a"]
)
def test_no_user_and_no_password_is_printed(url: str) -> None:
    with pytest.raises(RepoUrlError) as raised:
        identify(url)

    assert "CANARY" not in str(raised.value)


@pytest.mark.parametrize(
    "user",
    [
        "x:CANARY",
        ":CANARY",
        "ghp_CANARYCANARYCANARY12",
        "github_pat_CANARYCANARY_CANARY",
        "glpat-CANARY-CANARY_CANARY",
        "glpat%2DCANARY-CANARY_CANARY",
    ],
)
def test_a_password_or_a_token_is_refused(user: str) -> None:
    with pytest.raises(RepoUrlError) as raised:
        identify(f"https://{user}@github.com/acme/app")

    assert str(raised.value) == (
        'the repository url "https://github.com/acme/app" holds a password: give it as the token '
        "of an entry in git.credentials (ADR-0051)"
    )


@pytest.mark.parametrize(
    "user", ["git", "me", "acme-org", "gh", "global-engineering-team", "ghp_me"]
)
def test_a_user_is_no_part_of_an_identity(user: str) -> None:
    assert repo_identity.identity(f"https://{user}@github.com/acme/app") == "github.com/acme/app"


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://github.com/acme/app.git", "app-98d9fc12"),
        ("git@github.com:acme/app", "app-98d9fc12"),
        ("https://github.com/acme/App", "app-"),
        ("https://h/a/" + "x" * 60, "x" * 40 + "-"),
        ("https://h/a/My_Repo.v2", "my-repo-v2-"),
        ("https://h/a/___", "repo-"),
        ("https://h/a/日本", "repo-"),
    ],
)
def test_the_key(url: str, key: str) -> None:
    found = identify(url).key

    assert found.startswith(key)
    assert len(found) <= 49
    assert found.replace("-", "").isalnum()


def test_keys_of_two_repos_of_one_name_differ() -> None:
    urls = ["https://h/a/app", "https://h/b/app", "https://h/a/App", "https://h:1/a/app"]

    assert len({identify(url).key for url in urls}) == len(urls)


@dataclass(frozen=True)
class Entry:
    match: str
    token: str = ""


@pytest.mark.parametrize(
    ("identity", "token"),
    [
        ("github.com/acme/app", "acme"),
        ("github.com/acme/secret/app", "secret"),
        ("github.com/other/app", "github"),
        ("github.community/x", "any"),
        ("gitlab.com/acme/app", "any"),
    ],
)
def test_the_longest_match_wins_then_the_first(identity: str, token: str) -> None:
    entries = [
        Entry("*", "any"),
        Entry("github.com/", "github"),
        Entry("github.com/acme/", "acme"),
        Entry("github.com/acme/", "second"),
        Entry("*", "second"),
        Entry("github.com/acme/secret/", "secret"),
    ]

    found = repo_identity.entry_for(identity, entries)

    assert found is not None
    assert found.token == token


def test_no_entry_matches() -> None:
    assert repo_identity.entry_for("h/a", []) is None
    assert repo_identity.entry_for("h/a", [Entry("g/")]) is None


@given(st.text())
def test_any_text_is_a_repo_or_is_refused(text: str) -> None:
    try:
        found = identify(text)
    except RepoUrlError:
        return
    assert ".." not in found.identity.split("/")
    assert not found.identity.endswith("/")


@given(
    st.from_regex(r"[a-z][a-z0-9]{0,9}\.[a-z]{2,3}", fullmatch=True),
    st.lists(st.from_regex(r"[A-Za-z0-9_~-]{1,9}", fullmatch=True), min_size=1, max_size=4),
)
def test_each_way_to_a_repository_gives_its_identity(host: str, parts: list[str]) -> None:
    path = "/".join(parts)
    urls = [f"https://{host}/{path}.git", f"ssh://git@{host}/{path}", f"git@{host}:{path}/"]

    assert {repo_identity.identity(url) for url in urls} == {f"{host}/{path}"}
