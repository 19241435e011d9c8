"""Events of many runs together: each gets its own outcome, whatever becomes of the others."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from jr2 import names
from jr2.host_wire import GateEvent
from jr2_runtime.orchestrator.engine import batches
from jr2_runtime.orchestrator.store import runs as rows

pytestmark = pytest.mark.anyio
INSTANCE_TOKEN = "instance-token"


async def post(bench: Any, run: str, body: dict[str, Any], key: str | None = None) -> Any:
    headers = {"Authorization": f"Bearer {INSTANCE_TOKEN}"}
    if key is not None:
        headers[names.HEADER_IDEMPOTENCY_KEY] = key
    return await bench.client.post(f"/runs/{run}/gates/review/events", json=body, headers=headers)


@pytest.mark.parametrize(
    ("runs", "length"), [(1, 32), (32, 32), (64, 32), (65, 33), (100, 50), (128, 64), (5_000, 64)]
)
def test_batches_are_of_one_length_unless_they_would_be_short(runs: int, length: int) -> None:
    assert batches.share(runs) == length


async def test_each_event_of_a_batch_has_its_own_outcome(bench: Any) -> None:
    runs = [await bench.start("gate") for _ in range(2 * batches.MOST_AT_ONCE)]
    used, refused, cancelled, moved = runs[:4]
    other = await bench.start("gate")
    assert (await post(bench, other, {"type": "go"}, "used")).status_code == 200
    # The store knows better than the memory of the engine.
    await bench.store.write(
        lambda db: db.execute("UPDATE runs SET seq = seq + 1 WHERE id = ?", (moved,))
    )

    def ask(run: str) -> Any:
        if run == used:
            return post(bench, run, {"type": "go", "n": 1}, "used")
        if run == refused:
            return post(bench, run, {"type": "stop"})
        return post(bench, run, {"type": "go"})

    asking = [asyncio.ensure_future(ask(run)) for run in runs]
    gone = await bench.post(f"/runs/{cancelled}/events", {"type": "CANCEL"})
    answers = {run: await answer for run, answer in zip(runs, asking, strict=True)}

    assert gone.status_code == 200
    assert answers[used].status_code == 422
    assert answers[refused].status_code == 400
    statuses = {run: (await bench.status(run))["status"] for run in runs}
    assert statuses.pop(used) == statuses.pop(refused) == "active"
    assert statuses.pop(cancelled) in ("cancelled", "done")
    assert set(statuses.values()) == {"done"}
    assert {answers[run].status_code for run in statuses} == {200}


async def test_what_is_lost_with_a_process_is_tried_again_and_only_the_culprit_faults(
    bench: Any,
) -> None:
    runs = [await bench.start("gate") for _ in range(12)]
    culprit = runs[5]
    died: list[str] = []

    def answer(request: dict[str, Any], body: bytes) -> None:
        if request["op"] == "step" and request["run_id"] == culprit:
            died.append(culprit)
            raise ConnectionError  # ends the link as a process that died would

    bench.worker.answer = answer
    answers = await asyncio.gather(*(post(bench, run, {"type": "go"}) for run in runs))

    assert {answer.status_code for answer in answers} == {200}
    statuses = [(await bench.status(run))["status"] for run in runs]
    assert statuses == ["error" if run == culprit else "done" for run in runs]
    assert len(died) == 2
    seen = [len((await bench.status(run))["context"]["seen"]) for run in runs if run != culprit]
    assert seen == [1] * 11


async def test_a_full_disk_refuses_each_event_of_a_batch_and_none_is_applied(bench: Any) -> None:
    runs = [await bench.start("gate") for _ in range(8)]
    await bench.store.write(lambda db: db.execute("PRAGMA max_page_count = 1").fetchall())
    body = {"type": "go", "text": "x" * 100_000}
    answers = await asyncio.gather(*(post(bench, run, body) for run in runs))
    assert {answer.status_code for answer in answers} == {507}
    await bench.store.write(lambda db: db.execute("PRAGMA max_page_count = 1073741823").fetchall())
    answers = await asyncio.gather(*(post(bench, run, body) for run in runs))
    assert {answer.status_code for answer in answers} == {200}
    assert [len((await bench.status(run))["context"]["seen"]) for run in runs] == [1] * 8


async def test_a_run_takes_its_events_in_their_order(bench: Any) -> None:
    """Also while other runs are under way: one run has never two steps in one batch."""
    asked: list[int] = []

    def stays_open(request: dict[str, Any], body: bytes) -> Any:
        if request["op"] != "step":
            return None
        asked.append(request["event"]["payload"]["n"])
        gate: dict[str, Any] = {"gate": "review", "id": "g", "path": [], "accepts": []}
        view = {"status": "active", "value": "review", "gates": [gate]}
        return {"kind": "stepped", "view": view, "commands": []}, b"{}"

    bench.worker.answer = stays_open
    run = await bench.start("gate")
    events = [GateEvent(gate="review", name="go", payload={"n": number}) for number in range(40)]
    await asyncio.gather(*(bench.engine.post(run, event) for event in events))
    assert asked == list(range(40))


async def test_runs_that_are_large_are_in_memory_a_few_at_a_time(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many large runs have events, a batch has few of them, and each event is taken."""
    large = "x" * 200_000

    def grows(request: dict[str, Any], body: bytes) -> Any:
        if request["op"] not in ("start", "step"):
            return None
        gate: dict[str, Any] = {"gate": "review", "id": "g", "path": [], "accepts": []}
        count = len(json.loads(body)["seen"]) + 1 if request["op"] == "step" else 0
        view = {"status": "active", "value": "review", "context": count, "gates": [gate]}
        snapshot = json.dumps({"state": "review", "seen": [1] * count, "text": large})
        return {"kind": "stepped", "view": view, "commands": []}, snapshot.encode()

    bench.worker.answer = grows
    monkeypatch.setattr(batches, "MOST_BYTES", 500_000)
    monkeypatch.setattr(batches, "BATCH_BYTES", 500_000)
    runs = [await bench.start("gate") for _ in range(30)]
    largest: list[int] = []
    take = batches.Batches._take

    async def taken(self: Any, assembly: str, batch: Any, left: Any) -> None:
        largest.append(self._bytes)
        await take(self, assembly, batch, left)
        held = [box for box in batch if box.run is not None and box in left]
        assert held == []

    monkeypatch.setattr(batches.Batches, "_take", taken)
    reads: list[int] = []
    read_some = rows.read_some

    def read(db: Any, ids: Any, most: int) -> Any:
        found, is_all = read_some(db, ids, most)
        reads.append(len(found))
        return found, is_all

    monkeypatch.setattr(rows, "read_some", read)
    for known in runs:
        bench.engine._batches._recent.forget(known)
    answers = await asyncio.gather(*(post(bench, run, {"type": "go"}) for run in runs * 3))
    assert {answer.status_code for answer in answers} == {200}
    assert [(await bench.status(run))["context"] for run in runs] == [3] * 30
    assert max(reads) == 3
    assert max(largest) <= 500_000
    assert bench.engine._batches._bytes == 0
