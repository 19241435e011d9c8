"""Certificates that one run makes; asked twice for the same, it gives the same.

A plan is made before the Lease is held and once more under it, and both must want the same. What
signs is loaded when something is signed, since most converges sign nothing.

Source: design §5.2, ADR-0145.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from .targets import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A certificate with its key, both PEM.

    Args:
        certificate: the certificate.
        key: its private key.
    """

    certificate: str
    key: str = field(repr=False)

    def fingerprint(self) -> str:
        """Return the SHA-256 of the certificate, hex."""
        body = "".join(self.certificate.strip().splitlines()[1:-1])
        return hashlib.sha256(base64.b64decode(body)).hexdigest()


class Certificates:
    """Makes what is missing.

    Args:
        now: the time of this run.
    """

    def __init__(self, now: datetime.datetime | None = None) -> None:
        self.now = datetime.datetime.now(datetime.UTC) if now is None else now
        self._authorities: dict[tuple[str, tuple[str, ...]], Issued] = {}
        self._leaves: dict[tuple[str, Target], Issued] = {}

    def authority(self, instance: str, hosts: Sequence[str]) -> Issued:
        """Return a new authority that can sign for these hosts alone."""
        from .authority import new_authority

        wanted = (instance, tuple(sorted(set(hosts))))
        if wanted not in self._authorities:
            self._authorities[wanted] = new_authority(*wanted, self.now)
        return self._authorities[wanted]

    def leaf(self, authority: Issued, target: Target) -> Issued:
        """Return a new certificate of a host under an authority."""
        from .authority import new_leaf

        wanted = (authority.certificate, target)
        if wanted not in self._leaves:
            self._leaves[wanted] = new_leaf(authority, target.host, self.now)
        return self._leaves[wanted]
