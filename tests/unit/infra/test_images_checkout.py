"""The names of a checkout's Kit images follow what goes into them, and nothing else."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from jr2_infra.images import checkout

CHECKOUT = Path(__file__).parents[3]
SOURCES = {
    "runtime/kit/src/jr2/names.py": "NAMES = 1\n",
    "runtime/kit/src/jr2/docs/index.md": "# Docs\n",
    "runtime/kit/src/jr2/docs/extra.py": "extra = 1\n",
    "runtime/services/src/jr2_runtime/__init__.py": "",
    "runtime/services/src/jr2_runtime/wire.py": "",
    "runtime/services/src/jr2_runtime/orchestrator/__init__.py": "",
    "runtime/services/src/jr2_runtime/worker/__init__.py": "",
    "runtime/services/src/jr2_runtime/operator/__init__.py": "",
    "runtime/services/src/jr2_runtime/harness/__init__.py": "",
    "requirements/kit.txt": "a==1\n",
    "requirements/orchestrator.txt": "a==1\n",
    "requirements/operator.txt": "a==1\n",
    "requirements/workspace.txt": "a==1\n",
    "requirements/harness.txt": "a==1\n",
    "requirements/debian-base.amd64.txt": "libc6=1\n",
    "requirements/debian-harness.amd64.txt": "git=1\n",
    "requirements/compiler.txt": "a==1\n",
    "requirements/debian-tools.amd64.txt": "patchelf=1\n",
    "requirements/debian-compiler.amd64.txt": "gcc=1\n",
    "docs/page.md": "# Page\n",
    "infra/src/jr2_infra/plan.py": "",
}
ALL = {"orchestrator", "operator", "harness"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path, text in SOURCES.items():
        place = tmp_path / "checkout" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return tmp_path / "checkout"


@pytest.mark.parametrize(
    ("path", "changed"),
    [
        ("runtime/kit/src/jr2/names.py", ALL),
        ("runtime/kit/src/jr2/new.py", ALL),
        ("runtime/kit/src/jr2/docs/index.md", set()),
        ("runtime/kit/src/jr2/docs/extra.py", set()),
        ("runtime/kit/src/jr2/__pycache__/names.cpython-311.pyc", set()),
        ("runtime/kit/src/jr2/.names.py.swp", set()),
        ("runtime/services/src/jr2_runtime/wire.py", ALL),
        ("runtime/services/src/jr2_runtime/orchestrator/__init__.py", {"orchestrator"}),
        ("runtime/services/src/jr2_runtime/worker/__init__.py", {"orchestrator"}),
        ("runtime/services/src/jr2_runtime/operator/__init__.py", {"operator"}),
        ("runtime/services/src/jr2_runtime/harness/__init__.py", {"harness"}),
        ("runtime/services/README.md", set()),
        ("requirements/kit.txt", ALL),
        ("requirements/debian-base.amd64.txt", ALL),
        ("requirements/debian-base.arm64.txt", ALL),
        ("requirements/debian-harness.amd64.txt", {"harness"}),
        ("requirements/debian-tools.amd64.txt", {"harness"}),
        ("requirements/debian-compiler.amd64.txt", {"orchestrator"}),
        ("requirements/compiler.txt", {"orchestrator"}),
        ("requirements/orchestrator.txt", {"orchestrator"}),
        ("requirements/operator.txt", {"operator"}),
        ("requirements/harness.txt", {"harness"}),
        ("requirements/workspace.txt", set()),
        ("docs/page.md", set()),
        ("infra/src/jr2_infra/plan.py", set()),
    ],
)
def test_a_change_renames_the_images_that_hold_it(root: Path, path: str, changed: set[str]) -> None:
    before = checkout.checkout_images(root)
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"{SOURCES.get(path, '')}changed\n")
    after = checkout.checkout_images(root)
    found = {name for name in ALL if getattr(before, name) != getattr(after, name)}
    assert found == changed


def test_names_do_not_depend_on_the_folder(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root, tmp_path / "elsewhere")
    assert checkout.checkout_images(tmp_path / "elsewhere") == checkout.checkout_images(root)


def test_refs_of_this_checkout() -> None:
    images = checkout.checkout_images(CHECKOUT)
    assert re.fullmatch(r"jr2\.local/jr2-orchestrator:[0-9a-f]{12}", images.orchestrator)
    assert re.fullmatch(r"jr2\.local/jr2-operator:[0-9a-f]{12}", images.operator)
    assert re.fullmatch(r"jr2\.local/jr2-harness:[0-9a-f]{12}", images.harness)


def test_archives_are_in_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ref = "jr2.local/jr2-operator:0123456789ab"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place = tmp_path / "jr2/images/jr2-operator-0123456789ab.oci.tar"
    assert checkout.archive_path(ref) == place
    assert checkout.sbom_path(ref) == place.with_name("jr2-operator-0123456789ab.cdx.json")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert checkout.archive_path(ref).parent == tmp_path / "home/.cache/jr2/images"
