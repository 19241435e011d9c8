"""The tree at `/opt/jr2` in a root that holds nothing else: no libc, no shell, no certificates."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from jr2 import names
from jr2_infra.images.build import recipe

from .conftest import CHROOT, Image, run

pytestmark = pytest.mark.timeout(1200)
PYTHON = (names.TREE_PYTHON, "-ISB", "-c")

LOOK = f"""
import json, os, ssl, sys, sqlite3, ctypes, subprocess
sys.path += [{names.KIT_PATH!r}, {names.SERVICES_PATH!r}]
import pydantic_core
child = subprocess.run(
    [sys.executable, "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True
)
print(json.dumps(dict(
    executable=sys.executable,
    prefix=sys.prefix,
    path=[part for part in sys.path if not part.startswith({names.TREE_PATH!r})],
    authorities=ssl.create_default_context().cert_store_stats()["x509_ca"] > 50,
    sqlite=sqlite3.connect(":memory:").execute("select 6 * 7").fetchone()[0],
    pid=ctypes.CDLL(None).getpid() == os.getpid(),
    child=[child.stdout.strip(), child.stderr],
    pydantic=pydantic_core.to_json([1]).decode(),
    environment=sorted(os.environ),
)))
"""


def test_python_works_with_nothing_around_it(inside: Callable[..., str]) -> None:
    assert json.loads(inside(*PYTHON, LOOK)) == {
        "executable": names.TREE_PYTHON,
        "prefix": names.TREE_PATH,
        "path": [],
        "authorities": True,
        "sqlite": 42,
        "pid": True,
        "child": [names.TREE_PATH, ""],
        "pydantic": "[1]",
        "environment": ["HOME"],
    }


def test_an_image_s_library_path_comes_after_the_tree(
    inside: Callable[..., str], tree_root: Path
) -> None:
    wrong = tree_root / "wrong"
    wrong.mkdir()
    for library in sorted((tree_root / names.TREE_SUBPATH / "lib").glob("*.so*")):
        (wrong / library.name).write_text("not a library")
    seen = json.loads(inside(*PYTHON, LOOK, LD_LIBRARY_PATH="/wrong"))
    assert (seen["sqlite"], seen["child"]) == (42, [names.TREE_PATH, ""])
    assert "LD_LIBRARY_PATH" in seen["environment"]
    assert inside(names.TREE_GIT, "--version", LD_LIBRARY_PATH="/wrong").startswith(
        "git version 2."
    )
    assert inside(names.TREE_RIPGREP, "--version", LD_LIBRARY_PATH="/wrong").startswith("ripgrep ")


def test_git_works_without_a_shell(inside: Callable[..., str], tree_root: Path) -> None:
    git = (names.TREE_GIT, "-c", "user.name=a", "-c", "user.email=a@example")
    inside(names.TREE_GIT, "init", "--quiet", "-b", "main", "/tmp/one")
    (tree_root / "tmp/one/file").write_text("content\n")
    inside(*git, "-C", "/tmp/one", "add", "file")
    inside(*git, "-C", "/tmp/one", "commit", "--quiet", "-m", "first")
    inside(names.TREE_GIT, "clone", "--quiet", "--no-hardlinks", "file:///tmp/one", "/tmp/two")
    assert (tree_root / "tmp/two/file").read_text() == "content\n"
    assert inside(names.TREE_GIT, "-C", "/tmp/two", "log", "--format=%s").strip() == "first"
    assert inside(names.TREE_GIT, "--exec-path").strip() == "/opt/jr2/git-core"
    # The templates of the tree made it.
    assert (tree_root / "tmp/one/.git/description").is_file()
    assert not (tree_root / "bin").exists()


def test_a_launcher_starts_without_a_shell(inside: Callable[..., str], tree_root: Path) -> None:
    (tree_root / "tmp/started.py").write_text(
        "import jr2, sys\n"
        "def main():\n    print(jr2.__name__, sys.executable, sys.argv[1:])\n    return 0\n"
    )
    launcher = tree_root / "tmp/launcher"
    text = recipe.LAUNCHER.format(python=names.TREE_PYTHON, module="started")
    launcher.write_text(text.replace("sys.path += [", 'sys.path += ["/tmp", '))
    launcher.chmod(0o755)
    assert inside("/tmp/launcher", "a b").strip() == f"jr2 {names.TREE_PYTHON} ['a b']"


def test_ripgrep_finds(inside: Callable[..., str], tree_root: Path) -> None:
    (tree_root / "tmp/poem").write_text("a rose\nis a rose\n")
    assert inside(names.TREE_RIPGREP, "-c", "rose", "/tmp/poem").strip() == "2"


def test_each_program_names_the_loader_of_the_tree(tree_root: Path) -> None:
    tree = tree_root / names.TREE_SUBPATH
    dynamic = []
    for place in sorted([*tree.glob("bin/*"), *tree.glob("git-core/*")]):
        if place.is_symlink():
            continue
        data = place.read_bytes()
        assert data[:4] == b"\x7fELF" or data.startswith(f"#!{names.TREE_PYTHON}".encode())
        if data[:4] == b"\x7fELF":
            dynamic.append(place.name)
            assert b"\0/lib64/ld-linux" not in data
            assert b"/opt/jr2/lib/ld-linux" in data
    assert dynamic == ["git", "python3.11", "rg", "tini", "git-remote-http", "jr2-sh"]


def test_no_link_leads_out_of_the_tree(tree_root: Path) -> None:
    tree = tree_root / names.TREE_SUBPATH
    links = [place for place in tree.rglob("*") if place.is_symlink()]
    assert len(links) > 100
    assert [str(link) for link in links if not link.resolve().is_relative_to(tree)] == []
    assert [str(link) for link in links if not link.exists()] == []


def test_the_stock_image_has_what_an_agent_expects(
    images: dict[str, Image], tmp_path: Path
) -> None:
    for layer in images[names.IMAGE_HARNESS].layers():
        layer.extractall(tmp_path, filter="fully_trusted")
    tmp_path.chmod(0o755)
    said = run(
        [
            *(CHROOT, "--userspec=1000:1000", tmp_path, "/bin/sh", "-ec"),
            "for p in bash git rg grep sed awk find tar gzip diff patch ps less python3; do"
            " command -v $p; done; python3 -c 'import ssl, sqlite3'; echo ok > ~/file; cat ~/file",
        ],
        env={"PATH": "/usr/bin:/bin", "HOME": "/home/jr2"},
    )
    assert said.splitlines()[-1] == "ok"
    assert len(said.splitlines()) == 15
