"""Publish: each refusal has its code, leaves the old one current and no file behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jr2 import names
from jr2.wire import LeaseStamp
from jr2_runtime.orchestrator.assemblies import publish
from jr2_runtime.orchestrator.assemblies.listing import Limits
from jr2_runtime.orchestrator.host import process
from jr2_runtime.orchestrator.store import StoreError
from jr2_runtime.orchestrator.store import assemblies as rows

pytestmark = pytest.mark.anyio


def left(bench: Any) -> set[str]:
    """Return what lies on the volume, but for the store."""
    state = bench.folder / "state"
    return {
        each.relative_to(state).parts[1]
        for each in (*(state / "assemblies").iterdir(), *(state / "incoming").iterdir())
    }


async def refused(bench: Any, answer: Any, code: int, text: str) -> None:
    """Check a refusal, and that nothing has changed."""
    assert answer.status_code == code, answer.text
    body = answer.json()
    assert text in body["error"]
    held = (await bench.get("/assemblies")).json()
    current = bench.registry.hash
    assert held["current"] == current
    assert [each["hash"] for each in held["assemblies"]] == [current]
    assert left(bench) == {current}
    assert (await bench.client.get("/workflows")).json() == ["gate", "task", "timer"]


async def test_201_makes_it_current_and_200_says_that_it_is(bench: Any, rig: Any) -> None:
    before = bench.registry.hash
    made = rig.assembly("second")
    answer = await bench.publish(made)
    assert answer.status_code == 201
    assert answer.json() == {"hash": made[0], "workflows": ["gate", "task", "timer"]}
    opened = len(bench.worker.opened)
    again = await bench.publish(made)
    assert (again.status_code, again.json()) == (200, answer.json())
    assert len(bench.worker.opened) == opened
    await bench.eventually(lambda: left(bench) == {made[0]})
    assert before not in left(bench)
    held = (await bench.get("/assemblies")).json()
    assert held == {
        "current": made[0],
        "assemblies": [
            {"hash": made[0], "kitVersion": names.KIT_VERSION, "current": True, "runs": []}
        ],
        "maps": {"images": "a" * 64, "held": None},
        "stuck": [],
    }


async def test_the_content_must_be_that_of_the_hash(bench: Any, rig: Any) -> None:
    hash_, files = rig.assembly("x")
    wrong = ("0" * 64, files)
    await refused(bench, await bench.publish(wrong), 400, f"the content has the hash {hash_[:12]}")
    answer = await bench.publish(("abc", files))
    await refused(bench, answer, 400, "64 hex digits")
    lease = {**bench.bearer(rig.PUBLISH_TOKEN), names.HEADER_LEASE: rig.LEASE}
    for body in (b"", b"[]", b"{", b'{"files": 1}', b'{"files": [], "more": 1}'):
        for ask in ("POST", "PUT"):
            path = f"/assemblies/{hash_}{'/missing' if ask == 'POST' else ''}"
            answer = await bench.client.request(ask, path, content=body, headers=lease)
            await refused(bench, answer, 400, "no list of files")


async def test_a_file_that_leaves_its_folder_is_refused(bench: Any, rig: Any) -> None:
    answer = await bench.publish(rig.assembly_of({"instance/../../../evil": b""}))
    await refused(bench, answer, 400, "not allowed")
    assert not (bench.folder / "evil").exists()


async def test_a_manifest_that_is_none_is_refused(bench: Any, rig: Any) -> None:
    for content in (b"{", b"[]", b"{}", b'{"kitVersion": "1"}', b"x" * 300_000):
        made = rig.assembly_of({"assembly.json": content})
        await refused(bench, await bench.publish(made), 400, "assembly.json")


async def test_another_kit_version_is_409_by_header_and_by_manifest(bench: Any, rig: Any) -> None:
    opened = len(bench.worker.opened)
    answer = await bench.publish(rig.assembly("x"), **{"X-JR2-Kit-Version": "9.9.9"})
    await refused(bench, answer, 409, "Kit version 9.9.9")
    made = rig.assembly("x", kitVersion="9.9.9")
    await refused(bench, await bench.publish(made), 409, "Kit version 9.9.9")
    assert len(bench.worker.opened) == opened


async def test_what_does_not_load_is_422_with_its_problems(bench: Any, rig: Any) -> None:
    bench.worker.problems = ['workflow "gate": something is Open', "another"]
    answer = await bench.publish(rig.assembly("x"))
    await refused(bench, answer, 422, "does not pass the Orchestrator's checks")
    assert answer.json()["problems"] == bench.worker.problems
    bench.worker.problems = []
    bench.worker.workflows = ("gate",)
    answer = await bench.publish(rig.assembly("x"))
    await refused(bench, answer, 422, "does not hold the Workflows that it names")
    bench.worker.answer = lambda request, body: ({"kind": "nonsense"}, b"")
    answer = await bench.publish(rig.assembly("x"))
    await refused(bench, answer, 422, "does not load")
    # Fixed, the same content is taken.
    bench.worker.answer, bench.worker.workflows = None, ("gate", "task", "timer")
    assert (await bench.publish(rig.assembly("x"))).status_code == 201


async def test_an_older_lease_is_refused_and_the_holder_goes_on(bench: Any, rig: Any) -> None:
    moment = datetime(2026, 11, 30, 12, tzinfo=UTC)
    old = LeaseStamp(acquired=moment, nonce="old-1").header()
    new = LeaseStamp(acquired=moment + timedelta(seconds=1), nonce="new_2").header()
    assert (await bench.publish(rig.assembly("a"), **{"X-JR2-Lease": old})).status_code == 201
    assert (await bench.publish(rig.assembly("a"), **{"X-JR2-Lease": new})).status_code == 200
    await bench.eventually(lambda: left(bench) == {bench.registry.hash})
    answer = await bench.publish(rig.assembly("b"), **{"X-JR2-Lease": old})
    await refused(bench, answer, 409, "a later converge has taken the Lease over")
    answer = await bench.publish(rig.assembly("a"), **{"X-JR2-Lease": old})
    await refused(bench, answer, 409, "a later converge has taken the Lease over")
    answer = await bench.publish(rig.assembly("b"), **{"X-JR2-Lease": "yesterday me"})
    await refused(bench, answer, 400, "X-JR2-Lease")
    assert (await bench.publish(rig.assembly("b"), **{"X-JR2-Lease": new})).status_code == 201


async def test_a_publish_without_the_lease_is_refused_before_it_is_read(
    bench: Any, rig: Any
) -> None:
    hash_, _ = rig.assembly("x")
    read = False

    async def content() -> AsyncIterator[bytes]:
        nonlocal read
        read = True
        yield b""

    for ask, path in (("PUT", f"/assemblies/{hash_}"), ("POST", f"/assemblies/{hash_}/missing")):
        answer = await bench.client.request(
            ask, path, content=content(), headers=bench.bearer(rig.PUBLISH_TOKEN)
        )
        await refused(bench, answer, 400, "a publish carries the converge Lease (X-JR2-Lease)")
    assert not read


async def test_an_older_assembly_goes_when_the_store_takes_it_later(
    bench: Any, rig: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(publish, "FIRST_PAUSE", 0.001)
    run = await bench.start("gate")
    before = bench.registry.hash
    made = rig.assembly("second")
    assert (await bench.publish(made)).status_code == 201
    assert left(bench) == {before, made[0]}
    write, failing = bench.store.write, 2

    async def fail(job: Any, **given: Any) -> Any:
        nonlocal failing
        if job is rows.release and failing:
            failing -= 1
            raise StoreError("the disk is full")
        return await write(job, **given)

    monkeypatch.setattr(bench.store, "write", fail)
    assert (await bench.post(f"/runs/{run}/gates/review/events", {"type": "go"})).is_success

    await bench.eventually(lambda: left(bench) == {made[0]})
    assert failing == 0
    said = [each for each in caplog.records if "could not be looked for" in each.message]
    assert [vars(each)["reason"] for each in said] == ["StoreError: the disk is full"] * 2


async def test_a_folder_that_stays_is_tried_again_and_changes_no_answer(
    bench: Any, rig: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(publish, "FIRST_PAUSE", 0.001)
    before = bench.registry.hash
    remove, failing = bench.folders.remove, 2

    def fail(hash_: str) -> None:
        nonlocal failing
        if failing:
            failing -= 1
            raise OSError(5, "Input/output error")
        remove(hash_)

    monkeypatch.setattr(bench.folders, "remove", fail)
    made = rig.assembly("second")
    assert (await bench.publish(made)).status_code == 201
    assert bench.registry.hash == made[0]

    await bench.eventually(lambda: left(bench) == {made[0]})
    assert failing == 0
    said = [each for each in caplog.records if "was not removed" in each.message]
    assert [vars(each)["assembly"] for each in said] == [before[:12]] * 2
    await bench.start("gate")


async def test_what_is_too_much_is_refused_before_a_blob_is_sent(
    short_folder: Path, rig: Any
) -> None:
    async with rig.open_bench(
        short_folder, limits=Limits(files=2, unpacked=2000, spare=0)
    ) as bench:
        assert (await bench.publish()).status_code == 201
        many = rig.assembly_of({f"instance/{n}.py": b"" for n in range(3)})
        await refused(bench, await bench.ask_missing(many), 413, "more than 2 files: it has 3")
        large = rig.assembly_of({"assembly.json": b" " * 2001})
        await refused(bench, await bench.ask_missing(large), 413, "larger than 2000 bytes")
        await refused(bench, await bench.commit(large), 413, "larger than 2000 bytes")
    async with rig.open_bench(short_folder, limits=Limits(spare=2**60)) as bench:
        answer = await bench.ask_missing(rig.assembly("x"))
        await refused(bench, answer, 507, "no room for the Assembly: ")
        # What is there already needs none.
        assert (await bench.publish()).status_code == 200


async def test_a_worker_that_is_away_is_503(
    bench: Any, rig: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "WORKER_DEADLINE", 0.3)
    monkeypatch.setattr(process, "FIRST_PAUSE", 0.01)
    bench.worker.leave()
    answer = await bench.publish(rig.assembly("x"))
    await refused(bench, answer, 503, "the worker is away")
    assert answer.headers["Retry-After"] == "1"


async def test_a_start_cleans_up_after_a_kill_in_the_middle_of_a_publish(
    short_folder: Path, rig: Any
) -> None:
    async with rig.open_bench(short_folder) as bench:
        assert (await bench.publish()).status_code == 201
        run = await bench.start("gate")
        current = bench.registry.hash
    state = short_folder / "state"
    for name in ("f" * 64, ".gone-1"):
        (state / "assemblies" / name).mkdir()
    (state / "incoming" / "half").mkdir()
    (state / "listings" / f"{'f' * 64}.json").write_text("{}")
    async with rig.open_bench(short_folder) as bench:
        assert left(bench) == {current}
        assert [each.stem for each in (state / "listings").iterdir()] == [current]
        assert bench.registry.hash == current
        assert (await bench.status(run))["status"] == "active"


async def test_an_assembly_whose_files_are_gone_loses_its_runs(
    short_folder: Path, rig: Any
) -> None:
    async with rig.open_bench(short_folder) as bench:
        assert (await bench.publish()).status_code == 201
        run = await bench.start("gate")
        current = bench.registry.hash
        bench.folders.remove(current)
    async with rig.open_bench(short_folder) as bench:
        assert bench.registry.hash is None
        lost = await bench.status(run)
        assert lost["status"] == "lost"
        assert lost["reason"] == f"Assembly {current[:12]} is not on the state volume any more"
        assert lost["value"] == "review"
