"""Asking a service whether it works.

Each question takes at most a second and raises nothing: an answer is yes or no.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import urllib.parse

from . import plan

_SECONDS = 1.0


def answers(probe: plan.Probe) -> bool:
    """Tell whether a service answers its probe."""
    try:
        match probe.kind:
            case "tcp":
                host, _, port = probe.target.rpartition(":")
                socket.create_connection((host, int(port)), _SECONDS).close()
                return True
            case "unix":
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                    client.settimeout(_SECONDS)
                    client.connect(probe.target)
                return True
            case "http" | "https":
                return _http_status(probe) < 400
    except (OSError, http.client.HTTPException):
        return False


def _http_status(probe: plan.Probe) -> int:
    address = urllib.parse.urlsplit(probe.target)
    assert address.hostname is not None
    connection: http.client.HTTPConnection
    if probe.kind == "https":
        context = ssl.create_default_context(cafile=probe.authority)
        if probe.certificate is not None:
            context.load_cert_chain(probe.certificate, probe.key)
        connection = http.client.HTTPSConnection(
            address.hostname, address.port, timeout=_SECONDS, context=context
        )
    else:
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=_SECONDS)
    try:
        connection.request("GET", address.path or "/")
        return connection.getresponse().status
    finally:
        connection.close()
