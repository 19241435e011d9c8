"""A whole Assembly from a folder with a real lock, installed by the real uv."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import uv

from jr2 import names
from jr2.config import Config
from jr2.errors import StepFailed
from jr2_infra import inherited
from jr2_infra.assembly import StagedAssembly, fits, pack, stage
from jr2_infra.facts.instance import InstanceFacts, WorkflowFacts

CHECKOUT = Path(__file__).resolve().parents[3]

PROJECT = f"""\
[project]
name = "staged"
version = "0"
requires-python = ">=3.11"
dependencies = ["jr2=={names.KIT_VERSION}", "orjson", "idna", "acme-lib"]

[tool.uv]
package = false

[tool.uv.sources]
jr2 = {{ path = "{CHECKOUT}/runtime/kit", editable = true }}
acme-lib = {{ path = "libs/acme", editable = true }}
"""

LIBRARY = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "acme-lib"
version = "1"
dependencies = ["pydantic>=2"]
"""


def make(root: Path) -> Path:
    (root / "libs" / "acme" / "acme_lib").mkdir(parents=True)
    (root / "libs" / "acme" / "pyproject.toml").write_text(LIBRARY)
    (root / "libs" / "acme" / "acme_lib" / "__init__.py").write_text("X = 1\n")
    (root / "workflows").mkdir()
    (root / "workflows" / "ping.py").write_text("machine = None\n")
    (root / "jr2_config.py").write_text("config = None\n")
    (root / "pyproject.toml").write_text(PROJECT)
    return root


def facts(root: Path, *workflows: str) -> InstanceFacts:
    return InstanceFacts(
        root=root,
        name="staged",
        config=Config(platforms=["linux/amd64"]),
        workflows=tuple(
            WorkflowFacts(
                name=name,
                file=f"workflows/{name}.py",
                machine_id=name,
                input=None,
                shape="0" * 12,
                document={},
            )
            for name in workflows
        ),
        interpreter=root / ".venv/bin/python",
        kit_version=names.KIT_VERSION,
        checkout=CHECKOUT,
    )


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make(tmp_path_factory.mktemp("staged") / "one")
    subprocess.run([uv.find_uv_bin(), "lock", "--quiet"], cwd=root, check=True)
    return root


def paths(staged: StagedAssembly) -> list[str]:
    return [entry.path for entry in staged.parts]


def test_locked_dependencies_are_staged_for_the_image(locked: Path) -> None:
    staged = stage(facts(locked, "ping"))

    held = paths(staged)
    assert "packages/orjson/orjson.cpython-311-x86_64-linux-gnu.so" in held
    assert "packages/idna/core.py" in held
    assert "packages/acme_lib/__init__.py" in held
    assert "instance/workflows/ping.py" in held
    assert not [p for p in held if p.startswith(("packages/jr2", "packages/pydantic"))]
    assert not [p for p in held if p.endswith(("RECORD", "direct_url.json", ".pyc"))]
    assert staged.manifest.platform == "linux/amd64"
    assert staged.manifest.workflows == ["ping"]


def test_another_folder_gives_the_same_assembly(locked: Path, tmp_path: Path) -> None:
    other = tmp_path / "a" / "longer" / "path"
    other.parent.mkdir(parents=True)
    shutil.copytree(locked, other, ignore=shutil.ignore_patterns(".jr2"))

    one, two = stage(facts(locked, "ping")), stage(facts(other, "ping"))

    assert one.hash == two.hash
    assert pack(one.parts, tmp_path / "one").files == pack(two.parts, tmp_path / "two").files


def test_an_edit_changes_the_hash_and_back_again(locked: Path) -> None:
    before = stage(facts(locked, "ping")).hash
    file = locked / "libs" / "acme" / "acme_lib" / "__init__.py"
    try:
        file.write_text("X = 2\n")
        changed = stage(facts(locked, "ping")).hash
    finally:
        file.write_text("X = 1\n")

    assert changed != before
    assert stage(facts(locked, "ping")).hash == before


def test_a_lock_that_is_out_of_date_is_told(locked: Path, tmp_path: Path) -> None:
    root = tmp_path / "stale"
    shutil.copytree(locked, root, ignore=shutil.ignore_patterns(".jr2"))
    project = root / "pyproject.toml"
    project.write_text(project.read_text().replace('"idna"', '"idna", "six"'))

    with pytest.raises(StepFailed) as failed:
        stage(facts(root, "ping"))

    assert "uv.lock could not be installed" in failed.value.message
    assert "lockfile" in failed.value.message.splitlines()[1]
    assert not list((root / ".jr2" / "assembly").glob("making-*"))


def test_a_native_file_for_another_machine_is_refused(locked: Path, tmp_path: Path) -> None:
    root = tmp_path / "foreign"
    shutil.copytree(locked, root)
    (root / "workflows" / "_tool.so").write_bytes(b"\xcf\xfa\xed\xfe" + bytes(32))

    with pytest.raises(StepFailed, match=r"workflows/_tool.so is built for darwin"):
        stage(facts(root, "ping"))


def test_a_platform_that_the_kit_does_not_know_is_judged_later(locked: Path) -> None:
    config = Config(platforms=["linux/s390x", "linux/arm64"])

    staged = stage(replace(facts(locked, "ping"), config=config))

    assert staged.manifest.platform == "linux/arm64"


def test_native_wheels_follow_the_nodes(locked: Path) -> None:
    here = stage(facts(locked, "ping"))
    assert not fits(here.manifest.platform, ("linux/arm64",))

    there = stage(facts(locked, "ping"), platform="linux/arm64")

    assert there.manifest.platform == "linux/arm64"
    assert "packages/orjson/orjson.cpython-311-aarch64-linux-gnu.so" in paths(there)
    assert there.hash != here.hash
    assert fits("any", ("linux/arm64",))


SPY = """\
import os, pathlib, zipfile

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    pathlib.Path(__file__).with_name("seen").write_text("\\n".join(os.environ))
    name = "acme_lib-1-py3-none-any.whl"
    info = "acme_lib-1.dist-info"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w") as wheel:
        wheel.writestr("acme_lib.py", "X = 1\\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: acme-lib\\nVersion: 1\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
"""


def test_a_build_backend_gets_nothing_of_the_env_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make(tmp_path / "spied")
    library = root / "libs" / "acme"
    (library / "spy.py").write_text(SPY)
    (library / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "spy"\nbackend-path = ["."]\n'
        '[project]\nname = "acme-lib"\nversion = "1"\n'
    )
    subprocess.run([uv.find_uv_bin(), "lock", "--quiet"], cwd=root, check=True)
    monkeypatch.setenv("MODEL_KEY", "CANARY")
    monkeypatch.setenv("AWS_PROFILE", "team")
    inherited.withhold(["MODEL_KEY"])
    try:
        stage(facts(root, "ping"))
    finally:
        inherited.withhold([])

    seen = (library / "seen").read_text().splitlines()
    assert "AWS_PROFILE" in seen
    assert "MODEL_KEY" not in seen
