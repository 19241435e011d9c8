"""`Idempotency-Key`: a write is done once for a key, and each repeat gets the same answer."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from jr2 import names
from jr2_runtime.orchestrator.store import Ballast, Once, Repeated, StoreError, answers
from jr2_runtime.orchestrator.upkeep import drop_answers, sweep

pytestmark = pytest.mark.anyio

DAY = 24 * 3600


async def post(bench: Any, path: str, body: Any, key: str, **headers: str) -> Any:
    return await bench.client.post(
        path,
        json=body,
        headers={
            **bench.bearer("instance-token"),
            names.HEADER_IDEMPOTENCY_KEY: key,
            **headers,
        },
    )


async def test_a_start_is_done_once_for_its_key(bench: Any) -> None:
    first = await post(bench, "/workflows/gate/runs", {"a": 1}, "k")
    again = await post(bench, "/workflows/gate/runs", {"a": 1}, "k")
    other_key = await post(bench, "/workflows/gate/runs", {"a": 1}, "l")

    assert first.status_code == again.status_code == other_key.status_code == 201
    assert again.content == first.content
    assert other_key.json()["runId"] != first.json()["runId"]
    assert len((await bench.get("/runs")).json()) == 2


async def test_an_event_is_taken_once_for_its_key_and_answered_when_its_gate_is_gone(
    bench: Any,
) -> None:
    run = await bench.start("gate")
    path = f"/runs/{run}/gates/review/events"
    for _ in range(3):
        answer = await post(bench, path, {"type": "go"}, "k")
        assert (answer.status_code, answer.json()) == (200, {"ok": True})
    assert len((await bench.status(run))["context"]["seen"]) == 1
    assert (await post(bench, path, {"type": "go"}, "new")).status_code == 404


async def test_an_event_that_the_same_gate_would_take_again_is_not(bench: Any) -> None:
    """A Gate that stays open: only the transaction itself can tell the repeat."""

    def stays_open(request: dict[str, Any], body: bytes) -> Any:
        if request["op"] != "step":
            return None
        before = json.loads(body)
        seen = [*before["seen"], request["event"]["payload"]]
        view = {
            "status": "active",
            "value": "review",
            "context": {"seen": seen},
            "gates": [{"gate": "review", "id": "g", "path": [], "accepts": [], "meta": None}],
        }
        snapshot = json.dumps({"state": "review", "seen": seen}).encode()
        return {"kind": "stepped", "view": view, "commands": []}, snapshot

    bench.worker.answer = stays_open
    run = await bench.start("gate")
    path = f"/runs/{run}/gates/review/events"
    answers_ = await asyncio.gather(
        *(post(bench, path, {"type": "go", "n": n}, f"k{n}") for n in (1, 2, 1, 2, 1))
    )
    assert [answer.status_code for answer in answers_] == [200] * 5
    seen = (await bench.status(run))["context"]["seen"]
    assert sorted(each["n"] for each in seen) == [1, 2]


async def test_cancel_and_publish_are_answered_as_the_first_time(bench: Any, rig: Any) -> None:
    run = await bench.start("gate")
    for _ in range(2):
        answer = await post(bench, f"/runs/{run}/events", {"type": "CANCEL"}, "c")
        assert (answer.status_code, answer.json()) == (200, {"ok": True})
    other = rig.assembly("other")
    key = {names.HEADER_IDEMPOTENCY_KEY: "p"}
    first = await bench.publish(other, **key)
    again = await bench.publish(other, **key)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    assert (await bench.publish(other)).status_code == 200
    clash = await bench.publish(rig.assembly("third"), **key)
    assert clash.status_code == 422
    assert bench.registry.hash == other[0]


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/workflows/gate/runs", {"a": 2}, {}),
        ("/workflows/timer/runs", {"delay": 1}, {}),
        ("/workflows/none/runs", {"delay": 1}, {}),
        ("/runs/none/events", {"type": "CANCEL"}, {}),
        ("/runs/none/gates/review/events", {"delay": 1}, {}),
        ("/workflows/gate/runs", {"delay": 1}, {names.HEADER_IF_GATE: "g"}),
    ],
)
async def test_a_key_of_another_request_is_422_and_does_nothing(
    bench: Any, path: str, body: Any, headers: dict[str, str]
) -> None:
    await post(bench, "/workflows/gate/runs", {"delay": 1}, "k")
    answer = await post(bench, path, body, "k", **headers)
    assert answer.status_code == 422
    assert "was used for another request" in answer.json()["error"]
    assert len((await bench.get("/runs")).json()) == 1


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "\x7f"])
async def test_a_key_that_is_none_is_400(bench: Any, key: str) -> None:
    answer = await post(bench, "/workflows/gate/runs", {}, key)
    assert answer.status_code == 400
    assert names.HEADER_IDEMPOTENCY_KEY in answer.json()["error"]
    two = await bench.client.post(
        "/workflows/gate/runs",
        headers=[
            ("Authorization", "Bearer instance-token"),
            (names.HEADER_IDEMPOTENCY_KEY, "a"),
            (names.HEADER_IDEMPOTENCY_KEY, "b"),
        ],
    )
    assert two.status_code == 400


async def test_what_was_refused_is_not_remembered(bench: Any) -> None:
    run = await bench.start("gate")
    path = f"/runs/{run}/gates/review/events"
    assert (await post(bench, path, {"type": "no"}, "k")).status_code == 400
    assert (await post(bench, path, {"type": "go"}, "k")).status_code == 200


async def test_an_answer_is_there_after_a_restart_and_goes_after_seven_days(
    short_folder: Path, rig: ModuleType
) -> None:
    async with rig.open_bench(short_folder) as bench:
        assert (await bench.publish()).status_code == 201
        first = await post(bench, "/workflows/gate/runs", {"a": 1}, "k")
    async with rig.open_bench(short_folder) as bench:
        again = await post(bench, "/workflows/gate/runs", {"a": 1}, "k")
        assert again.content == first.content
        bench.clock.advance(7 * DAY)
        await sweep(bench.store, bench.clock)
        assert (await post(bench, "/workflows/gate/runs", {"a": 1}, "k")).content == first.content
        bench.clock.advance(1)
        await sweep(bench.store, bench.clock)
        later = await post(bench, "/workflows/gate/runs", {"a": 1}, "k")
        assert later.json()["runId"] != first.json()["runId"]


async def test_a_sweep_removes_everything_old_in_pieces(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "SWEPT_AT_ONCE", 2)
    for number in range(5):
        await post(bench, "/workflows/gate/runs", {}, f"k{number}")
    bench.clock.advance(7 * DAY + 1)
    await sweep(bench.store, bench.clock)
    (left,) = await bench.store.read(
        lambda db: db.execute("SELECT count(*) FROM answers").fetchone()
    )
    assert left == 0


async def test_an_answer_is_not_kept_when_the_change_is_not(bench: Any) -> None:
    once = Once(key="k", fingerprint="f")

    def fails(db: Any) -> None:
        answers.keep(db, once, answers.Answer(code=200, body="{}"), 1)
        raise Repeated("half way")

    with pytest.raises(Repeated):
        await bench.store.write(fails)
    assert await bench.store.read(lambda db: answers.find(db, once)) is None
    bench.store.close()
    with pytest.raises(StoreError):
        await bench.store.write(lambda db: None)


async def test_a_repeat_is_answered_while_the_disk_is_full(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was done is not said to be undone because nothing more can be."""
    run = await bench.start("gate")
    asked = [
        ("/workflows/gate/runs", {"n": 1}, "start"),
        (f"/runs/{run}/gates/review/events", {"type": "go"}, "event"),
    ]
    first = [await post(bench, *each) for each in asked]
    # No disk has room for it, so the store takes only what frees room.
    ballast = Ballast(bench.folder / "ballast", size=2**60)
    monkeypatch.setattr(bench.store, "_ballast", ballast)
    again = [await post(bench, *each) for each in asked]
    other = await post(bench, "/workflows/gate/runs", {}, "new")
    assert [(each.status_code, each.text) for each in again] == [
        (each.status_code, each.text) for each in first
    ]
    assert other.status_code == 507


async def test_the_oldest_answers_go_sooner_when_all_take_too_much(
    bench: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = await bench.start("gate")
    caplog.set_level("INFO")
    for number in range(40):
        await post(bench, f"/runs/{run}/events", {"type": "CANCEL"}, f"old-{number:02}")
        bench.clock.advance(1)
    bench.clock.advance(answers.KEPT_AT_LEAST_MS / 1000)
    for number in range(5):
        await post(bench, f"/runs/{run}/events", {"type": "CANCEL"}, f"new-{number:02}")

    def keys(db: sqlite3.Connection) -> list[str]:
        return [key for (key,) in db.execute("SELECT key FROM answers ORDER BY answered_at, key")]

    before = await bench.store.read(keys)
    assert len(before) == 45
    monkeypatch.setattr(answers, "FEW", 44)
    held = await bench.store.read(answers.held_bytes)
    each = held // 45
    await drop_answers(bench.store, bench.clock)
    assert await bench.store.read(keys) == before, "they take less than they may"
    # As many go as take too much, the oldest first, and in pieces.
    monkeypatch.setattr(answers, "DROPPED_AT_ONCE", 4)
    monkeypatch.setattr(answers, "MOST_BYTES", held - 10 * each)
    await drop_answers(bench.store, bench.clock)
    assert await bench.store.read(keys) == before[10:]
    assert [vars(line)["bytes"] for line in caplog.records if "before their time" in line.message]
    # None goes that is younger than five minutes, whatever they take.
    monkeypatch.setattr(answers, "FEW", 0)
    monkeypatch.setattr(answers, "MOST_BYTES", 0)
    await drop_answers(bench.store, bench.clock)
    assert await bench.store.read(keys) == before[40:]
    monkeypatch.setattr(answers, "FEW", 5)
    assert await bench.store.read(answers.held_bytes) == 0
