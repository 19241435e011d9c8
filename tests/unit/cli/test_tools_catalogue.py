"""The table of programs agrees with the committed modules."""

from __future__ import annotations

import importlib.resources
import importlib.util
import itertools
import re
from pathlib import Path

import pytest

from jr2_cli.tools import catalogue, golang

MODULES = Path(str(importlib.resources.files(catalogue.__package__))) / "modules"


def required(module: str) -> dict[str, str]:
    text = (MODULES / module / "go.mod").read_text()
    return dict(re.findall(r"^\s*(?:require )?(\S+\.\S+/\S+|\S+\.\S+) (v\S+)", text, re.MULTILINE))


@pytest.mark.parametrize("program", catalogue.PROGRAMS, ids=lambda p: p.name)
def test_each_version_is_the_one_that_its_module_pins(program: catalogue.Program) -> None:
    if program.name == "pulumi-resource-kubernetes":
        # The module's own version is a commit of the provider; the plugin's is the SDK's.
        sdk = importlib.util.find_spec("pulumi_kubernetes")
        assert sdk is not None
        assert sdk.origin is not None
        plugin = Path(sdk.origin).with_name("pulumi-plugin.json").read_text()
        assert f'"{program.version}"' in plugin
        return
    owners = [
        version
        for path, version in required(program.module.name).items()
        if program.package == path or program.package.startswith(f"{path}/")
    ]

    assert owners == [f"v{program.version}"]


@pytest.mark.parametrize("module", sorted({p.module.name for p in catalogue.PROGRAMS}))
def test_each_module_is_committed_with_its_sums_and_no_address(module: str) -> None:
    assert (MODULES / module / "go.sum").stat().st_size > 0
    assert golang.needed_go([catalogue.Module(name=module)]).startswith("1.26")
    for file in (MODULES / module).iterdir():
        # A sum is base64 and may hold anything.
        assert file.name == "go.sum" or "://" not in file.read_text()


def test_no_module_is_committed_that_nothing_uses() -> None:
    assert {path.name for path in MODULES.iterdir()} == {
        program.module.name for program in catalogue.PROGRAMS
    }


def test_the_pinned_version_of_each_program_will_do_on_path_too() -> None:
    for program in catalogue.PROGRAMS:
        assert program.accepts.holds(program.version), program.name


def test_programs_of_one_module_stand_together() -> None:
    modules = [program.module.name for program in catalogue.PROGRAMS]
    changes = sum(a != b for a, b in itertools.pairwise(modules))

    assert changes == len(set(modules)) - 1


def test_names_are_chosen_in_the_order_of_the_table() -> None:
    chosen = catalogue.chosen(("kubectl", "pulumi"))

    assert [program.name for program in chosen] == ["pulumi", "kubectl"]
    assert catalogue.chosen(()) == catalogue.PROGRAMS
    with pytest.raises(KeyError, match="helm"):
        catalogue.chosen(("kubectl", "helm"))
