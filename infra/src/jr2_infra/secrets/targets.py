"""The hosts that a secret is bound to: what an entry of `hosts` may say, as host and port.

An entry is a host, `host:port`, `[address]:port` or an https URL, of which host and port count. What
a Custodian never dials (the pod itself, the link, the metadata service of a cloud) is refused here,
since a value that is sent there is lost or worse. A text that may hold a password is not repeated.

Source: spec/authoring.md §3.5 (refusal 5), spec/runtime.md §3.2 (the dial guard).
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

HTTPS_PORT: Final = 443
_LABEL: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_LONGEST_HOST: Final = 253
_HIGHEST_PORT: Final = 65_535
_NEVER_DIALLED: Final = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "::/128",
        "::1/128",
        "::ffff:0:0/96",
        "fe80::/10",
        "fd00:ec2::254/128",
    )
)


class BadTarget(ValueError):
    """An entry names no host that a secret can be bound to; the text says why."""


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """One host and port.

    Args:
        host: a DNS name in lower case without a dot at its end, or an IP address.
        port: the port.
    """

    host: str
    port: int = HTTPS_PORT

    def __str__(self) -> str:
        """Return it as a person writes it; the usual port is left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == HTTPS_PORT else f"{host}:{self.port}"


def parse_target(text: str) -> Target:
    """Read an entry of `hosts`.

    Args:
        text: the entry.

    Raises:
        BadTarget: it names no host, or one that no secret can be bound to.
    """
    if not text:
        raise BadTarget("is empty")
    if "@" in text:
        raise BadTarget("holds a user or a password, and a host has none")
    if "://" in text:
        return url_target(text)
    if any(sign in text for sign in "/?#"):
        raise BadTarget(
            f'"{text}" is more than a host — write the host alone, and path prefixes in paths'
        )
    if ":" in text and "[" not in text and _address(text) is not None:
        return _target(text, None)
    parts = _split(f"//{text}")
    return _target(parts.hostname or "", _port(parts, text))


def url_target(text: str) -> Target:
    """Read an https URL, such as a `base_url`; its path does not count.

    Args:
        text: the URL.

    Raises:
        BadTarget: it is no https URL of such a host.
    """
    if "@" in text:
        raise BadTarget("holds a user or a password, and a host has none")
    parts = _split(text)
    if parts.scheme != "https":
        raise BadTarget(f'"{text}" is no https URL, and a secret is sent over https alone')
    if parts.query or parts.fragment:
        raise BadTarget(f'"{text}" has a query or a fragment, and a host has none')
    return _target(parts.hostname or "", _port(parts, text))


def _split(text: str) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError:
        raise BadTarget(f'"{text.removeprefix("//")}" is no host') from None


def _port(parts: SplitResult, text: str) -> int | None:
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0 or (port is None and parts.netloc.endswith(":")):
        raise BadTarget(f'"{text}" has no port from 1 to {_HIGHEST_PORT}')
    return port


def _target(host: str, port: int | None) -> Target:
    host = host.lower().removesuffix(".")
    if not host:
        raise BadTarget("names no host")
    if "*" in host:
        raise BadTarget(f'"{host}" has a wildcard — name each host that the secret is sent to')
    address = _address(host)
    if address is None:
        _check_name(host)
    elif any(address in network for network in _NEVER_DIALLED):
        raise BadTarget(f'"{host}" is an address that a Custodian never dials')
    return Target(
        host=host if address is None else str(address), port=HTTPS_PORT if port is None else port
    )


def _check_name(host: str) -> None:
    labels = host.split(".")
    if (
        len(host) > _LONGEST_HOST
        or not all(_LABEL.fullmatch(label) for label in labels)
        # A name whose last label is a number is read as an address by some programs.
        or labels[-1].isdigit()
        or re.fullmatch("0x[0-9a-f]*", labels[-1])
    ):
        raise BadTarget(f'"{host}" is neither a DNS name nor an IP address')
    if labels[-1] == "localhost":
        raise BadTarget(f'"{host}" is the pod itself, which a Custodian never dials')


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
