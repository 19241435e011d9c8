"""Instances on the disk, for tests that read or check one."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

import jr2
from tests.reporter import Reporter


@pytest.fixture
def said() -> Reporter:
    """What was printed."""
    return Reporter(warns=True)


MakeInstance = Callable[..., Path]


def make_environment(root: Path) -> None:
    """Give an Instance an environment of its own that reads its packages from this one.

    It has an interpreter and a site-packages, so a test can put a program or a distribution in it.
    """
    environment = root / ".venv"
    site = environment / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    site.mkdir(parents=True)
    (environment / "bin").mkdir()
    python = Path(sys.executable).resolve()
    (environment / "bin" / "python").symlink_to(python)
    (environment / "pyvenv.cfg").write_text(f"home = {python.parent}\n")
    kit = Path(jr2.__file__).resolve().parent.parent
    (site / "_editable_impl_jr2.pth").write_text(str(kit))
    (site / "this_one.pth").write_text(sysconfig.get_path("purelib") + "\n")


@pytest.fixture
def make_instance(tmp_path: Path) -> MakeInstance:
    """Make an Instance at `tmp_path/<name>` from its files, with an environment."""

    def make(files: dict[str, str] | None = None, name: str = "my-instance") -> Path:
        root = tmp_path / name
        root.mkdir()
        make_environment(root)
        for file, text in {
            "jr2_config.py": "from jr2 import Config\nconfig = Config()\n",
            **(files or {}),
        }.items():
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_text(text, encoding="utf-8")
        return root

    return make
