"""The name of an image: registry, repository, tag and digest, read as Docker reads it.

A first part without a dot, a colon and which is not `localhost` is no registry: the name is one of
Docker Hub then.

Source: the reference grammar of the distribution project; spec/converge.md §6.3.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, replace
from typing import Final

from jr2.errors import StepFailed

HUB: Final = "docker.io"
_HUB_API: Final = "registry-1.docker.io"

_REGISTRY: Final = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::\d+)?"
)
_REPOSITORY: Final = re.compile(
    r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*"
)
_TAG: Final = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The name of an image.

    Args:
        registry: host and port, as a person writes them.
        repository: the path in the registry.
        tag: `None` when the name has none.
        digest: `None` when the name has none.
    """

    registry: str
    repository: str
    tag: str | None = None
    digest: str | None = None

    @property
    def api(self) -> str:
        """The host and port that serve the registry's API."""
        return _HUB_API if self.registry == HUB else self.registry

    @property
    def version(self) -> str:
        """What a manifest is asked by: the digest where there is one, else the tag."""
        return self.digest or self.tag or "latest"

    @property
    def name(self) -> str:
        """Registry and repository."""
        return f"{self.registry}/{self.repository}"

    def at(self, digest: str) -> Reference:
        """The same repository at a digest, without a tag."""
        return replace(self, tag=None, digest=digest)

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.name}{tag}{f'@{self.digest}' if self.digest else ''}"


def parse_reference(text: str) -> Reference:
    """Read the name of an image.

    Raises:
        StepFailed: it is none; the text says which part is wrong.
    """
    rest, at, digest = text.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        raise _wrong(text, f'"{digest}" is no sha256 digest')
    first, slash, path = rest.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        registry = first
    else:
        registry, path = HUB, rest
    repository, colon, tag = path.partition(":")
    if registry == HUB and "/" not in repository:
        repository = f"library/{repository}"
    if not _REGISTRY.fullmatch(registry):
        raise _wrong(text, f'"{registry}" is no registry')
    if not _REPOSITORY.fullmatch(repository):
        raise _wrong(text, f'"{repository}" is no repository: lower-case letters, digits, . _ - /')
    if colon and not _TAG.fullmatch(tag):
        raise _wrong(text, f'"{tag}" is no tag')
    if not colon and not at:
        tag = "latest"
    return Reference(
        registry=registry, repository=repository, tag=tag or None, digest=digest or None
    )


def _wrong(text: str, problem: str) -> StepFailed:
    return StepFailed(f'"{text}" is no name of an image: {problem}')


def is_digest(text: str) -> bool:
    """Tell whether a text is a sha256 digest."""
    return _DIGEST.fullmatch(text) is not None


def is_loopback(host: str) -> bool:
    """Tell whether a host, with or without a port, is this machine."""
    name = host.rpartition(":")[0] if re.search(r":\d+$", host) else host
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
