"""Debian packages: exactly what the lists commit to, extracted without a script."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path

import pytest

from jr2.errors import StepFailed
from jr2_infra.images.build import recipe
from jr2_infra.images.build.debian import sets, unpack
from jr2_infra.images.mirror import lists
from jr2_infra.images.mirror.archive import Archive
from jr2_infra.images.mirror.lists import Package
from jr2_infra.images.mirror.refresh import resolve_sets

from .deb_files import Mirror, deb, member

REQUIREMENTS = Path(__file__).parents[3] / "requirements"
DIGEST = "0123456789abcdef" * 4
PYTHON = {
    "Package": "python",
    "Version": "1:3-1",
    "Depends": "libc (>= 2)",
    "Recommends": "docs",
}


def test_a_list_is_read_as_it_is_written() -> None:
    packages = [
        Package("zlib1g", "1:1.2.13.dfsg-1", DIGEST),
        Package("libstdc++6", "12.2.0-14+deb12u1", DIGEST),
    ]
    text = lists.write(packages)
    assert text.splitlines()[0] == f"libstdc++6=12.2.0-14+deb12u1={DIGEST}"
    assert lists.parse(text) == tuple(sorted(packages))


@pytest.mark.parametrize(
    "line", ["libc6=2.36", f"libc6={DIGEST}", f"libc6=2.36={DIGEST[1:]}", f"../libc6=1={DIGEST}"]
)
def test_a_line_without_a_digest_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="line 2 is not name=version=sha256"):
        lists.parse(f"zlib1g=1={DIGEST}\n{line}\n")


@pytest.mark.parametrize("architecture", recipe.PLATFORMS)
def test_the_committed_lists_hold_what_is_asked_for_once(architecture: str) -> None:
    for wanted in sets.SETS:
        held: set[str] = set()
        for each in wanted.from_the_lowest():
            path = REQUIREMENTS / lists.file_name(each.name, architecture)
            listed = [package.name for package in lists.parse(path.read_text())]
            assert set(each.asks) <= {*listed, *held}
            assert not held & set(listed)
            assert not (each.drops - set(each.asks)) & set(listed)
            held |= set(listed)


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    if shutil.which("apt-get") is None:
        pytest.skip("apt-get is there on Debian and Ubuntu only")
    mirror = Mirror(tmp_path / "mirror", sets.SUITE, "amd64")
    mirror.offer(
        PYTHON,
        {"Package": "libc", "Version": "2.0"},
        {"Package": "docs", "Version": "1", "Architecture": "all"},
    )
    return mirror


def archive(tmp_path: Path, mirror: Mirror, said: list[str] | None = None) -> Archive:
    say = [] if said is None else said
    return Archive(tmp_path / "cache", "amd64", mirror.sources, say.append)


def test_resolved_packages_are_fetched_by_digest_and_once(tmp_path: Path, mirror: Mirror) -> None:
    resolved = archive(tmp_path, mirror).resolve(["python"])
    assert [package.pinned for package in resolved] == ["libc=2.0", "python=1:3-1"]

    # With everything at hand nothing is asked of the mirror.
    shutil.rmtree(mirror.folder)
    said: list[str] = []
    places = archive(tmp_path, mirror, said).fetch(resolved)
    assert [unpack.read_control(place)["Package"] for place in places] == ["libc", "python"]
    assert said == []


def test_a_package_that_was_damaged_is_fetched_again(tmp_path: Path, mirror: Mirror) -> None:
    packages = archive(tmp_path, mirror).resolve(["python"])
    place = archive(tmp_path, mirror).fetch(packages)[0]
    whole = place.read_bytes()
    place.write_bytes(whole[:-1])
    said: list[str] = []
    assert archive(tmp_path, mirror, said).fetch(packages)[0].read_bytes() == whole
    assert said == ["Debian bookworm: fetching 1 packages"]


def test_a_version_that_the_mirror_lost_names_refresh(tmp_path: Path, mirror: Mirror) -> None:
    packages = archive(tmp_path, mirror).resolve(["python"])
    mirror.offer(
        PYTHON,
        {"Package": "libc", "Version": "2.1"},
    )
    with pytest.raises(StepFailed) as caught:
        archive(tmp_path / "elsewhere", mirror).fetch(packages)
    assert str(caught.value) == (
        "Debian's mirror no longer has libc=2.0, which the lists requirements/debian-*.amd64.txt "
        "commit to — resolve them anew: scripts/build-kit-images --refresh"
    )


def test_another_file_under_a_listed_version_is_refused(tmp_path: Path, mirror: Mirror) -> None:
    packages = archive(tmp_path, mirror).resolve(["python"])
    mirror.offer(
        PYTHON,
        {"Package": "libc", "Version": "2.0", "Description": "not what was listed"},
    )
    with pytest.raises(
        StepFailed, match=r"gives another file than the lists commit to: libc=2\.0 —"
    ):
        archive(tmp_path / "elsewhere", mirror).fetch(packages)


def test_a_mirror_that_does_not_answer_is_no_lost_version(tmp_path: Path, mirror: Mirror) -> None:
    packages = archive(tmp_path, mirror).resolve(["python"])
    shutil.rmtree(mirror.folder)
    with pytest.raises(StepFailed, match="apt-get update failed for Debian bookworm"):
        archive(tmp_path / "elsewhere", mirror).fetch(packages)


def test_a_machine_without_a_source_is_told_how_to_name_one(tmp_path: Path) -> None:
    said: list[str] = []
    without = Archive(tmp_path, "amd64", "", said.append)
    with pytest.raises(StepFailed, match="set JR2_DEBIAN_MIRROR to the address of a Debian mirror"):
        without.fetch([Package("libc6", "1", DIGEST)])


def test_each_set_holds_what_those_below_do_not(tmp_path: Path, mirror: Mirror) -> None:
    needs = {
        "python3": "libc, debconf",
        "git": "libc, perl",
        "patchelf": "libc, perl",
        # It lies on the base alone, so what the Harness has stands in its list too.
        "gcc": "libc, libstdc++6, libasan8",
    }
    offered = {name for wanted in sets.SETS for name in (*wanted.asks, *wanted.drops)}
    mirror.offer(
        *(
            {"Package": name, "Version": "1", **({"Depends": needs[name]} if name in needs else {})}
            for name in sorted({*offered, "libc"})
        )
    )
    resolved = resolve_sets(archive(tmp_path, mirror))
    found = {name: {package.name for package in packages} for name, packages in resolved.items()}
    base, harness = set(sets.BASE.asks), set(sets.HARNESS.asks)
    # What is dropped is so in the sets above too, but where one asks for it.
    assert found == {
        "base": base | {"libc"},
        "harness": harness,
        "tools": {"patchelf"},
        "compiler": {*sets.COMPILER.asks, "libstdc++6"},
    }
    assert {"mawk", "tar"} <= sets.BASE.drops & harness


def test_packages_that_no_build_asks_for_go(tmp_path: Path, mirror: Mirror) -> None:
    kept, old = archive(tmp_path, mirror).fetch(archive(tmp_path, mirror).resolve(["python"]))
    os.utime(kept, (1_000, 1_000))
    os.utime(old, (100, 100))
    archive(tmp_path, mirror).prune(500, now=1_200)
    assert kept.exists()
    assert not old.exists()


def extract(tmp_path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    package = tmp_path / "some_1.deb"
    package.write_bytes(deb({"Package": "some", "Version": "1"}, members))
    root = tmp_path / "root"
    root.mkdir()
    unpack.merge_usr(root)
    unpack.unpack([package], root)
    return root


def test_usr_is_merged_and_modes_are_plain(tmp_path: Path) -> None:
    root = extract(
        tmp_path,
        member("./bin", type=tarfile.DIRTYPE, mode=0o755),
        member("./bin/dash", b"#!", mode=0o4755),
        member("./bin/sh", type=tarfile.SYMTYPE, linkname="dash"),
        member("./usr/bin/again", type=tarfile.LNKTYPE, linkname="./bin/dash"),
        member("./etc/some.conf", b"x=1", mode=0o600),
    )
    assert os.readlink(root / "bin") == "usr/bin"
    assert os.readlink(root / "usr/bin/sh") == "dash"
    dash = root / "usr/bin/dash"
    assert dash.stat().st_mode & 0o7777 == 0o755
    assert dash.samefile(root / "usr/bin/again")
    assert (root / "etc/some.conf").stat().st_mode & 0o7777 == 0o644


@pytest.mark.parametrize(
    "path",
    [
        "/usr/share/doc/libc6/copyright",
        "/usr/share/man/man1/bash.1.gz",
        "/usr/share/locale/de/LC_MESSAGES/git.mo",
        "/usr/share/info",
        "/usr/lib/x86_64-linux-gnu/gconv/UTF-16.so",
        "/usr/lib/python3.11/test/support.py",
    ],
)
def test_docs_man_pages_and_locales_are_left_out(tmp_path: Path, path: str) -> None:
    root = extract(tmp_path, member(f".{path}", b"x"), member("./usr/share/kept", b"x"))
    assert not (root / path[1:]).exists()
    assert (root / "usr/share/kept").exists()


@pytest.mark.parametrize(
    "path", ["/usr/share/docs-of-mine", "/usr/share/zoneinfo/Europe/Zurich", "/usr/lib/python3.11"]
)
def test_what_only_begins_alike_is_kept(path: str) -> None:
    assert not unpack.is_left_out(path)


@pytest.mark.parametrize(
    "bad",
    [
        member("./../outside", b"x"),
        member("./usr/again", type=tarfile.LNKTYPE, linkname="../../outside"),
        member("./dev/sda", type=tarfile.BLKTYPE),
    ],
    ids=["parent", "link", "device"],
)
def test_a_member_that_no_root_may_hold_is_refused(
    tmp_path: Path, bad: tuple[tarfile.TarInfo, bytes]
) -> None:
    with pytest.raises(StepFailed, match=r"some_1\.deb holds"):
        extract(tmp_path, bad)
    assert not (tmp_path / "outside").exists()


def test_what_is_no_package_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "page.deb"
    place.write_text("<html>not found</html>")
    with pytest.raises(StepFailed, match=r"page\.deb is not a Debian package"):
        unpack.read_control(place)
