"""What the machine was like before it had a cluster, so that `delete` can put it back.

Two things are shared with other programs and stay when their makers end: the tables that `iptables`
makes when it is first used, and settings of the kernel. A table that was not there before goes
again when nothing is in it; a setting goes back when it still is what the cluster made of it.

The note is made once for each boot, since a restart of the machine empties both.

Source: design §7.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from jr2_infra import processes

from ...tools import lookup
from .. import private_files
from ..layout import Layout

_KERNEL: Final = Path("/proc/sys")
WRITTEN: Final[Mapping[str, str]] = {
    "net/ipv4/ip_forward": "1",
    "net/bridge/bridge-nf-call-iptables": "1",
    "vm/overcommit_memory": "1",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""The settings that we, the kubelet and kube-proxy change, and what to."""
_FAMILIES: Final = ("ip", "ip6")
_TABLES: Final = ("raw", "mangle", "nat", "filter", "security")


class Before(BaseModel):
    """What was there before.

    Args:
        tables: the tables of nftables, as `<family> <name>`.
        settings: the kernel's settings of `WRITTEN`, as far as they were there.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tables: tuple[str, ...]
    settings: dict[str, str]


def note(files: Layout) -> None:
    """Note what is there now, unless that was done in this boot."""
    if files.before.exists():
        return
    found = Before(tables=tuple(sorted(_rulesets())), settings=_read_settings())
    private_files.write(files.before, found.model_dump_json())


def restore(files: Layout) -> None:
    """Put back what is ours alone; without a note nothing is touched."""
    try:
        before = Before.model_validate_json(files.before.read_bytes())
    except (OSError, ValueError):
        return
    nft = lookup.system_program("nft")
    for table in tables_to_remove(before, _rulesets()):
        if nft is not None:
            processes.run([nft, "delete", "table", *table.split(" ")])
    for name, value in settings_to_restore(before, _read_settings()).items():
        with contextlib.suppress(OSError):
            (_KERNEL / name).write_text(value)


def tables_to_remove(before: Before, now: Mapping[str, list[dict[str, Any]]]) -> list[str]:
    """The tables of `iptables` that were not there before and do nothing.

    Args:
        before: what was there.
        now: the objects in each table that is there.
    """
    ours = [f"{family} {name}" for family in _FAMILIES for name in _TABLES]
    return [
        table
        for table in ours
        if table in now and table not in before.tables and all(map(_does_nothing, now[table]))
    ]


def settings_to_restore(before: Before, now: Mapping[str, str]) -> dict[str, str]:
    """The settings that are still what the cluster made of them, with their older values."""
    return {
        name: value
        for name, value in before.settings.items()
        if name in WRITTEN and now.get(name) == WRITTEN[name] != value
    }


def _does_nothing(entry: Mapping[str, Any]) -> bool:
    """A chain that the kernel calls and that lets everything through; a set or a rule is more."""
    chain = entry.get("chain")
    return chain is not None and "hook" in chain and chain.get("policy") == "accept"


def _read_settings() -> dict[str, str]:
    found = {}
    for name in WRITTEN:
        with contextlib.suppress(OSError):
            found[name] = (_KERNEL / name).read_text().strip()
    return found


def _rulesets() -> dict[str, list[dict[str, Any]]]:
    nft = lookup.system_program("nft")
    if nft is None:
        return {}
    found: dict[str, list[dict[str, Any]]] = {}
    for entry in json.loads(processes.run([nft, "--json", "list", "ruleset"]).stdout)["nftables"]:
        for kind, value in entry.items():
            if kind == "table":
                found.setdefault(f"{value['family']} {value['name']}", [])
            elif kind != "metainfo":
                found.setdefault(f"{value['family']} {value['table']}", []).append(entry)
    return found
