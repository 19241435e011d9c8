"""The Instance's own files, their hash and their archive."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from jr2.bundles import LONGEST_LINE
from jr2.tree_hash import Entry, tree_hash
from jr2.wire import AssemblyFile, AssemblyListing
from jr2_infra.assembly import pack, read_parcel, write_parcel
from jr2_infra.assembly.own_files import own_entries
from jr2_infra.assembly.parcel import listing_over
from jr2_infra.assembly.sending import ALONE, BUNDLE, parts

CANARY = "canary-4711"


def make_instance(root: Path) -> Path:
    (root / "workflows").mkdir(parents=True)
    (root / "workflows" / "ping.py").write_text("machine = None\n")
    (root / "workflows" / "_helpers.py").write_text("X = 1\n")
    (root / "workflows" / "__pycache__").mkdir()
    (root / "workflows" / "__pycache__" / "ping.pyc").write_bytes(b"x")
    (root / "workflows" / ".env").write_text(CANARY)
    (root / "jr2_config.py").write_text("config = None\n")
    (root / "acme").mkdir()
    (root / "acme" / "__init__.py").write_text("")
    (root / "acme" / "data.json").write_text("{}")
    (root / "notes").mkdir()
    (root / "notes" / "todo.md").write_text("no package")
    for name in (".env", ".env.local"):
        (root / name).write_text(CANARY)
    (root / ".venv").mkdir()
    (root / ".venv" / "x.py").write_text("")
    (root / "README.md").write_text("# demo")
    return root


def test_only_what_belongs_is_carried(tmp_path: Path) -> None:
    root = make_instance(tmp_path / "i")

    paths = [entry.path for entry in own_entries(root)]

    assert sorted(paths) == [
        "instance/acme/__init__.py",
        "instance/acme/data.json",
        "instance/jr2_config.py",
        "instance/workflows/_helpers.py",
        "instance/workflows/ping.py",
    ]


def test_what_is_no_file_is_not_carried(tmp_path: Path) -> None:
    root = make_instance(tmp_path / "i")
    before = own_entries(root)
    os.mkfifo(root / "workflows" / "f.py")
    os.mkfifo(root / "acme" / "pipe")
    os.mkfifo(root / "top.py")
    (root / "workflows" / ".#ping.py").symlink_to("nobody@host.123")

    assert own_entries(root) == before


def test_exclude_leaves_out(tmp_path: Path) -> None:
    root = make_instance(tmp_path / "i")

    paths = [entry.path for entry in own_entries(root, ("acme/*.json", "workflows/_*"))]

    assert "instance/acme/data.json" not in paths
    assert "instance/workflows/_helpers.py" not in paths
    assert "instance/acme/__init__.py" in paths


def test_the_hash_knows_content_and_nothing_of_the_machine(tmp_path: Path) -> None:
    one = make_instance(tmp_path / "one")
    old_umask = os.umask(0o077)
    try:
        two = make_instance(tmp_path / "elsewhere" / "two")
    finally:
        os.umask(old_umask)
    os.utime(two / "jr2_config.py", (1, 1))

    first = tree_hash(own_entries(one), salt="s")

    assert first == tree_hash(reversed(own_entries(two)), salt="s")
    assert first != tree_hash(own_entries(one), salt="t")
    (two / "acme" / "data.json").write_text("{ }")
    assert first != tree_hash(own_entries(two), salt="s")


def test_an_execute_bit_and_a_link_count(tmp_path: Path) -> None:
    root = make_instance(tmp_path / "i")
    before = tree_hash(own_entries(root))
    (root / "acme" / "__init__.py").chmod(0o755)
    executable = tree_hash(own_entries(root))
    (root / "acme" / "more.json").symlink_to("data.json")

    assert before != executable
    assert tree_hash(own_entries(root)) != executable


def test_a_parcel_says_where_the_bytes_of_each_file_are(tmp_path: Path) -> None:
    root = make_instance(tmp_path / "i")
    (root / "acme" / "more.json").symlink_to("data.json")
    (root / "acme" / "run").write_text("#!/bin/sh\n")
    (root / "acme" / "run").chmod(0o755)
    parts = [*own_entries(root), Entry("assembly.json", "file", b"{}\n")]

    write_parcel(list(reversed(parts)), tmp_path / "sent")
    parcel = read_parcel(tmp_path / "sent")

    assert parcel == pack(parts, tmp_path / "again").model_copy(update={"sources": parcel.sources})
    again = [
        Entry(
            each.path,
            each.kind,
            os.fsencode(each.target) if each.target else parcel.sources[each.sha256 or ""],
        )
        for each in parcel.files
    ]
    assert tree_hash(again, salt="s") == tree_hash(parts, salt="s")
    assert {each.path: each.kind for each in parcel.files}["instance/acme/run"] == "exec"
    for each in parcel.files:
        if each.sha256 is not None:
            content = parcel.sources[each.sha256].read_bytes()
            assert (len(content), hashlib.sha256(content).hexdigest()) == (each.size, each.sha256)
            assert CANARY.encode() not in content


def test_a_list_over_a_held_assembly_names_what_differs() -> None:
    def file(path: str, digest: str) -> AssemblyFile:
        return AssemblyFile(path=path, kind="file", sha256=digest * 32, size=1)

    held = [file("a", "aa"), file("b", "bb"), file("c", "cc")]
    now = [file("a", "aa"), file("b", "dd"), file("e", "ee")]

    listing = listing_over(now, "0" * 64, held)

    assert listing.removed == ["c"]
    assert listing.files == now[1:]
    assert listing_over(now, None, held) == AssemblyListing(files=now)


def test_small_blobs_share_a_request_and_large_ones_do_not() -> None:
    sizes = {f"{n:064x}": 100 for n in range(40_000)} | {"f" * 64: ALONE, "e" * 64: BUNDLE * 2}

    found = list(parts(sizes))

    assert sorted(digest for each in found for digest in each) == sorted(sizes)
    assert [["f" * 64], ["e" * 64]] == [each for each in found if sizes[each[0]] >= ALONE]
    for each in found[:-1]:
        assert sum(sizes[digest] + LONGEST_LINE for digest in each) <= BUNDLE or len(each) == 1
    assert len(found) < 7


@given(
    st.dictionaries(
        st.text("abc/", min_size=1, max_size=6), st.binary(max_size=8), min_size=1, max_size=4
    ),
    st.data(),
)
def test_two_different_trees_never_have_one_hash(
    files: dict[str, bytes], data: st.DataObject
) -> None:
    other = dict(files)
    changed = data.draw(st.sampled_from(sorted(files)))
    other[changed] += b"\0"

    def digest(tree: dict[str, bytes]) -> str:
        return tree_hash(Entry(path, "file", content) for path, content in tree.items())

    assert digest(files) != digest(other)
    moved = {f"{path}x" if path == changed else path: content for path, content in files.items()}
    assert digest(files) != digest(moved)
