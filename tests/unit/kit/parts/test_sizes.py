"""Sizes: who states a field, what is left for the Harness, and the text when it is too little."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from jr2 import Size
from jr2.parts.sizes import CUSTODIAN, EFFECTOR, Slice, Split, Stated, read, refusal, resolve

MEBI = 2**20


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        (Size(memory="4Gi", cpu="1500m"), {"memory": "4Gi", "cpu": "1500m"}),
        (Size(cpu=2), {"cpu": "2"}),
        ({"limits": {"memory": "4Gi"}}, {"memory": "4Gi"}),
        ({"limits": {"cpu": 0.5}}, {"cpu": "0.5"}),
    ],
)
def test_a_size_states_its_fields(value: Any, fields: dict[str, str]) -> None:
    assert read(value) == (fields, [])


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (3, ["resources=3: give a Size(memory=…, cpu=…)"]),
        ({"requests": {}}, ["resources with requests: every request equals its limit"]),
        (
            {"limits": {"requests": "1"}},
            ["resources with requests: every request equals its limit"],
        ),
        (
            {"memory": "4Gi"},
            ['resources with the field \'memory\': give {"limits": {"memory": …, "cpu": …}}'],
        ),
        ({}, ['resources with no limits: give {"limits": {"memory": …, "cpu": …}}']),
        (
            {"limits": {"gpu": "1", "memory": "4GB"}},
            [
                "resources with the field 'gpu': a Size has memory and cpu",
                'resources.memory: "4GB" is not a Kubernetes quantity — write "4G" or "4Gi"',
            ],
        ),
        (
            Size(memory="0", cpu="x"),
            [
                'resources.memory: "0" is not more than zero — write a positive quantity, such as '
                '"2Gi" or "1500m"',
                'resources.cpu: "x" is not a Kubernetes quantity — write one such as "2Gi" or '
                '"1500m"',
            ],
        ),
    ],
)
def test_each_problem_of_a_size_is_said(value: Any, found: list[str]) -> None:
    assert read(value) == ({}, found)


def test_each_field_comes_from_the_strongest_that_states_it() -> None:
    found = resolve(
        (("customize()", {"cpu": "3"}), ("workspace()", {"cpu": "2"})), Size(memory="8Gi")
    )

    assert found == {
        "memory": Stated(amount="8Gi", source="sandbox.resources.memory"),
        "cpu": Stated(amount="3", source="resources.cpu of customize()"),
    }
    assert resolve((), None) == {
        "memory": Stated(amount="2Gi", source="kit"),
        "cpu": Stated(amount="1", source="kit"),
    }


def split(memory: str, cpu: str, *more: Slice, source: str = "kit") -> Split:
    return Split(
        memory=Stated(amount=memory, source=source),
        cpu=Stated(amount=cpu, source=source),
        slices=(CUSTODIAN, *more),
    )


def test_the_harness_gets_the_rest() -> None:
    whole = split("2Gi", "1", EFFECTOR)

    assert whole.harness_memory == (2048 - 128) * MEBI
    assert whole.harness_cpu == Fraction(9, 10)
    assert whole.short == ()
    assert refusal(whole) is None
    assert whole.shm == 480 * MEBI
    assert split("384Mi", "1").shm == 80 * MEBI
    assert split("320Mi", "1").shm == 64 * MEBI


@pytest.mark.parametrize(
    ("memory", "cpu", "short"),
    [
        ("320Mi", "51m", ()),
        ("319Mi", "51m", ("memory",)),
        ("320Mi", "50m", ("cpu",)),
        ("1Mi", "1m", ("memory", "cpu")),
    ],
)
def test_the_floor_is_exact(memory: str, cpu: str, short: tuple[str, ...]) -> None:
    assert split(memory, cpu).short == short


def test_a_size_that_is_short_says_every_number_and_where_it_comes_from() -> None:
    user = Slice(name="User Container", memory="1Gi", cpu="1", source="user of workspace()")
    stated = split("1Gi", "1", user, EFFECTOR, source="resources of workspace()")

    assert refusal(stated) == (
        "the Size leaves the Harness container -128Mi memory and -100m cpu, and it needs 256Mi and "
        "more than 0 cpu: 1Gi/1 (resources of workspace()) minus Custodian 64Mi/50m (kit), User "
        "Container 1Gi/1 (user of workspace()), Effector 64Mi/50m (kit); make resources of "
        "workspace() and resources of workspace() larger"
    )
