"""Measure everything about durable runs in one run, side by side, and say how each bound stands."""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.chaos.conftest import Pod
from tests.waiting import LIMIT

from . import bare, ours, parked, requests_load

HERE = Path(__file__).parent
CONNECTIONS = 32


@dataclass(frozen=True, slots=True)
class Counts:
    """How much is done; the counts of a test are small, those of a report are not."""

    one: int = 1500
    """Steps of the one run."""
    many: int = 200
    """Steps of each of 100 runs; they take about as long as those of the one run."""
    peer: float = 0.4
    """The part of the steps of the one run that the slower peers do."""
    peer_many: int = 16
    """Steps of each of 100 runs that they do."""
    requests: int = 150
    """Of each connection."""
    parked: tuple[int, ...] = (1_000, 10_000, 100_000)
    """How many runs wait."""
    rounds: int = 5
    """How often each rate is measured, one after another; the middle one of each side counts, for
    the disk and the processor of a machine that others share are twice as quick at times."""


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison: ours against a peer, and what it has to be; `None`: it shows the machine."""

    what: str
    ours: float
    peer: float
    bound: float | None
    at_most: bool = False

    @property
    def ratio(self) -> float:
        """Ours by the peer's."""
        return self.ours / self.peer

    @property
    def holds(self) -> bool:
        """Whether the bound holds in this run."""
        if self.bound is None:
            return True
        return self.ratio <= self.bound if self.at_most else self.ratio >= self.bound


def peer(python: str, what: str, steps: int, runs: int) -> float:
    """Return the durable steps that a peer makes in each second."""
    folder = tempfile.mkdtemp(prefix="jr2-bench-", dir="/var/tmp")
    try:
        ran = subprocess.run(
            [python, str(HERE / "peers.py"), folder, what, str(steps), str(runs)],
            capture_output=True,
            text=True,
            timeout=600,
        )
        if ran.returncode != 0:
            raise RuntimeError(f"{what}: {ran.stderr[-2000:]}")
        return float(json.loads(ran.stdout.splitlines()[-1])["rate"])
    finally:
        shutil.rmtree(folder)


def on_disk(measure: Callable[[Path], float]) -> float:
    """Return what is measured in a new folder on the disk."""
    folder = tempfile.mkdtemp(prefix="jr2-bench-", dir="/var/tmp")
    try:
        return measure(Path(folder))
    finally:
        shutil.rmtree(folder)


def over_http(counts: Counts) -> list[Row]:
    """Compare events for Gates through the API with a route that does nothing."""
    folder = Path(tempfile.mkdtemp(prefix="jr2-bench-", dir="/var/tmp"))
    pod = Pod(folder)
    empty = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.durable.requests_load", "empty"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=HERE.parents[2],
    )
    try:
        pod.start_worker()
        pod.start_orchestrator()
        published = pod.publish(pod.assembly({"ticker": textwrap.dedent(ours.WORKFLOW)}))
        assert published.status_code == 201, published.text
        runs = [pod.start_run("ticker") for _ in range(CONNECTIONS)]
        assert empty.stdout is not None
        port = int(empty.stdout.readline().removeprefix(requests_load.EMPTY_PORT_LINE))
        token = f"authorization: Bearer {pod.instance_token}"

        def requests(at: int, number: int) -> list[list[bytes]]:
            return [
                [
                    requests_load.request(
                        at,
                        f"/runs/{run}/gates/tick/events",
                        b'{"type":"tick"}',
                        token,
                        f"idempotency-key: {secrets.token_hex(8)}",
                    )
                    for _ in range(number)
                ]
                for run in runs
            ]

        asyncio.run(requests_load.load(port, requests(port, 20)))
        asyncio.run(requests_load.load(pod.port, requests(pod.port, 20)))
        nothings, rates = [], []
        for _ in range(counts.rounds):
            load = requests_load.load(port, requests(port, counts.requests))
            nothings.append(asyncio.run(load).rate)
            load = requests_load.load(pod.port, requests(pod.port, counts.requests))
            rates.append(asyncio.run(load).rate)
        nothing, events = median(nothings), median(rates)
        half = events / 2
        calm = asyncio.run(requests_load.load(pod.port, requests(pod.port, counts.requests), half))
        count = counts.requests * CONNECTIONS
        synced = on_disk(lambda folder: bare.p99(folder, count, half))
        idle = asyncio.run(requests_load.load(port, requests(port, counts.requests), half))
        return [
            Row("events through HTTP, beside an empty route", events, nothing, 0.6),
            Row("p99 in ms at half of that, beside 20 ms", calm.p99, 20.0, 1.0, at_most=True),
            Row("p99 in ms at that rate, beside the empty route's", calm.p99, idle.p99, None),
            Row("p99 in ms at that rate, beside a synced commit's", calm.p99, synced, None),
        ]
    finally:
        empty.terminate()
        empty.wait(timeout=LIMIT)
        if empty.stdout is not None:
            empty.stdout.close()
        pod.close()
        shutil.rmtree(folder, ignore_errors=True)


def rows(python: str, counts: Counts) -> list[Row]:
    """Measure; one after another, so that nothing runs beside what is measured.

    Args:
        python: the interpreter of the peers' environment.
        counts: how much is done.
    """
    few = int(counts.one * counts.peer)
    measures: dict[str, Callable[[], float]] = {
        "bare": lambda: on_disk(lambda folder: bare.steps(folder, few)),
        "stream": lambda: peer(python, "sqlite", counts.one * 4, 1),
        "one": lambda: asyncio.run(ours.steps(counts.one, 1)),
        "graph": lambda: peer(python, "langgraph", few, 1),
        "dbos": lambda: peer(python, "dbos", few, 1),
        "many": lambda: asyncio.run(ours.steps(counts.many, 100)),
        "dbos of many": lambda: peer(python, "dbos", counts.peer_many, 100),
        "heavy": lambda: asyncio.run(ours.steps(max(5, counts.many // 10), 100, 100_000)),
    }
    rounds = [{name: measure() for name, measure in measures.items()} for _ in range(counts.rounds)]
    middle = {name: median(each[name] for each in rounds) for name in measures}
    one, many, dbos_many = middle["one"], middle["many"], middle["dbos of many"]
    return [
        Row(
            "steps of one run, beside the better of DBOS and LangGraph",
            one,
            max(middle["dbos"], middle["graph"]),
            2,
        ),
        Row("steps of one run, beside the bare trips and syncs of one", one, middle["bare"], None),
        Row("steps over 100 runs, beside DBOS", many, dbos_many, 20),
        Row("steps over 100 runs, beside one stream of synced commits", many, middle["stream"], 3),
        Row("steps with 100 kB of context, beside DBOS without", middle["heavy"], dbos_many, 1),
        *over_http(counts),
    ]


def of_parked(measured: list[parked.Parked]) -> list[Row]:
    """Hold what parked runs cost to its bounds, the first number of them beside the last."""
    least, most = measured[0], measured[-1]
    middle = measured[len(measured) // 2]
    further = (most.memory - middle.memory) * 1024 / max(1, most.runs - middle.runs)
    return [
        Row(
            f"MiB of memory with {middle.runs:,} parked runs, beside 200",
            middle.memory,
            200,
            1,
            at_most=True,
        ),
        Row(
            f"kB of memory for each further one to {most.runs:,}, beside 0.5",
            further,
            0.5,
            1,
            at_most=True,
        ),
        Row(
            f"s from kill -9 to the first answer with {middle.runs:,}, beside 2",
            middle.start,
            2,
            1,
            at_most=True,
        ),
        Row(
            f"s more until {middle.due:,} due timers have fired, beside 2",
            middle.fired,
            2,
            1,
            at_most=True,
        ),
        Row(
            f"ms of an event with {most.runs:,} parked, beside the same with {least.runs:,}",
            most.event,
            least.event,
            1.25,
            at_most=True,
        ),
    ]


def parked_table(measured: list[parked.Parked]) -> str:
    """Return what each number of parked runs costs as Markdown."""
    lines = [
        "| parked runs | memory, MiB | store, MiB | start, s | due timers | s more | an event, ms |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {each.runs:,} | {each.memory:.0f} | {each.disk:.1f} | {each.start:.2f} "
        f"| {each.due:,} | {each.fired:.2f} | {each.event:.2f} |"
        for each in measured
    ]
    return "\n".join(lines)


def table(measured: list[Row]) -> str:
    """Return the rows as Markdown."""
    lines = [
        "| what | ours | beside | ratio | bound | |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in measured:
        lines.append(
            f"| {row.what} | {_short(row.ours)} | {_short(row.peer)} | {row.ratio:.2f} | {_stands(row)} |"
        )
    return "\n".join(lines)


def _stands(row: Row) -> str:
    if row.bound is None:
        return "- | the machine"
    sign = "≤" if row.at_most else "≥"
    return f"{sign} {row.bound:g} | {'holds' if row.holds else 'not yet'}"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.2f}"


if __name__ == "__main__":
    print(table(rows(sys.argv[1], Counts())))
