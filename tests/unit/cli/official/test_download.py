"""A program comes whole, from the host that was named, with the committed sum."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jr2.errors import StepFailed
from jr2_cli.tools.official import download, unpack
from tests.unit.cli.official.conftest import BODY, Host, archive_of, sum_of


def fetch(host: Host, folder: Path, path: str = "/file", sha256: str = sum_of(BODY)) -> Path:
    with download.new_client() as client:
        return download.download(f"{host.url}{path}", sha256, folder, client=client)


def test_a_file_comes_whole_under_its_sum(host: Host, tmp_path: Path) -> None:
    host.files["/file"] = BODY

    whole = fetch(host, tmp_path)

    assert whole.read_bytes() == BODY
    assert [path.name for path in tmp_path.iterdir()] == [sum_of(BODY)]


def test_a_file_that_is_there_is_not_asked_for_again(host: Host, tmp_path: Path) -> None:
    host.files["/file"] = BODY
    fetch(host, tmp_path)

    fetch(host, tmp_path)

    assert len(host.asked) == 1


def test_another_sum_names_both_and_leaves_nothing(host: Host, tmp_path: Path) -> None:
    host.files["/file"] = b"another file"

    with pytest.raises(StepFailed) as raised:
        fetch(host, tmp_path)

    assert sum_of(b"another file") in raised.value.message
    assert sum_of(BODY) in raised.value.message
    assert list(tmp_path.iterdir()) == []


def test_a_body_that_is_cut_is_gone_on_with_where_it_stopped(host: Host, tmp_path: Path) -> None:
    host.files["/file"] = BODY
    host.cut_after = [300_000, 0, 1]

    assert fetch(host, tmp_path).read_bytes() == BODY

    assert [wanted for _, wanted in host.asked] == [
        None,
        "bytes=300000-",
        "bytes=300000-",
        "bytes=300001-",
    ]


def test_a_host_without_ranges_is_asked_from_the_start(host: Host, tmp_path: Path) -> None:
    host.files["/file"] = BODY
    host.ranges = False
    host.cut_after = [300_000]

    assert fetch(host, tmp_path).read_bytes() == BODY


def test_a_host_that_always_cuts_is_given_up_and_the_part_stays(host: Host, tmp_path: Path) -> None:
    host.files["/file"] = BODY
    host.cut_after = [500, *[0] * 20]

    with pytest.raises(StepFailed, match=r"was cut 4 times after 500 bytes"):
        fetch(host, tmp_path)

    assert [path.stat().st_size for path in tmp_path.iterdir()] == [500]
    host.cut_after = []
    assert fetch(host, tmp_path).read_bytes() == BODY
    assert host.asked[-1] == ("/file", "bytes=500-")


def test_a_part_of_another_file_is_thrown_away_once(host: Host, tmp_path: Path) -> None:
    host.files["/file"] = BODY
    (tmp_path / f"{sum_of(BODY)}.part").write_bytes(b"the start of another file")

    assert fetch(host, tmp_path).read_bytes() == BODY


def test_a_part_that_is_whole_already_is_taken(host: Host, tmp_path: Path) -> None:
    host.files["/file"] = BODY
    (tmp_path / f"{sum_of(BODY)}.part").write_bytes(BODY)

    assert fetch(host, tmp_path).read_bytes() == BODY
    assert host.asked == [("/file", f"bytes={len(BODY)}-")]


def test_redirects_are_followed_to_another_host(host: Host, tmp_path: Path) -> None:
    other = Host()
    try:
        other.files["/stored"] = BODY
        host.redirects["/file"] = "/moved"
        host.redirects["/moved"] = f"{other.url}/stored"

        assert fetch(host, tmp_path).read_bytes() == BODY
    finally:
        other.close()


@pytest.mark.parametrize(
    ("target", "said"),
    [("/file", "redirects more than 5 times"), ("ftp://host/file", "redirects to ftp")],
)
def test_a_redirect_that_leads_nowhere_is_an_error(
    host: Host, tmp_path: Path, target: str, said: str
) -> None:
    host.redirects["/file"] = target

    with pytest.raises(StepFailed, match=said):
        fetch(host, tmp_path)


def test_what_is_no_file_is_named_with_its_status(host: Host, tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match=r"/file answers 404 Not Found"):
        fetch(host, tmp_path)


def test_too_little_disk_is_said_before_the_body_is_read(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.files["/file"] = BODY
    monkeypatch.setattr(download, "_SPARE_BYTES", 10**18)

    with pytest.raises(StepFailed, match="MB free, and the download needs"):
        fetch(host, tmp_path)


def test_one_member_is_taken_out_of_an_archive(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    archive.write_bytes(archive_of(bin__one=b"1", bin__two=b"2"))

    unpack.extract_member(archive, "bin/two", tmp_path / "out")

    assert (tmp_path / "out").read_bytes() == b"2"


@pytest.mark.parametrize(
    ("member", "said"),
    [("bin/three", "holds no bin/three"), ("bin/link", "bin/link of the archive is no regular")],
)
def test_what_is_no_regular_member_is_an_error(tmp_path: Path, member: str, said: str) -> None:
    archive = tmp_path / "archive"
    archive.write_bytes(archive_of(bin__one=b"1"))

    with pytest.raises(StepFailed, match=said):
        unpack.extract_member(archive, member, tmp_path / "out")


@pytest.mark.parametrize("cut", [0, 40, 25_000])
def test_an_archive_that_is_broken_is_an_error(tmp_path: Path, cut: int) -> None:
    archive = tmp_path / "archive"
    body = archive_of(bin__one=os.urandom(50_000))
    archive.write_bytes(body[:cut] if cut else b"no archive at all")

    with pytest.raises(StepFailed, match="the archive cannot be read"):
        unpack.extract_member(archive, "bin/one", tmp_path / "out")
