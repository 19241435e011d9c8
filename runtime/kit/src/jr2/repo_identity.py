"""What a repository is, whichever way its url is written: host and path, and nothing else.

Repo Slots, the fence of `git.credentials`, the Repo cache and its keys all compare identities, so
two spellings of one repository are one Repo. A url that could mean another repository to a git
server than its identity says is refused: a path with `..`, a query, a host that ssh would take for
an option. The user of a url is no part of its identity and is never printed; a password is refused, and so is
a token in the place of a user, since a url is written into objects that many may read.

Source: spec/authoring.md §3.4, seed 003 (How an entry matches a Repo), ADR-0051, ADR-0137.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeVar
from urllib.parse import unquote

Way = Literal["https", "http", "ssh", "git", "file"]
"""How a url reaches its repository; it decides which credential an entry gives."""

_SCHEMES: Final[dict[str, Way]] = {
    "https": "https",
    "http": "http",
    "ssh": "ssh",
    "git+ssh": "ssh",
    "git": "git",
    "file": "file",
}
_PORTS: Final[dict[Way, int]] = {"https": 443, "http": 80, "ssh": 22, "git": 9418}
_URL: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)", re.S)
_SCP: Final = re.compile(r"(?P<user>[^@/:]+)@(?P<host>\[[^\]/]*\]|[^:/\[\]]*):(?P<path>.*)", re.S)
_PLACE: Final = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]*))?")
_HOST: Final = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\]")
_SAMPLE: Final = 'write one such as "https://github.com/you/app.git"'
_LONGEST_SLUG: Final = 40
_TOKEN: Final = re.compile(r"(?:gh[oprsu]_|github_pat_|gl(?:pat|dt|ptt|oas)-)[A-Za-z0-9_.-]{16,}")


class RepoUrlError(ValueError):
    """A text is no url of a repository; the message says why, and never holds its user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoIdentity:
    """Where a url leads.

    Args:
        way: how it is reached.
        identity: `host/path`, or an absolute path of a local repository.
    """

    way: Way
    identity: str

    @property
    def key(self) -> str:
        """A name for the repository that is legal in Kubernetes and differs for each identity."""
        last = self.identity.rsplit("/", 1)[-1].lower()
        slug = re.sub(r"[^a-z0-9]+", "-", last)[:_LONGEST_SLUG].strip("-") or "repo"
        return f"{slug}-{hashlib.sha256(self.identity.encode()).hexdigest()[:8]}"


def identify(url: str) -> RepoIdentity:
    """Return what a url identifies.

    Args:
        url: an https, http, ssh, git+ssh, git or file url, `user@host:path`, or an absolute path.

    Raises:
        RepoUrlError: it is none of these, or it could mean another repository than it says.
    """
    if not url:
        raise RepoUrlError(f"a repository url is empty — {_SAMPLE}")
    if re.search(r"[\s\x00-\x1f\x7f\\]", url):
        raise _wrong(url, "holds a space, a backslash or a control character")
    if url.startswith("/"):
        return RepoIdentity(way="file", identity=_local(url, url))
    match = _URL.fullmatch(url)
    if match is not None:
        way = _SCHEMES.get(match["scheme"].lower())
        if way is None:
            known = ", ".join(_SCHEMES)
            raise _wrong(url, f'has the scheme "{match["scheme"]}", and jr2 takes {known}')
        if way == "file":
            return RepoIdentity(way="file", identity=_local(url, match["rest"]))
        return _remote(url, way, match["rest"])
    match = _SCP.fullmatch(url)
    if match is not None:
        if match["user"].startswith("-"):
            raise _wrong(url, "has a user that starts with a hyphen")
        host = _host(url, match["host"])
        return RepoIdentity(way="ssh", identity=f"{host}/{_path(url, match['path'])}")
    raise _wrong(url, f"is neither a url, nor user@host:path, nor an absolute path; {_SAMPLE}")


def identity(url: str) -> str:
    """Return the identity of a url: `host/path`, or an absolute path.

    Raises:
        RepoUrlError: as `identify`.
    """
    return identify(url).identity


class Entry(Protocol):
    """An entry of `git.credentials`, as far as it matches."""

    @property
    def match(self) -> str:
        """A prefix of identities, or `*`."""


E = TypeVar("E", bound=Entry)


def entry_for(identity: str, entries: Sequence[E]) -> E | None:
    """Return the entry of `git.credentials` that an identity falls under, or `None`.

    The longest `match` wins, and of two that are equally long the first; `*` has the length 0.
    """
    found = [one for one in entries if one.match == "*" or identity.startswith(one.match)]
    return max(found, key=lambda one: 0 if one.match == "*" else len(one.match), default=None)


def is_token(text: str) -> bool:
    """Say whether a text looks like a token of a git host, by the prefix that those have."""
    return _TOKEN.fullmatch(text) is not None


def shown(url: str) -> str:
    """Return a url as it may be printed: without its user."""
    return re.sub(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/]*@", r"\1", url)


def _remote(url: str, way: Way, rest: str) -> RepoIdentity:
    if "?" in rest or "#" in rest:
        raise _wrong(url, "has a query or a fragment")
    place, _, path = rest.partition("/")
    user, at, place = place.rpartition("@")
    if ":" in user or is_token(unquote(user)):
        raise _wrong(
            url, "holds a password: give it as the token of an entry in git.credentials (ADR-0051)"
        )
    if at and user.startswith("-"):
        raise _wrong(url, "has a user that starts with a hyphen")
    match = _PLACE.fullmatch(place)
    if match is None:
        raise _wrong(url, "has a host that cannot be read")
    host = _host(url, match["host"])
    port = int(match["port"] or _PORTS[way])
    if not 1 <= port <= 65535:
        raise _wrong(url, "has a port that is not in 1–65535")
    if port != _PORTS[way]:
        host = f"{host}:{port}"
    return RepoIdentity(way=way, identity=f"{host}/{_path(url, path)}")


def _host(url: str, host: str) -> str:
    host = host.lower().removesuffix(".")
    if not host:
        raise _wrong(url, "has no host")
    # ssh takes a host that starts with a hyphen for an option.
    found = (_ipv6(host) if host.startswith("[") else host) if _HOST.fullmatch(host) else None
    if found is None:
        raise _wrong(url, "has a host that is neither a DNS name in ASCII nor an IP address")
    return found


def _ipv6(host: str) -> str | None:
    """Return the one spelling of an address that has many, in its brackets."""
    try:
        address = ipaddress.IPv6Address(host[1:-1])
    except ValueError:
        return None
    mapped = address.ipv4_mapped
    # Pythons differ in how they write this one, and an identity is the same under each.
    return f"[::ffff:{mapped}]" if mapped else f"[{address}]"


def _path(url: str, path: str) -> str:
    parts = [part for part in path.split("/") if part]
    _require_plain(url, parts)
    if parts and parts[-1] != ".git":
        parts[-1] = parts[-1].removesuffix(".git")
    if not parts or parts == [".git"]:
        raise _wrong(url, "has no path")
    return "/".join(parts)


def _local(url: str, path: str) -> str:
    """Return the absolute path of a local repository; `app` and `app.git` are two folders."""
    if path.startswith("localhost/"):
        path = path.removeprefix("localhost")
    if not path.startswith("/"):
        raise _wrong(url, "names a host, and a file url has none; three slashes start its path")
    parts = [part for part in path.split("/") if part]
    _require_plain(url, parts)
    if not parts:
        raise _wrong(url, "has no path")
    return "/" + "/".join(parts)


def _require_plain(url: str, parts: Sequence[str]) -> None:
    """Refuse what a server would read as another path than it says."""
    for part in parts:
        plain = unquote(part)
        if plain in (".", "..") or "/" in plain or "\\" in plain:
            raise _wrong(url, f'has the path segment "{part}", which can lead elsewhere')


def _wrong(url: str, problem: str) -> RepoUrlError:
    return RepoUrlError(f'the repository url "{shown(url)}" {problem}')
