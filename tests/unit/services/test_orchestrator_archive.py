"""The archive of an Assembly: what must not be in it is refused before anything is written."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from jr2.tree_hash import hash_folder
from jr2_runtime.orchestrator.assemblies.archive import ArchiveRefused, Limits, survey, unpack

ROOM = 2**40


def info(name: str, **fields: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(made, field, value)
    return made


Adding = Callable[[tarfile.TarFile], None]


def file(name: str, content: bytes = b"x", **fields: object) -> Adding:
    return lambda tar: tar.addfile(info(name, size=len(content), **fields), io.BytesIO(content))


def link(name: str, target: str) -> Adding:
    return lambda tar: tar.addfile(info(name, type=tarfile.SYMTYPE, linkname=target))


def special(name: str, kind: bytes, **fields: object) -> Adding:
    return lambda tar: tar.addfile(info(name, type=kind, **fields))


MANIFEST = file("assembly.json", b"{}")


def archive(folder: Path, *members: Adding, format: int = tarfile.PAX_FORMAT) -> Path:
    place = folder / "archive"
    with tarfile.open(place, "w:gz", format=format) as tar:
        for add in (MANIFEST, *members):
            add(tar)
    return place


def take(folder: Path, place: Path, limits: Limits | None = None, free: int = ROOM) -> Path:
    root = folder / "tree"
    unpack(place, survey(place, limits or Limits(), free), root)
    return root


def test_files_folders_and_links_come_out_as_they_went_in(tmp_path: Path) -> None:
    place = archive(
        tmp_path,
        special("instance", tarfile.DIRTYPE, mode=0o700),
        file("instance/a.py", b"print()", mode=0o600),
        file("instance/run", b"#!", mode=0o777),
        file("packages/very/" + "long/" * 30 + "name.py", b""),
        file("packages/é.py", b"1"),
        link("instance/link.py", "a.py"),
        link("packages/up", "../instance/a.py"),
        link("packages/folder", "very"),
    )
    mask = os.umask(0o077)
    try:
        root = take(tmp_path, place)
    finally:
        os.umask(mask)
    assert (root / "packages/up").read_bytes() == b"print()"
    assert (root / "packages/é.py").read_bytes() == b"1"
    modes = {p: stat.S_IMODE((root / p).stat().st_mode) for p in ("", "instance", "packages/very")}
    assert set(modes.values()) == {0o755}
    assert stat.S_IMODE((root / "instance/a.py").stat().st_mode) == 0o644
    assert stat.S_IMODE((root / "instance/run").stat().st_mode) == 0o755
    assert len(hash_folder(root, salt="assembly")) == 64


@pytest.mark.parametrize(
    ("members", "code", "text"),
    [
        ([file("/instance/a")], 400, "not allowed"),
        ([file("instance/../a")], 400, "not allowed"),
        ([file("../a")], 400, "not allowed"),
        ([file("instance//a")], 400, "not allowed"),
        ([file("instance/./a")], 400, "not allowed"),
        ([file("instance/a\\b")], 400, "not allowed"),
        ([file("instance/a\nb")], 400, "not allowed"),
        ([file("instance/" + "a/" * 70 + "b")], 400, "not allowed"),
        ([file("instance/" + "a" * 2000)], 400, "not allowed"),
        ([file("other/a")], 400, "no part of an Assembly"),
        ([file("a")], 400, "no part of an Assembly"),
        ([file("assembly.json/a")], 400, "no part of an Assembly"),
        ([file("instance/a"), file("instance/a")], 400, "twice"),
        ([file("instance/a"), special("instance/a/", tarfile.DIRTYPE)], 400, "twice"),
        ([file("instance/a"), link("instance/a", "b")], 400, "twice"),
        ([file("instance/a"), file("instance/a/b")], 400, "which is no folder"),
        ([file("instance/a/b"), file("instance/a")], 400, "which is no folder"),
        ([link("instance/a", "b"), file("instance/a/b")], 400, "which is no folder"),
        ([file("instance/a/b"), link("instance/a", "../packages")], 400, "which is no folder"),
        ([link("instance", "packages"), file("instance/a")], 400, "which is no folder"),
        ([link("instance/a", "/etc/passwd")], 400, "points outside"),
        ([link("instance/a", "../../etc")], 400, "points outside"),
        ([link("instance/a", "../..")], 400, "points outside"),
        ([link("instance/a", "")], 400, "points outside"),
        ([special("instance/a", tarfile.LNKTYPE, linkname="assembly.json")], 400, "is neither"),
        ([special("instance/a", tarfile.CHRTYPE)], 400, "is neither"),
        ([special("instance/a", tarfile.BLKTYPE)], 400, "is neither"),
        ([special("instance/a", tarfile.FIFOTYPE)], 400, "is neither"),
        ([special("instance/a", b"Z")], 400, "is neither"),
        ([link("assembly.json", "instance/a")], 400, "twice"),
    ],
)
def test_what_must_not_be_there_is_refused_unwritten(
    tmp_path: Path, members: list[Adding], code: int, text: str
) -> None:
    place = archive(tmp_path, *members)
    with pytest.raises(ArchiveRefused, match=text) as refused:
        take(tmp_path, place)
    assert refused.value.code == code
    assert not (tmp_path / "tree").exists()


def test_a_link_that_leaves_by_way_of_another_link_is_refused(tmp_path: Path) -> None:
    place = archive(
        tmp_path,
        file("packages/x", b""),
        link("instance/a/b/c/hop", "../../../../packages"),
        link("instance/out", "a/b/c/hop/../../elsewhere"),
    )
    with pytest.raises(ArchiveRefused, match="points outside"):
        take(tmp_path, place)


def test_an_archive_without_a_manifest_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "archive"
    with tarfile.open(place, "w:gz") as tar:
        file("instance/a")(tar)
    with pytest.raises(ArchiveRefused, match=r"holds no assembly\.json"):
        take(tmp_path, place)


def test_more_files_bytes_or_less_room_than_allowed_is_refused(tmp_path: Path) -> None:
    place = archive(tmp_path, file("instance/a", b"x" * 100), file("instance/b", b"x" * 100))
    small = Limits(files=3, unpacked=202, spare=10)
    assert len(survey(place, small, 212)) == 3
    for limits, free, code in (
        (Limits(files=2, unpacked=202, spare=10), 212, 413),
        (Limits(files=3, unpacked=201, spare=10), 212, 413),
        (small, 211, 507),
    ):
        with pytest.raises(ArchiveRefused) as refused:
            survey(place, limits, free)
        assert refused.value.code == code


def test_a_bomb_is_refused_by_what_it_says(tmp_path: Path) -> None:
    """Two gigabytes of zeros are two megabytes in gzip."""
    place = tmp_path / "archive"
    header = info("instance/zeros", size=2**31).tobuf()
    with gzip.open(place, "wb", compresslevel=1) as zipped:
        zipped.write(header)
        zipped.write(bytes(2**20))
    with pytest.raises(ArchiveRefused) as refused:
        survey(place, Limits(), ROOM)
    assert refused.value.code == 413


def test_a_header_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "archive"
    with gzip.open(place, "wb", compresslevel=1) as zipped:
        zipped.write(info("pax", type=tarfile.XHDTYPE, size=2**31).tobuf())
        zipped.write(bytes(2**20))
    with pytest.raises(ArchiveRefused, match="header that is too long"):
        survey(place, Limits(), ROOM)


def test_what_is_no_gzip_tar_or_is_cut_is_refused(tmp_path: Path) -> None:
    whole = archive(tmp_path, file("instance/a", os.urandom(300_000))).read_bytes()
    for content in (b"", b"hello", gzip.compress(b"hello"), whole[: len(whole) // 2]):
        place = tmp_path / "cut"
        place.write_bytes(content)
        with pytest.raises(ArchiveRefused) as refused:
            take(tmp_path, place)
        assert refused.value.code == 400
