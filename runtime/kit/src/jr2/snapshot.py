"""The whole state of a run between two steps: small, frozen, and JSON by construction.

A snapshot holds the active states with the number of each entry, and the context. What is live
(tasks, Turns, timers, Gates) is not listed: it is what the chart says about the active states, less
what has ended. So a snapshot cannot disagree with itself, and a key names the entry that it belongs
to (`jr2.kernel.keys`). Child Machines are snapshots within it, each under its key.

The context is kept as the JSON text that was written, beside the object that was read back from
exactly that text.

Source: design §4.1 and §4.3, spec/runtime.md §1.6.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from json.encoder import encode_basestring
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from pydantic import ValidationError

from .chart import Chart
from .run_data import Context

VERSION: Final = 2
_encode: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
Status = Literal["active", "done", "error", "cancelled"]


class SnapshotError(Exception):
    """The bytes are no snapshot of this Machine; the run cannot go on with it."""


class OpenGate(NamedTuple):
    """What was decided at the entry into a Gate and holds until it is left."""

    gate: str
    meta: str
    """JSON text."""


class Snapshot(NamedTuple):
    """A run between two steps.

    It is a tuple for speed, and never taken apart: one is made in each step. Two snapshots are
    equal when their JSON is, so the decoded context takes no part.
    """

    machine: str
    run_id: str
    status: Status
    entries: Mapping[int, int]
    """Active nodes in document order → the number of the entry; the root is not listed."""
    entry_count: int
    """How many entries the run has made; it only grows, so no key comes twice."""
    ended: frozenset[str] = frozenset()
    """Keys of what ended, and of timers that fired, while their state is still active."""
    gates: Mapping[int, OpenGate] = MappingProxyType({})
    history: Mapping[int, tuple[int, ...]] = MappingProxyType({})
    """History node → the states that were active when its parent was left last."""
    children: Mapping[str, Snapshot] = MappingProxyType({})
    """Child Machines that run, by the key of the invocation, in the order of their starts."""
    context_json: str = "null"
    output_json: str = "null"
    fault: str | None = None
    context: Context | None = None
    """`None` only when the start itself failed."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and self[:-1] == other[:-1]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def to_json(self, chart: Chart) -> bytes:
        """Return the snapshot as one JSON object in UTF-8; equal snapshots give equal bytes."""
        return self._text(chart).encode()

    def _text(self, chart: Chart) -> str:
        nodes = chart.nodes
        at = ",".join([f"{quoted(nodes[node].id)}:{entry}" for node, entry in self.entries.items()])
        text = (
            f'{{"v":{VERSION},"machine":{quoted(self.machine)},"run":{json_text(self.run_id)},'
            f'"status":"{self.status}","count":{self.entry_count},"at":{{{at}}}'
        )
        if self.ended:
            text += f',"ended":{json_text(sorted(self.ended))}'
        if self.gates:
            gates = ",".join(
                [
                    f"{quoted(nodes[node].id)}:[{json_text(gate.gate)},{gate.meta}]"
                    for node, gate in self.gates.items()
                ]
            )
            text += f',"gates":{{{gates}}}'
        if self.history:
            history = {
                nodes[node].id: [nodes[one].id for one in remembered]
                for node, remembered in sorted(self.history.items())
            }
            text += f',"history":{json_text(history)}'
        if self.output_json != "null":
            text += f',"output":{self.output_json}'
        if self.fault is not None:
            text += f',"fault":{json_text(self.fault)}'
        if self.children:
            inner = (
                f"{json_text(key)}:{child._text(child_chart(chart, key))}"
                for key, child in self.children.items()
            )
            text += f',"children":{{{",".join(inner)}}}'
        return f'{text},"context":{self.context_json}}}'


def child_chart(chart: Chart, key: str) -> Chart:
    """Return the chart of the child Machine with a key.

    Raises:
        SnapshotError: the chart has no such invocation.
    """
    at, _, rest = key.partition("#")
    _, _, name = rest.partition(":")[2].partition(".")
    node = chart.find(at)
    for invocation in () if node is None else node.invocations:
        if invocation.id == name.partition("@")[0] and invocation.slot in chart.children:
            return chart.children[invocation.slot].chart
    raise SnapshotError(f"machine {chart.id!r} invokes nothing with the key {key!r}")


def from_json(chart: Chart, data: bytes) -> Snapshot:
    """Read a snapshot that `Snapshot.to_json` wrote for the same chart.

    Raises:
        SnapshotError: it is no snapshot, of another version or Machine, or names a state that
            the chart does not have, or its context does not fit.
    """
    try:
        return _read(chart, json.loads(data))
    except (ValueError, KeyError, TypeError, AttributeError, ValidationError) as bad:
        raise SnapshotError(f"no snapshot of machine {chart.id!r}: {type(bad).__name__}") from bad


def _read(chart: Chart, raw: Any) -> Snapshot:
    if raw["v"] != VERSION:
        raise SnapshotError(f"a snapshot of version {raw['v']!r}: this is version {VERSION}")
    if raw["machine"] != chart.id:
        raise SnapshotError(f"a snapshot of machine {raw['machine']!r}, not of {chart.id!r}")
    context_json, context = "null", None
    if raw["context"] is not None:
        context = read_context(chart, json_text(raw["context"]))
        context_json = write_context(context)
    return Snapshot(
        machine=chart.id,
        run_id=raw["run"],
        status=raw["status"],
        entries={_index(chart, at): int(entry) for at, entry in raw["at"].items()},
        entry_count=int(raw["count"]),
        ended=frozenset(raw.get("ended", ())),
        gates={
            _index(chart, at): OpenGate(gate, json_text(meta))
            for at, (gate, meta) in raw.get("gates", {}).items()
        },
        history={
            _index(chart, at): tuple(_index(chart, one) for one in remembered)
            for at, remembered in raw.get("history", {}).items()
        },
        children={
            key: _read(child_chart(chart, key), child)
            for key, child in raw.get("children", {}).items()
        },
        context_json=context_json,
        context=context,
        output_json=json_text(raw.get("output")),
        fault=raw.get("fault"),
    )


def read_again(chart: Chart, snapshot: Snapshot) -> Snapshot:
    """Return a snapshot with each context read from its text, as `from_json` would make it."""
    return snapshot._replace(
        context=(None if snapshot.context is None else read_context(chart, snapshot.context_json)),
        children={
            key: read_again(child_chart(chart, key), child)
            for key, child in snapshot.children.items()
        }
        if snapshot.children
        else snapshot.children,
    )


def json_text(value: Any) -> str:
    """Return a value as compact JSON text that is valid UTF-8; every text here is made by it.

    Raises:
        ValueError: the value holds NaN, an infinity, or half of a surrogate pair.
        TypeError: it holds something that JSON has no form for.
    """
    if value is None:
        return "null"
    text = encode_basestring(value) if type(value) is str else _encode(value)
    if not text.isascii():
        text.encode()
    return text


@lru_cache(maxsize=4096)
def quoted(name: str) -> str:
    """Return a name of a chart as JSON text; there are few of them, and each step writes some."""
    return json_text(name)


def write_context(context: Context) -> str:
    """Return a context as JSON text, as it stands in a snapshot.

    Raises:
        ValueError: it has no JSON form, or one that is no valid UTF-8.
    """
    text = context.__pydantic_serializer__.to_json(
        context, warnings=False, by_alias=False, exclude_computed_fields=True
    )
    return text.decode()


def read_context(chart: Chart, text: str) -> Context:
    """Return the context that `write_context` wrote.

    Raises:
        pydantic.ValidationError: it does not fit the Machine's context.
    """
    read: Context = chart.context.__pydantic_validator__.validate_json(
        text, by_alias=False, by_name=True
    )
    return read


def _index(chart: Chart, node_id: str) -> int:
    node = chart.find(node_id)
    if node is None:
        raise SnapshotError(f"machine {chart.id!r} has no state {node_id!r}")
    return node.index
