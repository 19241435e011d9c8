"""Blobs: each is what its name says, appears as a whole, is shared by trees, and goes unused."""

from __future__ import annotations

import asyncio
import errno
import gzip
import hashlib
import json
import os
import stat
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import ClientDisconnect

from jr2 import bundles, names
from jr2.wire import AssemblyFile
from jr2_runtime.orchestrator.assemblies import publish
from jr2_runtime.orchestrator.assemblies.blobs import UNUSED_FOR_MS, Blobs, NotHeld
from jr2_runtime.orchestrator.assemblies.listing import Limits
from jr2_runtime.orchestrator.assemblies.receiving import MOST, Pace, in_time
from jr2_runtime.orchestrator.assemblies.refused import PublishError

pytestmark = pytest.mark.anyio
NOW = 1_800_000_000_000


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def bundle(*contents: bytes) -> bytes:
    return b"".join(bundles.encode(digest(content), content) for content in contents)


def held(bench: Any) -> dict[str, bytes]:
    """Return the blobs that came besides those of the Assembly that is current."""
    folder = bench.folder / "state" / "blobs"
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.stat().st_nlink == 1}


async def send(bench: Any, rig: Any, path: str, content: Any, encoding: str = "") -> Any:
    return await bench.client.request(
        "POST" if path == "/blobs" else "PUT",
        path,
        content=content,
        headers={
            **bench.bearer(rig.PUBLISH_TOKEN),
            **({"Content-Encoding": encoding} if encoding else {}),
        },
    )


@pytest.mark.parametrize("encoding", ["", "gzip"])
async def test_blobs_come_alone_and_together_in_pieces_of_any_size(
    bench: Any, rig: Any, encoding: str
) -> None:
    contents = [b"", b"a", os.urandom(5000), b"a" * 70_000, b"\n0 1\n"]
    whole = bundle(*contents[:4])
    packed = gzip.compress(whole, mtime=0) if encoding else whole

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(packed), 61):
            yield packed[at : at + 61]

    answer = await send(bench, rig, "/blobs", pieces(), encoding)
    assert (answer.status_code, answer.json()) == (200, {"ok": True})
    alone = gzip.compress(contents[4], mtime=0) if encoding else contents[4]
    for _ in range(2):  # the second one changes nothing
        answer = await send(bench, rig, f"/blobs/{digest(contents[4])}", alone, encoding)
        assert (answer.status_code, answer.json()) == (200, {"ok": True})
    assert held(bench) == {digest(content): content for content in contents}
    assert list((bench.folder / "state" / "incoming").iterdir()) == []
    modes = {stat.S_IMODE(each.stat().st_mode) for each in (bench.folder / "state/blobs").iterdir()}
    assert modes == {0o444}


@pytest.mark.parametrize(
    ("path", "content", "encoding", "code", "text"),
    [
        (f"/blobs/{digest(b'a')}", b"b", "", 400, f"has the digest {digest(b'b')[:12]}"),
        (f"/blobs/{digest(b'a')}", b"", "", 400, "has the digest"),
        (f"/blobs/{digest(b'a')}", gzip.compress(b"a", mtime=0)[:-9], "gzip", 400, "cut"),
        (
            f"/blobs/{digest(b'a')}",
            gzip.compress(b"a", mtime=0) + b"x",
            "gzip",
            400,
            "follows the end",
        ),
        (f"/blobs/{digest(b'a')}", b"plain", "gzip", 400, "no gzip"),
        (f"/blobs/{digest(b'a')}", b"a", "br", 415, "packed with gzip"),
        ("/blobs/" + "A" * 64, b"a", "", 400, "64 hex digits"),
        ("/blobs/abc", b"a", "", 400, "64 hex digits"),
        ("/blobs", b"x" * 100, "", 400, "too long"),
        ("/blobs", b"abc 1\na", "", 400, "is not `<digest> <bytes>`"),
        ("/blobs", digest(b"a").encode() + b" 01\na", "", 400, "is not `<digest> <bytes>`"),
        ("/blobs", digest(b"a").encode() + b" -1\na", "", 400, "is not `<digest> <bytes>`"),
        ("/blobs", digest(b"a").encode() + b" 1\nb", "", 400, "has the digest"),
        ("/blobs", digest(b"a").encode() + b" 2\na", "", 400, "cut"),
        ("/blobs", digest(b"a").encode(), "", 400, "cut"),
        (
            "/blobs",
            gzip.compress(bundle(b"x" * 9 * 2**20), mtime=0),
            "gzip",
            413,
            "larger than 8388608",
        ),
        ("/blobs", b"x" * (8 * 2**20 + 1), "", 413, "larger than 8388608"),
    ],
)
async def test_what_is_not_what_it_says_is_refused_and_leaves_nothing(
    bench: Any, rig: Any, path: str, content: bytes, encoding: str, code: int, text: str
) -> None:
    answer = await send(bench, rig, path, content, encoding)
    assert answer.status_code == code, answer.text
    assert text in answer.json()["error"]
    assert held(bench) == {}
    assert list((bench.folder / "state" / "incoming").iterdir()) == []


async def test_a_bundle_that_is_cut_has_brought_what_came_whole(bench: Any, rig: Any) -> None:
    first, second = os.urandom(3000), os.urandom(3000)
    cut = bundle(first, second)[:-1]

    async def content() -> AsyncIterator[bytes]:
        yield cut
        raise ClientDisconnect

    with pytest.raises(ClientDisconnect):
        await bench.services.publisher.receive(None, content(), None)
    assert held(bench) == {digest(first): first}
    answer = await send(bench, rig, "/blobs", cut)
    assert answer.status_code == 400
    assert held(bench) == {digest(first): first}


async def test_a_blob_needs_room_and_no_more_are_received_than_fit(
    short_folder: Path, rig: Any
) -> None:
    async with rig.open_bench(short_folder, limits=Limits(spare=2**60)) as bench:
        answer = await send(bench, rig, f"/blobs/{digest(b'a')}", b"a")
        assert answer.status_code == 507
    async with rig.open_bench(short_folder) as bench:
        waiting, go_on = [], asyncio.Event()

        async def slow() -> AsyncIterator[bytes]:
            await go_on.wait()
            yield b"a"

        for _ in range(MOST):
            sending = send(bench, rig, f"/blobs/{digest(b'a')}", slow())
            waiting.append(asyncio.ensure_future(sending))
        await bench.eventually(lambda: bench.services.publisher._receiving == MOST)
        late = await send(bench, rig, f"/blobs/{digest(b'a')}", b"a")
        assert (late.status_code, late.headers["Retry-After"]) == (503, "1")
        go_on.set()
        assert {(await each).status_code for each in waiting} == {200}
        assert (await send(bench, rig, f"/blobs/{digest(b'a')}", b"a")).status_code == 200


@pytest.mark.parametrize("pieces", [[], [b"x"], [b"x"] * 3])
async def test_a_sender_that_pauses_or_trickles_is_not_waited_for(
    pieces: Sequence[bytes],
) -> None:
    async def trickling() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece
        await asyncio.Event().wait()

    got: list[bytes] = []
    with pytest.raises(PublishError, match="came to a halt") as caught:
        await collect(in_time(trickling(), Pace(0.05)), got)
    assert caught.value.code == 408
    assert got == list(pieces)


def test_bytes_prolong_the_time_and_single_ones_do_not() -> None:
    trickle, flow = Pace(30, 4096), Pace(30, 4096)
    seconds = 0
    while trickle.seconds > 0 and seconds < 200:
        seconds += 1
        trickle.came(1, 1.0)
        flow.came(4096, 1.0)
        assert flow.seconds == 30, "who brings enough may go on for ever"
    assert seconds == 31
    # What came quickly may be followed by a pause, but by no longer one than any other.
    flow.came(2**20, 0.1)
    assert flow.seconds == 30


def test_a_tree_is_made_of_links_that_carry_the_mode(tmp_path: Path) -> None:
    blobs = made(tmp_path, b"one", b"run", b"both")
    files = [
        file("instance/a/one", b"one"),
        file("instance/b/one", b"one"),
        file("instance/run", b"run", "exec"),
        file("instance/plain", b"both"),
        file("instance/both", b"both", "exec"),
        AssemblyFile(path="instance/link", kind="link", target="a/one"),
    ]
    mask = os.umask(0o077)
    try:
        blobs.build(files, tmp_path / "tree")
    finally:
        os.umask(mask)
    tree = tmp_path / "tree"
    assert {each.path: (tree / each.path).read_bytes() for each in files} == {
        "instance/a/one": b"one",
        "instance/b/one": b"one",
        "instance/run": b"run",
        "instance/plain": b"both",
        "instance/both": b"both",
        "instance/link": b"one",
    }
    modes = {each.path: stat.S_IMODE((tree / each.path).lstat().st_mode) for each in files[:5]}
    assert modes == {
        each.path: 0o555 if each.kind == "exec" else 0o444 for each in files if each.sha256
    }
    for folder in ("", "instance", "instance/a"):
        assert stat.S_IMODE((tree / folder).stat().st_mode) == 0o755
    inode = (tmp_path / "blobs" / digest(b"one")).stat().st_ino
    assert {(tree / f"instance/{n}/one").stat().st_ino for n in "ab"} == {inode}
    # Nothing is stored twice but what has both modes.
    assert len(list((tmp_path / "blobs").iterdir())) == 4
    # The other form of a blob is made of the one that is held.
    blobs.build([file("instance/run", b"run"), file("x", b"one", "exec")], tmp_path / "second")
    assert stat.S_IMODE((tmp_path / "second/instance/run").stat().st_mode) == 0o444
    assert stat.S_IMODE((tmp_path / "tree/instance/run").stat().st_mode) == 0o555
    assert blobs.missing({digest(b"one"): 3, digest(b"run"): 3, digest(b"no"): 2}, NOW) == [
        digest(b"no")
    ]


def test_a_link_that_leaves_by_way_of_another_link_is_refused(tmp_path: Path) -> None:
    files = [
        file("packages/x", b"x"),
        AssemblyFile(path="instance/a/b/c/hop", kind="link", target="../../../../packages"),
        AssemblyFile(path="instance/out", kind="link", target="a/b/c/hop/../../elsewhere"),
    ]
    with pytest.raises(PublishError, match="points outside"):
        made(tmp_path, b"x").build(files, tmp_path / "tree")


def test_a_tree_says_how_many_blobs_it_lacks_and_a_size_is_not_believed(tmp_path: Path) -> None:
    blobs = made(tmp_path, b"one")
    lacking = [file("a", b"one"), file("b", b"two"), file("c", b"three", "exec")]
    with pytest.raises(NotHeld, match="2 of its files"):
        blobs.build(lacking, tmp_path / "tree")
    small = AssemblyFile(path="a", kind="file", sha256=digest(b"one"), size=2)
    with pytest.raises(PublishError, match="another size"):
        blobs.build([small], tmp_path / "other")
    with pytest.raises(PublishError, match="another size"):
        blobs.missing({digest(b"one"): 2}, NOW)


def test_a_file_with_as_many_links_as_it_may_have_gets_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = made(tmp_path, b"one")
    blobs.build([file("a", b"one")], tmp_path / "first")
    link, full = os.link, (tmp_path / "first/a").stat().st_ino

    def limited(source: Path, target: Path) -> None:
        if source.stat().st_ino == full:
            raise OSError(errno.EMLINK, "Too many links")
        link(source, target)

    monkeypatch.setattr(os, "link", limited)
    blobs.build([file("a", b"one"), file("b", b"one")], tmp_path / "second")
    assert (tmp_path / "second/b").read_bytes() == b"one"
    assert stat.S_IMODE((tmp_path / "second/b").stat().st_mode) == 0o444
    assert (tmp_path / "first/a").read_bytes() == b"one"


def test_what_no_tree_has_goes_after_an_hour(tmp_path: Path) -> None:
    blobs = made(tmp_path, b"used", b"left", b"asked")
    blobs.build([file("a", b"used")], tmp_path / "tree")
    (tmp_path / "blobs" / ".half").write_bytes(b"of a copy")
    os.utime(tmp_path / "blobs" / ".half", (0, 0))
    assert blobs.sweep(NOW + UNUSED_FOR_MS - 1) == len(b"of a copy")
    # Whoever was just told that a blob is held has an hour to commit.
    later = NOW + UNUSED_FOR_MS
    assert blobs.missing({digest(b"asked"): 5}, later - 1) == []
    assert blobs.sweep(later) == len(b"left")
    assert blobs.missing({digest(b"left"): 4, digest(b"asked"): 5}, later) == [digest(b"left")]
    assert blobs.sweep(later, unused_for_ms=0, spared={digest(b"asked")}) == 0
    (tmp_path / "tree" / "a").unlink()
    assert blobs.sweep(later) == len(b"used")


async def test_the_blobs_of_an_assembly_go_with_it(bench: Any, rig: Any) -> None:
    folder = bench.folder / "state" / "blobs"
    before = {each.name for each in folder.iterdir()}
    bench.clock.advance(UNUSED_FOR_MS / 1000)
    assert (await bench.publish(rig.assembly("second"))).status_code == 201
    await bench.eventually(lambda: len({each.name for each in folder.iterdir()}) == 2)
    assert len(before & {each.name for each in folder.iterdir()}) == 1  # the manifest is the same


async def test_what_was_left_gives_its_room_to_a_publish(
    bench: Any, rig: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = os.urandom(10_000)
    assert (await send(bench, rig, f"/blobs/{digest(left)}", left)).status_code == 200
    free = bench.folders.free()
    spare = Limits().spare

    def room() -> int:
        return spare + 100 + (0 if digest(left) in held(bench) else 10_000)

    monkeypatch.setattr(bench.folders, "free", room)
    new = rig.assembly_of({"assembly.json": b"x" * 5_000})
    assert (await bench.ask_missing(new)).json() == {"missing": [digest(b"x" * 5_000)]}
    assert held(bench) == {}
    larger = rig.assembly_of({"assembly.json": b"x" * 20_000})
    refused = await bench.ask_missing(larger)
    assert refused.status_code == 507
    assert "20000 bytes of it are missing, and 10100 are free" in refused.json()["error"]
    assert free > 0


async def test_a_list_may_be_packed_and_is_bounded_all_the_same(bench: Any, rig: Any) -> None:
    new = rig.assembly("new")
    text = json.dumps(rig.listing_of(new[1])).encode()
    bomb = gzip.compress(b'{"files": [' + b" " * (names.MAX_ASSEMBLY_LISTING + 1), mtime=0)
    for body, encoding, code, why in (
        (gzip.compress(text, mtime=0), "gzip", 200, ""),
        (text, "gzip", 400, "no gzip"),
        (gzip.compress(text, mtime=0)[:-4], "gzip", 400, "cut"),
        (gzip.compress(text, mtime=0) + b"x", "gzip", 400, "follows its end"),
        (bomb, "gzip", 413, "larger than 8388608 bytes"),
        (b"x" * (names.MAX_ASSEMBLY_LISTING + 1), "", 413, "larger than 8388608 bytes"),
        (text, "br", 415, "packed with gzip"),
    ):
        answer = await bench.client.post(
            f"/assemblies/{new[0]}/missing",
            content=body,
            headers={
                **bench.bearer(rig.PUBLISH_TOKEN),
                names.HEADER_LEASE: rig.LEASE,
                **({"Content-Encoding": encoding} if encoding else {}),
            },
        )
        assert answer.status_code == code, answer.text
        assert why in answer.json().get("error", "")


async def test_a_blob_that_comes_to_a_halt_is_408_and_leaves_nothing(
    bench: Any, rig: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hasty(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        return in_time(pieces, Pace(0.05))

    monkeypatch.setattr(publish, "in_time", hasty)

    async def content() -> AsyncIterator[bytes]:
        yield b"some"
        await asyncio.Event().wait()

    answer = await send(bench, rig, f"/blobs/{digest(b'some')}", content())
    assert answer.status_code == 408
    assert "came to a halt" in answer.json()["error"]
    assert held(bench) == {}
    assert list((bench.folder / "state" / "incoming").iterdir()) == []
    assert bench.services.publisher._receiving == 0


async def test_a_commit_without_its_blobs_or_its_base_asks_for_them(bench: Any, rig: Any) -> None:
    new = rig.assembly("new")
    answer = await bench.commit(new)
    assert answer.status_code == 412
    assert "1 of its files were not sent" in answer.json()["error"]
    headers = {**bench.bearer(rig.PUBLISH_TOKEN), "X-JR2-Lease": rig.LEASE}
    body = {"base": "e" * 64, "removed": [], "files": []}
    for ask, path in (("POST", f"/assemblies/{new[0]}/missing"), ("PUT", f"/assemblies/{new[0]}")):
        answer = await bench.client.request(ask, path, json=body, headers=headers)
        assert answer.status_code == 412
        assert "starts from is not held" in answer.json()["error"]
    files = await bench.client.get(f"/assemblies/{'e' * 64}/files", headers=headers)
    assert files.status_code == 404
    files = await bench.client.get(f"/assemblies/{bench.registry.hash}/files", headers=headers)
    assert files.json() == {"files": rig.listing_of(rig.assembly()[1])["files"]}


async def collect(pieces: AsyncIterator[bytes], got: list[bytes]) -> None:
    async for piece in pieces:
        got.append(piece)


def file(path: str, content: bytes, kind: Any = "file") -> AssemblyFile:
    return AssemblyFile(path=path, kind=kind, sha256=digest(content), size=len(content))


def made(folder: Path, *contents: bytes) -> Blobs:
    """Return a store of blobs that holds these."""
    blobs = Blobs(folder)
    blobs.prepare()
    received = []
    for number, content in enumerate(contents):
        place = folder / f"received-{number}"
        place.write_bytes(content)
        received.append((digest(content), place))
    blobs.keep(received, NOW)
    return blobs
