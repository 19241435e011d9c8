"""The Instance's own files, their hash and their archive."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from jr2.tree_hash import Entry, hash_folder, tree_hash
from jr2_infra.assembly.archive import write_archive
from jr2_infra.assembly.own_files import own_entries

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


def test_the_archive_is_the_same_twice_and_unpacks_to_the_same_hash(tmp_path: Path) -> None:
    root = make_instance(tmp_path / "i")
    (root / "acme" / "more.json").symlink_to("data.json")
    parts = own_entries(root)

    write_archive(parts, tmp_path / "one.tgz")
    write_archive(list(reversed(parts)), tmp_path / "two.tgz")

    assert (tmp_path / "one.tgz").read_bytes() == (tmp_path / "two.tgz").read_bytes()
    (tmp_path / "out").mkdir()
    subprocess.run(["tar", "-xzf", "one.tgz", "-C", "out"], cwd=tmp_path, check=True)
    assert hash_folder(tmp_path / "out", salt="s") == tree_hash(parts, salt="s")
    assert CANARY.encode() not in (tmp_path / "one.tgz").read_bytes()


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
