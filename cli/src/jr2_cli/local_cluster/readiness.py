"""Whether a cluster that was started is one that can be used.

Each question is one that a first pod would otherwise stumble over: without its service account a
pod is refused, and before kube-proxy and CoreDNS work no name resolves in it.

Source: local-cluster/ ("wait for it before the cluster is called ready").
"""

from __future__ import annotations

import datetime
import os
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from . import layout
from .api import Api

_DNS_SECONDS = 1.0
_A_RECORD, _INTERNET, _RECURSE = 1, 1, 0x0100


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One thing that must be so before the cluster is ready.

    Args:
        name: what is waited for, for the line that says that it is there.
        holds: asks once; it gets the API server and when the cluster was started, in seconds
            since 1970: the data of a cluster that was stopped say that everything works.
    """

    name: str
    holds: Callable[[Api, float], bool]


def api_answers(api: Api, _since: float) -> bool:
    """The API server answers and has its own first objects."""
    return api.version() is not None and (
        api.read("/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node") is not None
    )


def has_default_account(api: Api, _since: float) -> bool:
    """The controllers work: they made the service account that a pod of `default` gets."""
    return api.read("/api/v1/namespaces/default/serviceaccounts/default") is not None


def node_is_ready(api: Api, since: float) -> bool:
    """The kubelet, containerd and the network of pods work, and the kubelet said so just now."""
    node = api.read(f"/api/v1/nodes/{layout.NODE_NAME}")
    return node is not None and says_ready(node, since)


def says_ready(node: Mapping[str, Any], since: float) -> bool:
    """Tell whether a node was ready at a heartbeat that is not older than a time.

    Args:
        node: the object.
        since: seconds since 1970.
    """
    for condition in node.get("status", {}).get("conditions", []):
        if condition["type"] == "Ready" and condition["status"] == "True":
            beat = datetime.datetime.fromisoformat(condition["lastHeartbeatTime"])
            return beat.timestamp() >= int(since)
    return False


def names_resolve(_api: Api, _since: float) -> bool:
    """A name resolves at the address that pods ask: kube-proxy and CoreDNS work."""
    query = f"kubernetes.default.svc.{layout.CLUSTER_DOMAIN}"
    return resolve(query, layout.DNS_SERVICE) == layout.KUBERNETES_SERVICE


STAGES = (
    Stage(name="API server", holds=api_answers),
    Stage(name="controllers", holds=has_default_account),
    Stage(name="node", holds=node_is_ready),
    Stage(name="DNS", holds=names_resolve),
)


def resolve(name: str, server: str, port: int = 53) -> str | None:
    """Ask a DNS server for one IPv4 address of a name.

    Returns:
        `None` when it does not answer within a second, or has none.
    """
    number = os.urandom(2)
    question = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    header = number + struct.pack(">HHHHH", _RECURSE, 1, 0, 0, 0)
    packet = header + question + b"\0" + struct.pack(">HH", _A_RECORD, _INTERNET)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(_DNS_SECONDS)
        try:
            client.connect((server, port))
            client.send(packet)
            answer = client.recv(4096)
        except OSError:
            return None
    return _first_address(answer, number, len(packet))


def _first_address(answer: bytes, number: bytes, offset: int) -> str | None:
    """Read the first address record that follows the repeated question."""
    if len(answer) < offset or answer[:2] != number or answer[3] & 0x0F:
        return None
    count = int.from_bytes(answer[6:8], "big")
    for _ in range(count):
        while offset < len(answer) and answer[offset] and answer[offset] < 0xC0:
            offset += answer[offset] + 1
        offset += 2 if offset < len(answer) and answer[offset] >= 0xC0 else 1
        kind, _, _, length = struct.unpack_from(">HHIH", answer, offset)
        offset += 10
        if kind == _A_RECORD and length == 4:
            return socket.inet_ntoa(answer[offset : offset + 4])
        offset += length
    return None
