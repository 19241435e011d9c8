"""Strings that the cluster rewrites or refuses: each row of the table, from end to end.

A quantity is written in many ways and comes back in one; a name is refused with its rule before it
can meet another; an annotation is kept as it is, up to what Kubernetes takes.
"""

from __future__ import annotations

import copy
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from jr2 import quantity, repo_identity
from jr2.config import Config, ConfigInvalid, Sandbox, Size, name_problem
from jr2.errors import Refusal
from jr2_infra import check
from jr2_infra.closed_list import CONFIG_MAP
from jr2_infra.components import base
from jr2_infra.derived import differences, live_objects, nothing_more, settled
from jr2_infra.resources import Component, KubernetesResource, Program

DATA = Path(__file__).parents[1] / "unit" / "infra" / "data" / "derived"
CPU: list[list[Any]] = [[1, "1", "1000m", "1e0", 1.0], ["0.1", 0.1, "100m"]]
MEMORY: list[list[Any]] = [
    ["0.5Gi", "512Mi", 536870912, "524288Ki", ".5Gi"],
    ["1e3", "1E3", "1k", "1000"],
    ["5.Gi", "5Gi", "+5Gi"],
    ["0.9Gi", "966367641600m"],
]
EXACT = {"1E": 10**18, "1Ei": 2**60, "1e3": 1000, "+1Gi": 2**30}
REFUSED = {
    "1GB": 'write "1G" or "1Gi"',
    "1K": 'write "1k" or "1Ki"',
    "1ki": 'write "1Ki"',
    "1 Gi": 'write "1Gi"',
    "1e": 'write "1" or "1E"',
    "0x10": 'write one such as "2Gi" or "1500m"',
    "NaN": 'write one such as "2Gi" or "1500m"',
    "": 'write one such as "2Gi" or "1500m"',
    "-1Gi": 'write a positive quantity, such as "2Gi" or "1500m"',
}
NAMES = {
    "café": 'it holds "é", and only a-z, 0-9 and "-" are legal',
    "Feature/X": 'it holds "F", and only a-z, 0-9 and "-" are legal',
    "a_b": 'it holds "_", and only a-z, 0-9 and "-" are legal',
    "-a": "it starts with a hyphen",
    "a" * 64: "it has 64 characters, and a label has at most 63",
    "": "it is empty",
    "x.": 'it holds ".", and only a-z, 0-9 and "-" are legal',
}


def case(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return found


def program_of(wanted: dict[str, Any]) -> Program:
    return Program(
        project="jr2",
        stack="demo.0123456789ab",
        components=(Component(name="part", type="Part"),),
        resources=(KubernetesResource(name="object", object=wanted, component="part"),),
    )


def second_run(wanted: dict[str, Any], obj: dict[str, Any]) -> list[Any]:
    """What a second converge would do to an object that the first one made."""
    live = live_objects([obj])
    return [*differences(settled(program_of(wanted), live), live), *nothing_more(wanted, obj)]


def spellings(groups: list[list[Any]]) -> list[tuple[Any, Any]]:
    return [pair for group in groups for pair in itertools.product(group, group)]


@pytest.mark.parametrize(
    ("resource", "written", "kept"),
    [
        *(("cpu", *pair) for pair in spellings(CPU)),
        *(("memory", *pair) for pair in spellings(MEMORY)),
    ],
)
def test_a_second_run_is_empty_however_a_quantity_is_written(
    resource: str, written: object, kept: object
) -> None:
    found = case("deployment-quantities-spelled-otherwise")
    wanted, live = copy.deepcopy(found["wanted"]), copy.deepcopy(found["live"])
    asked, has = (
        obj["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
        for obj in (wanted, live)
    )
    asked[resource] = written
    has[resource] = quantity.canonical(quantity.spell(kept))

    assert second_run(wanted, live) == []


def test_another_value_is_no_second_spelling() -> None:
    found = case("deployment-quantities-spelled-otherwise")
    wanted = copy.deepcopy(found["wanted"])
    limits = wanted["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    limits["memory"] = "513Mi"

    assert second_run(wanted, found["live"]) != []


@pytest.mark.parametrize("text", EXACT)
def test_quantities_are_exact(text: str) -> None:
    assert quantity.parse(text) == EXACT[text]


def test_ten_is_more_than_two() -> None:
    assert quantity.parse("10Gi") > quantity.parse("2Gi")


@pytest.mark.parametrize("written", [one for group in MEMORY for one in group])
def test_each_legal_form_is_taken(written: str | float) -> None:
    size = Config(sandbox=Sandbox(resources=Size(memory=written))).sandbox.resources

    assert size is not None
    assert size.memory == quantity.spell(written)


def test_what_is_no_whole_byte_is_warned_of() -> None:
    config = Config(sandbox=Sandbox(resources=Size(memory="0.9Gi")))

    assert check.config_warnings(config) == [
        'sandbox.resources.memory "0.9Gi" is not a whole number of bytes: Kubernetes keeps it as '
        '966367641600m — write "966367642"'
    ]


@pytest.mark.parametrize("field", ["memory", "cpu"])
@pytest.mark.parametrize("text", REFUSED)
def test_a_wrong_form_is_refused_with_its_field_and_a_right_one(field: str, text: str) -> None:
    size = Size(memory=text) if field == "memory" else Size(cpu=text)

    with pytest.raises(ConfigInvalid) as raised:
        Config(sandbox=Sandbox(resources=size))

    assert raised.value.path == f"sandbox.resources.{field}"
    assert raised.value.problem.endswith(f"— {REFUSED[text]}")


@pytest.mark.parametrize("name", NAMES)
def test_an_instance_name_is_refused_with_its_rule(name: str) -> None:
    with pytest.raises(ConfigInvalid) as raised:
        Config(name=name)

    assert str(raised.value) == f'name: "{name}" cannot name an Instance: {NAMES[name]}'


def test_two_long_names_never_meet() -> None:
    one, two = "n" * 69 + "a", "n" * 69 + "b"

    assert name_problem(one)
    assert name_problem(two)
    keys = {repo_identity.identify(f"https://h/{name}").key for name in (one, two)}
    assert len(keys) == 2
    assert max(map(len, keys)) <= 63


def test_an_annotation_is_kept_as_it_is() -> None:
    found = case("unchanged-configmap")
    wanted, live = copy.deepcopy(found["wanted"]), copy.deepcopy(found["live"])
    for obj in (wanted, live):
        obj["metadata"]["annotations"]["jr2.dev/said"] = "two lines\nand 🎉"
    (entry,) = (one for one in live["metadata"]["managedFields"] if one["manager"] == "jr2")
    entry["fieldsV1"]["f:metadata"]["f:annotations"]["f:jr2.dev/said"] = {}

    assert second_run(wanted, live) == []
    live["metadata"]["annotations"]["jr2.dev/said"] = "two lines and 🎉"
    assert second_run(wanted, live) != []


def test_an_annotation_that_is_too_long_is_refused_before_it_is_sent() -> None:
    legal = {"jr2.dev/said": "é" * 100_000}
    assert base.wanted(CONFIG_MAP, "cm", labels={}, annotations=legal)

    with pytest.raises(Refusal) as raised:
        base.wanted(CONFIG_MAP, "cm", labels={}, annotations={"jr2.dev/said": "x" * 300_000})

    assert str(raised.value) == (
        "the annotations of ConfigMap cm have 300092 bytes, and Kubernetes takes 262144: "
        "jr2.dev/said is the largest"
    )


@pytest.mark.parametrize("name", ["deployment-restarted", "deployment-autoscaled"])
def test_a_restart_and_an_autoscaler_are_no_difference(name: str) -> None:
    found = case(name)

    assert second_run(found["wanted"], found["live"]) == []


def test_replicas_that_a_person_changed_are_healed() -> None:
    found = case("deployment-scaled-by-hand")

    assert second_run(found["wanted"], found["live"]) != []
