"""The conformance cases of W3C SCXML (IRP, ECMAScript data model), run on the kernel."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from tests.unit.kit.conformance.driver import Session, configuration
from tests.unit.kit.conformance.expressions import Unsupported
from tests.unit.kit.conformance.left_out import LEFT_OUT
from tests.unit.kit.conformance.package import cases_folder
from tests.unit.kit.conformance.scxml import translate

AT_LEAST = 95


@functools.cache
def documents() -> dict[str, Path]:
    """Return the cases that have an expected outcome, by name."""
    return {
        file.name.removesuffix(".txml.scxml"): file
        for file in sorted(cases_folder().glob("*.txml.scxml"))
        if file.with_name(f"{file.name.removesuffix('.scxml')}.json").exists()
    }


def outcome(name: str) -> str:
    """Return `pass`, or what became of a case."""
    try:
        chart = translate(documents()[name])
    except Unsupported as cannot:
        return f"cannot be translated: {cannot}"
    snapshot = Session(chart).run()
    if configuration(chart, snapshot) == {"pass"} and snapshot.status == "done":
        return "pass"
    return snapshot.fault or f"ended in {sorted(configuration(chart, snapshot))}"


@pytest.mark.parametrize("tens", range(10))
def test_the_cases_pass(tens: int) -> None:
    names = [name for name in documents() if name not in LEFT_OUT][tens::10]

    outcomes = {name: outcome(name) for name in names}

    assert outcomes == dict.fromkeys(names, "pass")


def test_enough_cases_are_run() -> None:
    assert len(documents().keys() - LEFT_OUT.keys()) >= AT_LEAST


def test_each_case_that_is_left_out_is_one_and_does_not_pass() -> None:
    assert LEFT_OUT.keys() <= documents().keys()

    passes = [name for name in LEFT_OUT if outcome(name) == "pass"]

    assert passes == []
