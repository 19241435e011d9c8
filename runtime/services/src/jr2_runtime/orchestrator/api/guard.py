"""Whom a request was meant for, and which page sent it: checked before anything else is.

A page of another site can make a browser call a forwarded port, under a name of its own that it
lets lead to 127.0.0.1. So only the names of this Orchestrator are answered, and a write of a page
is taken from a page of the same address only. An address in digits is no name that anybody could
let lead here; kubelets ask so.

Source: design §6.3.
"""

from __future__ import annotations

import functools
import ipaddress
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from jr2 import names

from .errors import error

_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def known_hosts(namespace: str | None) -> frozenset[str]:
    """Return the names of the Orchestrator: of this machine, and of its Service.

    Args:
        namespace: of the Service; `None` outside of a cluster.
    """
    service = names.ORCHESTRATOR
    found = {"localhost", service}
    if namespace is not None:
        found |= {f"{service}.{namespace}{rest}" for rest in ("", ".svc", ".svc.cluster.local")}
    return frozenset(found)


@functools.lru_cache(maxsize=256)
def is_known(host: str, known: frozenset[str]) -> bool:
    """Whether a `Host` names this Orchestrator, or is an address in digits.

    Args:
        host: the header, with or without a port.
        known: the names.
    """
    if host.startswith("["):
        name, _, port = host[1:].partition("]")
        port = port.removeprefix(":")
    else:
        name, _, port = host.partition(":")
    if port and not (port.isascii() and port.isdigit()):
        return False
    if name.lower().removesuffix(".") in known:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_same_origin(origin: str, host: str) -> bool:
    """Whether the page that sends a write comes from the address that it writes to."""
    scheme, separator, rest = origin.partition("://")
    return bool(separator) and scheme in ("http", "https") and rest.lower() == host.lower()


class Guard:
    """Refuses what was meant for somebody else, before the app sees it.

    Args:
        app: what is guarded.
        known: the names of the Orchestrator, in lower case.
    """

    def __init__(self, app: ASGIApp, known: frozenset[str]) -> None:
        self._app = app
        self._known = known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 421 or 403."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        hosts, origins = [], []
        for name, value in scope["headers"]:
            if name == b"host":
                hosts.append(value.decode("latin-1"))
            elif name == b"origin":
                origins.append(value.decode("latin-1"))
        if len(hosts) != 1 or not is_known(hosts[0], self._known):
            await error(421, "this Orchestrator has another name")(scope, receive, send)
            return
        if scope["method"] not in _READS and not all(
            is_same_origin(origin, hosts[0]) for origin in origins
        ):
            await error(403, "a page of another site sends this")(scope, receive, send)
            return
        await self._app(scope, receive, send)
