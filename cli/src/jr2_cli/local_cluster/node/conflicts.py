"""What another program of this machine has that the cluster would need: addresses and ports.

Asked before anything is made, since a process that cannot listen only says so in its log, and a
route that is replaced cuts off who used it. Another Kubernetes on the machine is met here.

Source: design §7.
"""

from __future__ import annotations

import ipaddress
import json
import socket
from collections.abc import Iterable, Mapping
from typing import Any, Final

from jr2.errors import Refusal
from jr2_infra import processes

from ...tools import lookup
from .. import layout

_RANGES: Final = (layout.POD_RANGE, layout.SERVICE_RANGE, f"{layout.NODE_ADDRESS}/32")
_OURS: Final = (layout.NODE_DEVICE, layout.POD_DEVICE)
_LOCALHOST: Final = "127.0.0.1"
_PORTS: Final = (
    layout.ETCD_PORT,
    layout.ETCD_PEER_PORT,
    layout.CONTROLLER_MANAGER_PORT,
    layout.SCHEDULER_PORT,
    layout.KUBELET_HEALTH_PORT,
    layout.PROXY_HEALTH_PORT,
    layout.PROXY_METRICS_PORT,
    layout.COREDNS_READY_PORT,
    layout.ROUTER_METRICS_PORT,
)


def check_routes() -> None:
    """Refuse when an address of ours is on another device.

    Raises:
        Refusal: the text names the route.
    """
    ip = lookup.system_program("ip")
    if ip is None:
        return
    taken = taken_routes(json.loads(processes.run([ip, "-json", "-4", "route", "show"]).stdout))
    if taken:
        raise Refusal(
            f"the addresses {', '.join(taken)} are in use on this machine, and the local cluster "
            f"needs {', '.join(_RANGES)} — end what uses them (`ip route` shows it), or use kind"
        )


def taken_routes(routes: Iterable[Mapping[str, Any]]) -> list[str]:
    """The routes to a part of our ranges that lead to another device.

    A route that is wider than ours, such as that of a private network, gives way to ours.

    Args:
        routes: what `ip -json route show` printed.
    """
    ours = [ipaddress.IPv4Network(text) for text in _RANGES]
    found = []
    for route in routes:
        device = route.get("dev")
        if route["dst"] == "default" or device in _OURS:
            continue
        network = ipaddress.IPv4Network(route["dst"], strict=False)
        if any(network.subnet_of(own) for own in ours):
            found.append(f"{network} ({device or route.get('type', 'no device')})")
    return found


def check_ports(ports: Iterable[int] = _PORTS) -> None:
    """Refuse when another program listens where a process of the cluster must.

    Args:
        ports: ports of 127.0.0.1; none of our own processes may run.

    Raises:
        Refusal: the text names the ports.
    """
    taken = [str(port) for port in ports if not _is_free(port)]
    if taken:
        raise Refusal(
            f"the ports {', '.join(taken)} of {_LOCALHOST} are in use, and the local cluster needs "
            "them — end what listens there (`ss -ltnp` shows it), or use kind"
        )


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_LOCALHOST, port))
        except OSError:
            return False
    return True
