"""The part of the machine's network that is ours: made at a start, taken away at a delete.

Ours are two bridge devices, one nftables table, what kube-proxy keeps in its own tables, the chains
and sets that kube-router makes, and what the CNI plugins make for a pod with a host port. Chains are
found by their names and by the name of our network; nothing else in a table is touched.

Source: design §7 and local-cluster/.
"""

from __future__ import annotations

import itertools
import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jr2.errors import StepFailed
from jr2_infra import processes

from ...tools import lookup
from .. import layout
from ..definition import settings

_FORWARD: Final = Path("/proc/sys/net/ipv4/ip_forward")
_BRIDGED: Final = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
_ROUTER_CHAIN: Final = re.compile(r"KUBE-(ROUTER|POD-FW|NWPLCY)-[\w-]+$")
_HOST_PORTS: Final = "CNI-HOSTPORT-DNAT"
_SHARED_CHAINS: Final = "CNI-HOSTPORT-"
_OUR_SETS: Final = re.compile(r"(KUBE-(SRC|DST)-|kube-router-)[\w-]+$")
_PROXY_TABLES: Final = ("ip", "ip6")
_SETS_SECONDS: Final = 10.0
"""How long a set may be in use after the rules that name it are deleted."""
_SETS_PAUSE: Final = 0.05


def prepare() -> None:
    """Make the node's address and let the kernel forward what pods send.

    Raises:
        StepFailed: the kernel or a program says no.
    """
    modprobe = lookup.system_program("modprobe")
    if modprobe is not None:
        # Absent in a kernel that has them built in; what matters is looked at below.
        processes.run([modprobe, "--all", "br_netfilter", "overlay"])
    _FORWARD.write_text("1")
    if not _BRIDGED.exists():
        raise StepFailed(
            "this kernel has no br_netfilter, which Services between pods need — load or build "
            "that module, then try again"
        )
    _BRIDGED.write_text("1")
    ip = _program("ip")
    if processes.run([ip, "link", "show", layout.NODE_DEVICE]).returncode != 0:
        _must([ip, "link", "add", layout.NODE_DEVICE, "type", "bridge"])
    _must([ip, "address", "replace", f"{layout.NODE_ADDRESS}/32", "dev", layout.NODE_DEVICE])
    _must([ip, "link", "set", layout.NODE_DEVICE, "up"])
    # A machine without a default route reaches Services too, and what kube-proxy does not know
    # never leaves the machine.
    _must([ip, "route", "replace", layout.SERVICE_RANGE, "dev", layout.NODE_DEVICE])
    loaded = processes.run([_program("nft"), "-f", "-"], stdin=settings.nftables())
    if loaded.returncode != 0:
        raise StepFailed(f"nft does not take our table: {loaded.stderr.strip()}")


def is_ours() -> bool:
    """Tell whether something of our network is there, also without the files of a cluster."""
    return Path("/sys/class/net", layout.NODE_DEVICE).exists()


def remove() -> None:
    """Take our devices, tables, chains and sets away; what is not there is no error.

    The tables of kube-proxy and the chains of kube-router have names that another Kubernetes of
    this machine gives to its own, so this is for a machine that has our cluster. The device of the
    node goes last: while it is there, `is_ours` holds.
    """
    ip, nft = lookup.system_program("ip"), lookup.system_program("nft")
    if nft is not None:
        processes.run([nft, "delete", "table", "ip", layout.NETWORK_NAME])
        for family in _PROXY_TABLES:
            processes.run([nft, "delete", "table", family, "kube-proxy"])
    for suffix in ("", "6"):
        save = lookup.system_program(f"ip{suffix}tables-save")
        restore = lookup.system_program(f"ip{suffix}tables-restore")
        if save is None or restore is None:
            continue
        removal = chain_removal(processes.run([save]).stdout)
        if removal:
            processes.run([restore, "--noflush"], stdin=removal)
    ipset = lookup.system_program("ipset")
    if ipset is not None:
        _destroy_sets(ipset)
    if ip is not None:
        # The kernel takes the ends of pods away only some time after their namespaces.
        for device in (*ends_of_pods(), layout.POD_DEVICE, layout.NODE_DEVICE):
            processes.run([ip, "link", "delete", device])


def _destroy_sets(ipset: Path) -> None:
    """Destroy our sets; a set is in use until the kernel has freed the rules that named it."""
    until = time.monotonic() + _SETS_SECONDS
    while left := our_sets(processes.run([ipset, "list", "-name"]).stdout):
        for name in left:
            processes.run([ipset, "destroy", name])
        if time.monotonic() >= until:
            return
        time.sleep(_SETS_PAUSE)


def ends_of_pods(classes: Path = Path("/sys/class/net")) -> list[str]:
    """Return the devices that stand in the bridge of the pods.

    Args:
        classes: the kernel's folder of devices.
    """
    ports = classes / layout.POD_DEVICE / "brif"
    return sorted(port.name for port in ports.iterdir()) if ports.is_dir() else []


def chain_removal(saved: str) -> str:
    """What `iptables-restore --noflush` must read to be rid of our chains.

    Args:
        saved: what `iptables-save` printed.

    Returns:
        The rules that jump to our chains deleted, then the chains flushed and deleted; empty when
        there is none of ours.
    """
    parts: list[str] = []
    for table in re.split(r"^\*", saved, flags=re.MULTILINE)[1:]:
        name, *lines = table.splitlines()
        chains = [line[1:].split()[0] for line in lines if line.startswith(":")]
        rules = [_Rule.read(line) for line in lines if line.startswith("-A ")]
        ours = _our_chains(chains, rules)
        if ours:
            jumps = [rule for rule in rules if rule.chain not in ours and ours & set(rule.targets)]
            parts += [f"*{name.strip()}", *(f"-D{rule.text[2:]}" for rule in jumps)]
            parts += [f"-F {chain}" for chain in chains if chain in ours]
            parts += [f"-X {chain}" for chain in chains if chain in ours]
            parts.append("COMMIT")
    return "".join(f"{part}\n" for part in parts)


@dataclass(frozen=True, slots=True)
class _Rule:
    text: str
    chain: str
    targets: tuple[str, ...]
    is_of_our_network: bool

    @classmethod
    def read(cls, line: str) -> _Rule:
        words = shlex.split(line)
        values = list(itertools.pairwise(words))
        return cls(
            line,
            words[1],
            tuple(value for word, value in values if word in ("-j", "-g")),
            any(
                word == "--comment" and f'name: "{layout.NETWORK_NAME}"' in value
                for word, value in values
            ),
        )


def _our_chains(chains: Sequence[str], rules: Sequence[_Rule]) -> set[str]:
    ours = {chain for chain in chains if _ROUTER_CHAIN.match(chain)}
    ports = [rule for rule in rules if rule.chain == _HOST_PORTS]
    for rule in ports:
        if rule.is_of_our_network:
            ours.update(rule.targets)
    if all(rule.is_of_our_network for rule in ports):
        # No other network has a host port: what they share goes as well. The plugin that made it
        # makes it again for the next one.
        ours.update(chain for chain in chains if chain.startswith(_SHARED_CHAINS))
    return ours


def our_sets(listed: str) -> list[str]:
    """The ipsets of kube-router out of what `ipset list -name` printed."""
    return [name for name in listed.split() if _OUR_SETS.match(name)]


def _program(name: str) -> Path:
    found = lookup.system_program(name)
    if found is None:
        raise StepFailed(f"{name} is not installed — run `jr2 tools install`, then try again")
    return found


def _must(argv: Sequence[str | Path]) -> None:
    done = processes.run(argv)
    if done.returncode != 0:
        raise StepFailed(f"`{' '.join(str(part) for part in argv)}` failed: {done.stderr.strip()}")
