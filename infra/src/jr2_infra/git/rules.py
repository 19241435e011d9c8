"""What `git.credentials` and the pushes of Machines must meet, before any cluster is read.

A push to a url that a Machine binds needs a credential, and one over https its token. A Secret that
the config names is a person's own: never one that jr2 writes itself, and a name that Kubernetes
takes.

Source: seed 003 (Rules), spec/authoring.md §3.3 and §5 item 10, ADR-0051.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from jr2 import repo_identity
from jr2.config import GitCredential
from jr2.config_names import is_object_name
from jr2.walk import Problem, WalkedPush

from ..closed_list import SECRET, is_instance_object
from ..facts.instance import WorkflowFacts
from .wants import secret_fields


def problems(
    workflows: Sequence[WorkflowFacts],
    credentials: Sequence[GitCredential],
    environ: Mapping[str, str],
) -> list[Problem]:
    """Return every rule that is not met.

    Args:
        workflows: what the walk said of each.
        credentials: the config's `git.credentials`.
        environ: the variables that `.env` has filled.
    """
    return [
        Problem(prefix="error: ", message=text, rule="push")
        for texts in (_names(credentials), _pushes(workflows, credentials, environ))
        for text in texts
    ]


def warnings(credentials: Sequence[GitCredential]) -> list[str]:
    """Return what is legal in `git.credentials` and still not what was meant, without the prefix."""
    found: list[str] = []
    seen: set[str] = set()
    for index, entry in enumerate(credentials):
        where = f"git.credentials[{index}].match"
        host = entry.match.partition("/")[0]
        if entry.match in seen:
            found.append(f'{where}: "{entry.match}" stands twice, and the first entry wins')
        elif _matches_nothing(entry.match, host):
            found.append(
                f'{where}: "{entry.match}" matches no Repo — an identity is host and path, with no '
                "scheme, no user and no space, and its host in lower case, such as github.com/you/"
            )
        seen.add(entry.match)
    return found


def _matches_nothing(match: str, host: str) -> bool:
    return (
        "://" in match
        or "@" in host
        or host != host.lower()
        or re.search(r"\s|//", match) is not None
    )


def _names(credentials: Sequence[GitCredential]) -> Iterator[str]:
    for path, name in secret_fields(credentials):
        if is_instance_object(SECRET, name):
            yield (
                f'{path} names Secret "{name}", which jr2 writes itself — name a Secret of your own '
                "(ADR-0051)"
            )
        elif not is_object_name(name):
            yield (
                f'{path} is "{name}", and no Secret can have that name: a-z, 0-9, "-" and "." '
                "alone, with a letter or a digit at each end (ADR-0051)"
            )


def _pushes(
    workflows: Sequence[WorkflowFacts],
    credentials: Sequence[GitCredential],
    environ: Mapping[str, str],
) -> Iterator[str]:
    for workflow in workflows:
        for sandbox in workflow.parts.sandboxes:
            route = "".join(f' → "{state}"' for state in sandbox.route)
            for push in sandbox.pushes:
                why = None if push.url is None else _cannot(push.url, credentials, environ)
                if why is not None:
                    yield f'Workspace of workflow "{workflow.name}"{route}: {_named(push)}: {why}'


def _named(push: WalkedPush) -> str:
    return f'the push of Repo Slot "{push.slot}" ({repo_identity.shown(push.url or "")})'


def _cannot(
    url: str, credentials: Sequence[GitCredential], environ: Mapping[str, str]
) -> str | None:
    """Return why nothing can be pushed to a url, or `None`."""
    repo = repo_identity.identify(url)
    entry = repo_identity.entry_for(repo.identity, credentials)
    if entry is None:
        listed = ", ".join(f'"{one.match}"' for one in credentials) or "none"
        return (
            f'no git.credentials entry matches "{repo.identity}" (entries: {listed}) — a push '
            "spends a credential: add an entry with one (ADR-0051)"
        )
    cannot = f'git.credentials entry "{entry.match}" cannot push — '
    over_https = repo.way in ("https", "http")
    if entry.push is None and (entry.token if over_https else entry.ssh_key) is None:
        field = "token" if over_https else "ssh_key"
        return (
            f"{cannot}it names no {field} for a url over {repo.way} — add one, or a `push` with one "
            "(ADR-0051)"
        )
    token = entry.token if entry.push is None else entry.push.token
    if over_https and token is not None and not environ.get(token):
        return f"{cannot}its token's variable {token} is not set — set it in .env (ADR-0051)"
    return None
