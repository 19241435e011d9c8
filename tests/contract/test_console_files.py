"""The files of the Console: where they are shipped, what they load, and what they never do."""

from __future__ import annotations

import hashlib
import re
import subprocess
import zipfile
from pathlib import Path

import pytest
import uv

from jr2 import names
from jr2_infra.images.build import content, recipe
from tests.waiting import LIMIT

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "runtime/services/src/jr2_runtime/console/static"
VENDORED = {Path(each.file).name: each for each in recipe.ORCHESTRATOR.vendored}
"""Files of others, as their package of npm holds them."""
OWN = sorted(path.name for path in STATIC.glob("*.js") if path.name not in VENDORED)
FILES = {path.name for path in STATIC.iterdir()}


def test_the_wheel_of_the_services_has_each_file(tmp_path: Path) -> None:
    subprocess.run(
        [uv.find_uv_bin(), "build", "--wheel", "--quiet", "--out-dir", str(tmp_path)],
        cwd=ROOT / "runtime/services",
        check=True,
        capture_output=True,
        timeout=LIMIT,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        shipped = {
            Path(name).name: archive.read(name)
            for name in archive.namelist()
            if name.startswith("jr2_runtime/console/static/")
        }

    assert shipped == {name: (STATIC / name).read_bytes() for name in FILES}


def test_the_image_of_the_orchestrator_alone_has_each_file() -> None:
    place = f"{names.SERVICES_PATH[1:]}/jr2_runtime/console/"
    for image in recipe.KIT_IMAGES:
        shipped = {path for path, _ in content.source_files(ROOT, image) if place in path}
        if image is recipe.ORCHESTRATOR:
            assert {f"{place}static/{name}" for name in FILES} <= shipped
        else:
            assert shipped == set()


@pytest.mark.parametrize("name", VENDORED)
def test_what_is_not_ours_is_as_its_author_published_it(name: str) -> None:
    file = STATIC.parents[1] / VENDORED[name].file

    assert VENDORED[name].sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert VENDORED[name].licence == "EPL-2.0"
    assert "Eclipse Public License" in (STATIC / "elk-license.txt").read_text()


def test_each_module_that_is_loaded_is_there_and_each_that_is_there_is_loaded() -> None:
    loaded = {"main.js"}
    for name in OWN:
        found = re.findall(r'(?:from|import)\s*\(?"([^"]+)"', (STATIC / name).read_text())
        assert all(each.startswith("./") for each in found), name
        loaded |= {each.removeprefix("./") for each in found}

    assert set(OWN) == loaded


@pytest.mark.parametrize("name", OWN)
def test_no_text_becomes_markup_or_code(name: str) -> None:
    """The policy forbids it too; a reader sees here that nothing tries."""
    text = (STATIC / name).read_text()
    sinks = (
        r"innerHTML|outerHTML|insertAdjacentHTML|setHTML|document\.write|DOMParser|srcdoc"
        r"|createContextualFragment|\beval\b|new Function|setAttribute\(\"on|javascript:"
        r"|set(?:Timeout|Interval)\(\s*[\"'`]"
    )

    assert re.findall(sinks, text) == []
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text) == []
    assert "document.cookie" not in text
    assert "localStorage" not in text


@pytest.mark.parametrize("name", OWN)
def test_a_module_says_what_it_is_and_holds_one_idea(name: str) -> None:
    text = (STATIC / name).read_text()

    assert text.startswith("// ")
    assert text.count("\n") <= 600
