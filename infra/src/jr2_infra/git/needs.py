"""What the bound urls of an Instance need of Secrets with ssh keys, and what is missing of it.

A url that a Machine binds over ssh is cloned with the key in the Secret that its entry names. One
that is missing is asked for, once for each Secret. A push over ssh needs the host's keys beside the
key, and a signature a key of its own; what those lack is a warning, since a run can do all else.

Source: seed 003 (Use an ssh deploy key, Rules), spec/converge.md §9.5, ADR-0051.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jr2 import names, repo_identity
from jr2.config import GitCredential

from ..facts.instance import WorkflowFacts

Secrets = Mapping[str, Mapping[str, Any]]
"""Live Secrets by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SshUrl:
    """A url that a Machine binds over ssh.

    Args:
        url: as it may be printed.
        match: the `match` of its entry; `None` when no entry gives it a key.
        secret: the Secret with the key; `None` when no entry gives it one.
    """

    url: str
    match: str | None
    secret: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyUse:
    """A key of a Secret that a push needs.

    Args:
        match: the `match` of the entry that names the Secret.
        secret: the Secret.
        key: its key.
    """

    match: str
    secret: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingKey:
    """A Secret that ssh urls need and that does not exist.

    Args:
        secret: its name.
        urls: the urls, as they may be printed.
    """

    secret: str
    urls: tuple[str, ...]

    @property
    def listed(self) -> str:
        """The urls, as a text names them."""
        return ", ".join(self.urls)


def ssh_urls(
    workflows: Sequence[WorkflowFacts], credentials: Sequence[GitCredential]
) -> tuple[SshUrl, ...]:
    """Return the urls that are bound over ssh, each once, in the order of the walk.

    Args:
        workflows: what the walk said of each.
        credentials: the config's `git.credentials`.
    """
    found: dict[str, SshUrl] = {}
    for url in _bound(workflows):
        repo = repo_identity.identify(url)
        if repo.way != "ssh":
            continue
        entry = repo_identity.entry_for(repo.identity, credentials)
        secret = None if entry is None else entry.ssh_key
        match = None if entry is None or secret is None else entry.match
        shown = repo_identity.shown(url)
        found.setdefault(shown, SshUrl(url=shown, match=match, secret=secret))
    return tuple(found.values())


def key_uses(
    workflows: Sequence[WorkflowFacts], credentials: Sequence[GitCredential]
) -> tuple[KeyUse, ...]:
    """Return the keys that pushes need, each once, in the order of the config.

    A push whose url comes with a run may fall under any entry.

    Args:
        workflows: what the walk said of each.
        credentials: the config's `git.credentials`.
    """
    urls = [
        push.url
        for workflow in workflows
        for sandbox in workflow.parts.sandboxes
        for push in sandbox.pushes
    ]
    repos = [repo_identity.identify(url) for url in urls if url is not None]
    pushed = {
        (entry.match, repo.way)
        for repo in repos
        if (entry := repo_identity.entry_for(repo.identity, credentials)) is not None
    }
    found: dict[KeyUse, None] = {}
    seen: set[str] = set()
    for entry in credentials:
        if entry.match in seen:
            continue
        seen.add(entry.match)
        ways = {way for match, way in pushed if match == entry.match}
        for use in _uses(entry, ways, any_url=None in urls):
            found[use] = None
    return tuple(found)


def missing_keys(urls: Sequence[SshUrl], live: Secrets) -> tuple[MissingKey, ...]:
    """Return the Secrets that do not exist, each with the urls that need it.

    Args:
        urls: what `ssh_urls` gave.
        live: the live Secrets of the namespace.
    """
    wanted: dict[str, list[str]] = {}
    for one in urls:
        if one.secret is not None and one.secret not in live:
            wanted.setdefault(one.secret, []).append(one.url)
    return tuple(MissingKey(secret=name, urls=tuple(found)) for name, found in wanted.items())


def warnings(
    urls: Sequence[SshUrl], uses: Sequence[KeyUse], live: Secrets, *, namespace: str
) -> tuple[str, ...]:
    """Return what will fail later, each as a whole line.

    Args:
        urls: what `ssh_urls` gave.
        uses: what `key_uses` gave.
        live: the live Secrets of the namespace.
        namespace: the Instance's namespace.
    """
    lines = [
        f'warning: git.credentials "{use.match}": {why} — a push that needs it is refused at '
        "provision until it exists and jr2 up runs again (ADR-0051)"
        for use in uses
        if (why := _lacks(use.secret, use.key, live, namespace)) is not None
    ]
    lines += [
        f"{one.url} is an ssh url and no git.credentials entry names a key for it — its cache "
        "clone will fail unless the host allows anonymous ssh"
        for one in urls
        if one.secret is None
    ]
    lines += [
        f'warning: git.credentials "{one.match}": the Secret "{one.secret}" holds no key '
        f"{names.KEY_SSH_IDENTITY} — {one.url} cannot be cloned until it does (ADR-0051)"
        for one in urls
        if one.secret is not None
        and one.secret in live
        and not _has(live[one.secret], names.KEY_SSH_IDENTITY)
    ]
    return tuple(dict.fromkeys(lines))


def _bound(workflows: Sequence[WorkflowFacts]) -> Iterator[str]:
    for workflow in workflows:
        for repo in workflow.parts.repos:
            yield repo.url
        # A Repo is known by the first spelling that the walk met; a push goes to its own.
        for sandbox in workflow.parts.sandboxes:
            for push in sandbox.pushes:
                if push.url is not None:
                    yield push.url


def _uses(entry: GitCredential, ways: Collection[str], *, any_url: bool) -> Iterator[KeyUse]:
    key = entry.ssh_key if entry.push is None else entry.push.ssh_key
    # An entry that has a token too is there for either kind of url; a run may never bring an ssh one.
    only_ssh = entry.push is not None or entry.token is None
    if key is not None and ("ssh" in ways or (any_url and only_ssh)):
        for name in (names.KEY_SSH_IDENTITY, names.KEY_SSH_KNOWN_HOSTS):
            yield KeyUse(match=entry.match, secret=key, key=name)
    sign = entry.sign
    if sign is not None and (ways or any_url):
        if sign.ssh_key is not None:
            yield KeyUse(match=entry.match, secret=sign.ssh_key, key=names.KEY_SSH_IDENTITY)
        if sign.gpg_key is not None:
            yield KeyUse(match=entry.match, secret=sign.gpg_key, key=names.KEY_GPG)


def _lacks(secret: str, key: str, live: Secrets, namespace: str) -> str | None:
    if secret not in live:
        return f'the Secret "{secret}" does not exist in namespace {namespace}'
    return None if _has(live[secret], key) else f'the Secret "{secret}" holds no key {key}'


def _has(secret: Mapping[str, Any], key: str) -> bool:
    return bool((secret.get("data") or {}).get(key))
