"""The pinned requirements: they satisfy what the distributions ask for, and name no address."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

CHECKOUT = Path(__file__).parents[3]
REQUIREMENTS = CHECKOUT / "requirements"
DISTRIBUTIONS = ("runtime/kit", "runtime/services", "runtime/machines", "infra", "cli")
IMAGES = ("orchestrator", "operator", "harness")
FILES = ("workspace", "kit", *IMAGES)


def pins(name: str) -> dict[NormalizedName, Version]:
    found: dict[NormalizedName, Version] = {}
    for line in (REQUIREMENTS / f"{name}.txt").read_text().splitlines():
        if line and not line.startswith((" ", "#")):
            requirement = Requirement(line.removesuffix("\\").strip())
            (pin,) = requirement.specifier
            assert pin.operator == "=="
            found[canonicalize_name(requirement.name)] = Version(pin.version)
    return found


def dependencies(folder: str) -> list[Requirement]:
    project = tomllib.loads((CHECKOUT / folder / "pyproject.toml").read_text())["project"]
    return [Requirement(text) for text in project["dependencies"]]


def third_party(folder: str) -> list[Requirement]:
    return [part for part in dependencies(folder) if not part.name.startswith("jr2")]


def input_names(name: str) -> set[NormalizedName]:
    lines = (REQUIREMENTS / f"{name}.in").read_text().splitlines()
    return {canonicalize_name(line) for line in lines if line and not line.startswith("#")}


def assert_satisfied(wanted: list[Requirement], have: dict[NormalizedName, Version]) -> None:
    missing = [
        str(part)
        for part in wanted
        if (pin := have.get(canonicalize_name(part.name))) is None
        or not part.specifier.contains(pin, prereleases=True)
    ]
    assert missing == [], "run scripts/compile-requirements"


@pytest.mark.parametrize("folder", DISTRIBUTIONS)
def test_workspace_pins_satisfy_each_distribution(folder: str) -> None:
    assert_satisfied(third_party(folder), pins("workspace"))


def test_workspace_pins_satisfy_dev_group_and_build_backend() -> None:
    root = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    dev = [Requirement(text) for text in root["dependency-groups"]["dev"]]
    wanted = [part for part in dev if not part.name.startswith("jr2")]
    for folder in DISTRIBUTIONS:
        build = tomllib.loads((CHECKOUT / folder / "pyproject.toml").read_text())["build-system"]
        wanted += [Requirement(text) for text in build["requires"]]
    assert_satisfied(wanted, pins("workspace"))


def test_kit_pins_satisfy_the_kit() -> None:
    assert_satisfied(third_party("runtime/kit"), pins("kit"))


@pytest.mark.parametrize("image", IMAGES)
def test_image_pins_satisfy_the_services_and_the_kit(image: str) -> None:
    names = input_names(image)
    wanted = [
        part for part in third_party("runtime/services") if canonicalize_name(part.name) in names
    ]
    assert len(wanted) == len(names), "requirements/*.in names what runtime/services does not need"
    assert_satisfied(wanted + third_party("runtime/kit"), pins(image))


def test_each_dependency_of_the_services_is_in_an_image() -> None:
    needed = {canonicalize_name(part.name) for part in third_party("runtime/services")}
    assert needed - set().union(*map(input_names, IMAGES)) == set()


@pytest.mark.parametrize("image", ["kit", *IMAGES])
def test_images_run_the_versions_of_the_workspace(image: str) -> None:
    workspace = pins("workspace")
    assert {name: workspace.get(name) for name in pins(image)} == pins(image)


@pytest.mark.parametrize("image", IMAGES)
def test_images_hold_the_closure_of_the_kit(image: str) -> None:
    assert pins("kit").items() <= pins(image).items()


@pytest.mark.parametrize("name", FILES)
def test_no_address_and_a_hash_for_each_pin(name: str) -> None:
    text = (REQUIREMENTS / f"{name}.txt").read_text()
    assert re.search(r"://|^\s*-(?!-hash=sha256:)", text, re.MULTILINE) is None
    blocks = re.split(r"\n(?=\S)", text.strip())
    assert [block for block in blocks if "--hash=sha256:" not in block] == []
