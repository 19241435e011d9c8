"""The tree at `/opt/jr2` that runs in any Linux image: its own Python, loader, git and ripgrep.

Each program names the tree's own loader as its interpreter and the tree's `lib` as its DT_RPATH, so
the kernel starts it through that loader, an image's `LD_LIBRARY_PATH` comes after it, and nothing
is put into the environment that a program of the image would inherit. Paths that Debian compiled
into git, OpenSSL and curl are rewritten in place to ones of the tree, so neither git nor TLS reads
the image's files, and git needs no shell of the image. It is not relocatable: `/opt/jr2` is its
name in every pod.

Source: design §6.2, ADR-0120.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jr2 import names
from jr2.errors import StepFailed

from . import recipe
from .chroot import compile_python, run_inside

_TREE: Final = names.TREE_PATH
_LIBRARIES: Final = f"{_TREE}/lib"
_GIT_CORE: Final = f"{_TREE}/git-core"
_SHELL: Final = "jr2-sh"
"""A name without a slash: git looks for it on its own exec path first."""

_PROGRAMS: Final = {
    f"usr/bin/python{recipe.PYTHON_VERSION}": f"bin/python{recipe.PYTHON_VERSION}",
    "usr/bin/git": "bin/git",
    "usr/bin/rg": "bin/rg",
    "usr/bin/tini": "bin/tini",
    "usr/bin/dash": f"git-core/{_SHELL}",
    "usr/lib/git-core/git-remote-http": "git-core/git-remote-http",
}
"""File of the root file system → its place in the tree."""

_FOR_WHEELS: Final = (
    *("libgcc_s.so.1", "libstdc++.so.6", "libresolv.so.2"),
    *("libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1"),
)
"""Libraries that a wheel may expect of its platform (PEP 600), and that no program here names."""

_LINKS: Final = {
    "bin/python3": f"python{recipe.PYTHON_VERSION}",
    "git-core/git": "../bin/git",
    "ssl/cert.pem": "../certs/ca-certificates.crt",
}
_LOADER: Final = re.compile(r"ld-linux[a-z0-9-]*\.so\.\d+")


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A path in a binary that becomes one of the tree, of the same length or shorter.

    Args:
        file: in the tree.
        old: what Debian compiled in.
        new: what stands there instead, padded with NUL bytes.
        whole: whether only a whole C string counts; a prefix of longer ones keeps its length.
    """

    file: str
    old: str
    new: str
    whole: bool = True


REWRITES: Final = (
    Rewrite("bin/git", "/usr/lib/git-core", _GIT_CORE),
    Rewrite("bin/git", "share/git-core/templates", f"{_TREE}/git-templates"),
    Rewrite("bin/git", "/bin/sh", _SHELL),
    Rewrite("git-core/git-remote-http", "/bin/sh", _SHELL),
    Rewrite("lib/libcurl-gnutls.so.4", "/etc/ssl/certs", f"{_TREE}/certs"),
    Rewrite("lib/libcrypto.so.3", "/usr/lib/ssl", f"{_TREE}/ssl", whole=False),
)


def rewrite_bytes(data: bytes, rewrite: Rewrite) -> bytes:
    """Return a binary with one compiled-in path replaced.

    Raises:
        ValueError: the path does not stand in it, or the new one is too long.
    """
    old, new = rewrite.old.encode(), rewrite.new.encode()
    if rewrite.whole:
        old, new = b"\0%b\0" % old, b"\0%b\0" % new
    if len(new) > len(old) or (len(new) != len(old) and not rewrite.whole):
        raise ValueError(f"{rewrite.new} does not fit in the place of {rewrite.old}")
    if old not in data:
        raise ValueError(f"{rewrite.file} does not hold {rewrite.old}: Debian's build has changed")
    return data.replace(old, new.ljust(len(old), b"\0"))


def make_tree(root: Path, tools: str) -> Path:
    """Make the tree in its place below a root file system that holds all Debian packages.

    Args:
        root: a throw-away root with the base, the userland and the tools.
        tools: the path of patchelf in it.

    Returns:
        The tree's folder.

    Raises:
        StepFailed: a program, a library or a compiled-in path is not there.
    """
    tree = root / _TREE[1:]
    for folder in ("bin", "lib", "git-core", "ssl", "certs"):
        (tree / folder).mkdir(parents=True)
    for source, target in _PROGRAMS.items():
        _copy(root / source, tree / target)
    _copy_standard_library(root, tree)
    _copy_git(root, tree)
    shutil.copyfile(root / recipe.CERTIFICATES, tree / "certs/ca-certificates.crt")
    (tree / "ssl/openssl.cnf").write_text("# An image's own settings never reach jr2.\n")
    for link, target in _LINKS.items():
        (tree / link).symlink_to(target)
    loader = _copy_libraries(root, tree, tools)
    for rewrite in REWRITES:
        place = tree / rewrite.file
        try:
            place.write_bytes(rewrite_bytes(place.read_bytes(), rewrite))
        except ValueError as error:
            raise StepFailed(f"cannot make the tree of the Harness: {error}") from error
    programs = [f"{_TREE}/{target}" for target in _PROGRAMS.values()]
    run_inside(root, [tools, "--set-interpreter", f"{_LIBRARIES}/{loader}", *programs])
    run_inside(root, [tools, "--force-rpath", "--set-rpath", _LIBRARIES, *programs])
    compile_python(
        root,
        f"{_LIBRARIES}/python{recipe.PYTHON_VERSION}",
        python=names.TREE_PYTHON,
    )
    return tree


def _copy(source: Path, target: Path) -> None:
    """Copy a file into the tree; a link is followed, and a hard link is broken."""
    if not source.is_file():
        raise StepFailed(f"cannot make the tree of the Harness: no package holds {source.name}")
    shutil.copyfile(source, target)
    target.chmod(0o755)


def _copy_standard_library(root: Path, tree: Path) -> None:
    source = root / recipe.STANDARD_LIBRARY[1:]
    target = tree / "lib" / source.name

    def unwanted(folder: str, entries: list[str]) -> set[str]:
        links = {name for name in entries if Path(folder, name).is_symlink()}
        caches = {name for name in entries if name == "__pycache__"}
        # Links lead to /etc, and a static library is for who embeds Python.
        return links | caches | {name for name in entries if name.startswith("config-")}

    shutil.copytree(source, target, ignore=unwanted)


def _copy_git(root: Path, tree: Path) -> None:
    """Copy what git runs by itself: its built-in commands, the https helper and the templates."""
    for place in sorted((root / "usr/lib/git-core").iterdir()):
        if not place.is_symlink():
            continue
        target = os.readlink(place)
        if target == "git":
            (tree / "git-core" / place.name).symlink_to("../bin/git")
        elif target == "git-remote-http":
            (tree / "git-core" / place.name).symlink_to(target)
    shutil.copytree(root / "usr/share/git-core/templates", tree / "git-templates")


def _copy_libraries(root: Path, tree: Path, tools: str) -> str:
    """Copy each library that a program of the tree needs, and return the loader's name."""
    known: set[str] = set()
    wanted = {*_FOR_WHEELS, *_needed(root, tools, _binaries(tree))}
    while fresh := sorted(wanted - known):
        known |= wanted
        for name in fresh:
            _copy(_library(root, name), tree / "lib" / name)
        wanted = _needed(root, tools, [tree / "lib" / name for name in fresh])
    (loader,) = [name for name in known if _LOADER.fullmatch(name)]
    return loader


def _library(root: Path, name: str) -> Path:
    found = sorted((root / "usr/lib").glob(f"*-linux-gnu/{name}"))
    if not found:
        raise StepFailed(f"cannot make the tree of the Harness: no package holds {name}")
    return found[0].resolve()


def _binaries(tree: Path) -> list[Path]:
    found = []
    for place in sorted(tree.rglob("*")):
        if place.is_file() and not place.is_symlink():
            with place.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    found.append(place)
    return found


def _needed(root: Path, tools: str, binaries: Sequence[Path]) -> set[str]:
    inside = [f"/{place.relative_to(root)}" for place in binaries]
    _require_no_runpath(root, tools, inside)
    return set(run_inside(root, [tools, "--print-needed", *inside]).split())


def _require_no_runpath(root: Path, tools: str, inside: Iterable[str]) -> None:
    """Refuse a library with a search path of its own: a DT_RUNPATH would hide the programs'."""
    found = run_inside(root, [tools, "--print-rpath", *inside]).split()
    if found:
        raise StepFailed(f"a library of the Harness tree names its own search path: {found}")


def try_tree(root: Path) -> None:
    """Start each program of the tree in a root that holds the tree and nothing else.

    Raises:
        StepFailed: one of them needs what the tree does not hold.
    """
    # Git opens it at its start; a file does, and no device has to be made.
    null = root / "dev/null"
    null.parent.mkdir()
    null.touch()
    run_inside(root, [names.TREE_PYTHON, "-ISB", "-c", _SELF_TEST])
    shutil.rmtree(null.parent)


_SELF_TEST: Final = f"""
import importlib, pathlib, subprocess, sys
assert sys.version_info[:2] == {recipe.PYTHON_MINOR!r}, sys.version
assert sys.prefix == {_TREE!r}, sys.prefix
assert sys.executable == {names.TREE_PYTHON!r}, sys.executable
import ctypes, sqlite3, ssl
for place in pathlib.Path({_LIBRARIES!r}).glob("python*/lib-dynload/*.so"):
    name = place.name.split(".")[0]
    if name != "_tkinter":
        importlib.import_module(name)
assert ssl.create_default_context().cert_store_stats()["x509_ca"] > 50
assert sqlite3.connect(":memory:").execute("select 1").fetchone() == (1,)
for argv in (
    [sys.executable, "-c", "print(1)"],
    [{names.TREE_GIT!r}, "--exec-path"],
    [{names.TREE_RIPGREP!r}, "--version"],
    [{names.TREE_INIT!r}, "--version"],
):
    subprocess.run(argv, check=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
"""
