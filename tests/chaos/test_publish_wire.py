"""What a publish sends over the wire: what is missing and little more, also after it was cut."""

from __future__ import annotations

import os
import random
import shutil
import stat
from pathlib import Path
from typing import Any

import httpx2
import pytest

from jr2 import names
from jr2.errors import StepFailed
from jr2_infra.assembly import BrokeOff, Parcel, publish
from jr2_infra.assembly.sending import AT_ONCE, BUNDLE
from tests.chaos.conftest import LEASE
from tests.chaos.wire import Proxy, proxied
from tests.waiting import LIMIT, wait_for

REVIEW = (Path(__file__).parent / "workflows" / "review.py").read_text()
OVERHEAD = 3_000
"""Bytes of the heads of a publish and of the entries of its list, beside what is sent."""


def noise(size: int, seed: int) -> bytes:
    """Bytes that cannot be packed, so that what is sent can be compared with what is there."""
    return random.Random(seed).randbytes(size)


def add_files(assembly: Any, count: int, size: int) -> int:
    """Give an Assembly packages of many files; return their bytes."""
    for n in range(count):
        folder = assembly.root / names.ASSEMBLY_PACKAGES / f"part{n % 40}"
        folder.mkdir(exist_ok=True)
        (folder / f"module{n}.dat").write_bytes(noise(size, n))
    return count * size


def send(pod: Any, assembly: Any, proxy: Proxy) -> Any:
    """Publish as `jr2 up` does, through a proxy."""
    return publish(
        proxy.url,
        pod.publish_token,
        assembly.parcel(),
        assembly=assembly.hash,
        current=pod.assemblies()["current"],
        lease=LEASE,
    )


@pytest.fixture
def serving(pod: Any) -> Any:
    pod.start_worker()
    pod.start_orchestrator()
    return pod


def test_a_publish_that_was_cut_goes_on_where_it_was(serving: Any) -> None:
    assembly = serving.assembly({"review": REVIEW})
    total = add_files(assembly, 400, 40_000)
    with proxied(serving.port) as proxy:
        proxy.cut_at = total // 2
        with pytest.raises(BrokeOff, match=f"{assembly.hash[:12]} broke off"):
            send(serving, assembly, proxy)
        assert proxy.sent > total // 2
    assert serving.assemblies()["current"] is None
    with proxied(serving.port) as proxy:
        assert send(serving, assembly, proxy).status == 201
        listed = len(assembly.parcel().files) * 400
        # What was in flight when it was cut may be sent twice, and nothing else is.
        assert proxy.sent < total - total // 2 + AT_ONCE * BUNDLE + listed
        assert proxy.sent < total * 0.9
    assert serving.assemblies()["current"] == assembly.hash
    serving.start_run("review")


def test_a_kill_between_the_blobs_and_the_commit_loses_none_of_them(serving: Any) -> None:
    assembly = serving.assembly({"review": REVIEW})
    total = add_files(assembly, 20, 100_000)
    parcel: Parcel = assembly.parcel()
    asked = serving.ask_missing(assembly, parcel).json()["missing"]
    assert len(asked) == len(parcel.sources)
    for digest in asked[1:]:
        sent = serving.client.put(
            f"/blobs/{digest}",
            content=parcel.sources[digest].read_bytes(),
            headers=serving.publishing(),
        )
        assert sent.status_code == 200, sent.text
    (main,) = [each for each in serving._processes if "jr2_runtime.orchestrator" in each.args]
    serving.kill(main)
    serving.start_orchestrator()
    assert serving.ask_missing(assembly, parcel).json()["missing"] == asked[:1]
    with proxied(serving.port) as proxy:
        assert send(serving, assembly, proxy).status == 201
        assert proxy.sent < total / 5


def test_an_edit_costs_no_more_than_twice_its_bytes(serving: Any) -> None:
    first = serving.assembly({"review": REVIEW})
    add_files(first, 3_000, 300)
    edited = first.root / names.ASSEMBLY_INSTANCE / "data.bin"
    edited.write_bytes(noise(20_000, 1))
    with proxied(serving.port) as proxy:
        assert send(serving, first, proxy).status == 201
        # Three thousand files are no three thousand requests, and their names are packed.
        assert proxy.heads < 12
        assert proxy.sent < 2 * 3_000 * 300
    for size, seed in ((20_000, 2), (200_000, 3), (500, 4)):
        edited.write_bytes(noise(size, seed))
        with proxied(serving.port) as proxy:
            assert send(serving, first, proxy).status == 201
            assert size < proxy.sent < max(2 * size, size + OVERHEAD), proxy.sent
            assert proxy.heads == 4
    # What the bytes were before is held still, under the same digest; nothing is sent for it.
    edited.write_bytes(noise(200_000, 3))
    with proxied(serving.port) as proxy:
        assert send(serving, first, proxy).status == 201
        assert proxy.sent < OVERHEAD


def test_a_file_that_is_gone_or_is_moved_costs_its_name_alone(serving: Any) -> None:
    first = serving.assembly({"review": REVIEW})
    add_files(first, 200, 5_000)
    with proxied(serving.port) as proxy:
        assert send(serving, first, proxy).status == 201
    packages = first.root / names.ASSEMBLY_PACKAGES
    (packages / "part0" / "module0.dat").unlink()
    (packages / "part1" / "module1.dat").rename(packages / "part1" / "moved.dat")
    (packages / "part2" / "module2.dat").chmod(0o755)
    with proxied(serving.port) as proxy:
        assert send(serving, first, proxy).status == 201
        assert proxy.sent < OVERHEAD
    tree = serving.folder / "state" / names.ASSEMBLIES_DIR / first.hash / names.ASSEMBLY_PACKAGES
    assert not (tree / "part0" / "module0.dat").exists()
    assert (tree / "part1" / "moved.dat").read_bytes() == noise(5_000, 1)
    assert stat.S_IMODE((tree / "part2" / "module2.dat").stat().st_mode) == 0o555
    assert stat.S_IMODE((tree / "part1" / "moved.dat").stat().st_mode) == 0o444


def test_assemblies_share_their_files_and_the_last_one_takes_them_along(serving: Any) -> None:
    first = serving.assembly({"review": REVIEW})
    total = add_files(first, 50, 20_000)
    second = serving.assembly({"review": REVIEW.replace("VERSION = 1", "VERSION = 2")})
    shutil.copytree(
        first.root / names.ASSEMBLY_PACKAGES,
        second.root / names.ASSEMBLY_PACKAGES,
        dirs_exist_ok=True,
    )
    state = serving.folder / "state"
    with proxied(serving.port) as proxy:
        assert send(serving, first, proxy).status == 201
        run = serving.start_run("review")
        assert send(serving, second, proxy).status == 201
    inodes = {
        file.stat().st_ino: file.stat().st_size
        for file in (state / names.ASSEMBLIES_DIR).rglob("*.dat")
    }
    assert sum(inodes.values()) == total
    answer = serving.client.post(f"/runs/{run}/gates/review/events", json={"type": "go"})
    assert answer.status_code == 200, answer.text
    wait_for("the older one goes", lambda: len(serving.assemblies()["assemblies"]) == 1)
    kept = state / names.ASSEMBLIES_DIR / second.hash / names.ASSEMBLY_PACKAGES
    assert sorted(each.read_bytes() for each in kept.rglob("*.dat")) == sorted(
        noise(20_000, n) for n in range(50)
    )


def test_a_file_that_is_edited_while_it_is_published_is_not_sent(serving: Any) -> None:
    assembly = serving.assembly({"review": REVIEW})
    for size in (100, 300_000):
        edited = assembly.root / names.ASSEMBLY_INSTANCE / "data.bin"
        edited.write_bytes(noise(size, 1))
        parcel, hash_ = assembly.parcel(), assembly.hash
        edited.write_bytes(noise(size, 2))
        for _ in range(2):
            with pytest.raises(StepFailed, match=r"data\.bin was changed while"):
                publish(
                    f"http://127.0.0.1:{serving.port}",
                    serving.publish_token,
                    parcel,
                    assembly=hash_,
                    lease=LEASE,
                )
            edited.unlink(missing_ok=True)
    assert serving.assemblies()["current"] is None


def test_the_limits_are_met_before_a_byte_is_sent(serving: Any) -> None:
    assembly = serving.assembly({"review": REVIEW})
    parcel = assembly.parcel()
    some = parcel.files[0]
    many = [some.model_copy(update={"path": f"instance/{n}"}) for n in range(20_001)]
    large = some.model_copy(update={"path": "instance/large", "size": 2**30 + 1})
    for files, text in ((many, "more than 20000 files"), ([large], "larger than 1073741824 bytes")):
        asked = serving.ask_missing(assembly, parcel.model_copy(update={"files": files}))
        assert asked.status_code == 413, asked.text
        assert text in asked.json()["error"]
    assert not list((serving.folder / "state" / "blobs").iterdir())


def test_a_blob_is_taken_as_it_is_named_or_not_at_all(serving: Any) -> None:
    url, headers = f"/blobs/{'0' * 64}", serving.publishing()
    for content, encoding, text in (
        (b"other", "", "has the digest"),
        (b"no gzip", "gzip", "no gzip"),
    ):
        answer = serving.client.put(
            url,
            content=content,
            headers={**headers, **({"Content-Encoding": encoding} if encoding else {})},
        )
        assert answer.status_code == 400, answer.text
        assert text in answer.json()["error"]
    answer = serving.client.put(url, content=b"", headers={**headers, "Content-Encoding": "br"})
    assert answer.status_code == 415
    for token in (None, serving.instance_token):
        answer = httpx2.put(
            f"http://127.0.0.1:{serving.port}{url}",
            content=b"",
            headers={} if token is None else {"Authorization": f"Bearer {token}"},
            timeout=LIMIT,
            trust_env=False,
        )
        assert answer.status_code == (401 if token is None else 403)
    assert not list((serving.folder / "state" / "blobs").iterdir())
    assert not list((serving.folder / "state" / "incoming").iterdir())
    assert os.stat(serving.folder / "state" / "blobs").st_mode & 0o077 == 0
