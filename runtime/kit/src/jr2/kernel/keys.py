"""Keys: how a command names the entry of the state that it belongs to.

A key is `<state path>#<entry number>:<kind>.<id>`, of a pool's item with `@<number>.<item>` after
it. What belongs to a child Machine has the key of the child and a slash before it, so a key says
the way from the root: `working#1:child.coder/coding#2:task.tests`. Entry numbers only grow, so no
key comes twice in a run, and one whose state was left since finds nothing.

Source: design §4.1 and §4.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ..chart import Chart, Invocation, Node, Timer

BETWEEN: Final = "/"
"""Between the key of a child Machine and a key in it."""


class Place(NamedTuple):
    """Where a Machine is in its run."""

    prefix: str = ""
    """What the keys of its commands begin with."""
    machine: tuple[str, ...] = ()
    """The slots from the root Machine."""
    actors: tuple[str, ...] = ()
    """The actor path."""


ROOT_PLACE: Final = Place()


class Found(NamedTuple):
    """What a key stands for."""

    node: Node
    what: Invocation | Timer
    item: str | None = None
    """Of a pool: the id of the item."""


def invocation_key(node: Node, entry: int, invocation: Invocation) -> str:
    """Return the key of an invocation, within its Machine."""
    return f"{node.id}#{entry}:{invocation.kind}.{invocation.id}"


def timer_key(node: Node, entry: int, timer: Timer) -> str:
    """Return the key of a timer, within its Machine."""
    return f"{node.id}#{entry}:after.{timer.id}"


def item_key(pool: str, number: int, item: str) -> str:
    """Return the key of one item of a pool."""
    return f"{pool}@{number}.{item}"


def item_of(key: str) -> str | None:
    """Return the item that a key names, or `None` when it is not that of an item."""
    _, at, item = key.partition("@")
    return item.partition(".")[2] if at else None


def gate_key(prefix: str, node: Node, entry: int) -> str:
    """Return the id of one entry into a Gate (`If-Gate`)."""
    return f"{prefix}{node.id}#{entry}"


def entry_mark(node: Node, entry: int) -> str:
    """Return what the keys of one entry into a state begin with."""
    return f"{node.id}#{entry}:"


def locate(chart: Chart, active: Mapping[int, int], key: str) -> Found | None:
    """Return what a key within one Machine stands for, if its state is still in that entry.

    Args:
        chart: the Machine's.
        active: its active states, each with the number of the entry.
        key: without the keys of the Machines around it.
    """
    at, _, rest = key.partition("#")
    number, _, what = rest.partition(":")
    node = chart.find(at)
    if node is None or str(active.get(node.index)) != number:
        return None
    kind, _, name = what.partition(".")
    if kind == "after":
        for timer in node.timers:
            if timer.id == name:
                return Found(node, timer)
        return None
    name = name.partition("@")[0]
    for invocation in node.invocations:
        if invocation.id == name and invocation.kind == kind:
            return Found(node, invocation, item_of(key))
    return None


def inside(chart: Chart, key: str, place: Place) -> tuple[Chart, Place, str]:
    """Return the chart of a child Machine, where it is in its run, and its slot.

    Args:
        chart: the parent's.
        key: the child's, within its parent.
        place: where the parent is.
    """
    at, _, rest = key.partition("#")
    node = chart.find(at)
    assert node is not None
    name = rest.partition(":")[2].partition(".")[2].partition("@")[0]
    invocation = next(one for one in node.invocations if one.id == name)
    within = Place(
        f"{place.prefix}{key}{BETWEEN}",
        (*place.machine, invocation.slot),
        (*place.actors, item_of(key) or invocation.actor),
    )
    return chart.children[invocation.slot].chart, within, invocation.slot
