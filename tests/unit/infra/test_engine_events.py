"""What the engine says, and which lines a person sees of it."""

from __future__ import annotations

from typing import Any

import pytest
from pulumi.automation import events

from jr2_infra.derived.urns import Urns
from jr2_infra.engine.events import EngineEvents, StepOutcome
from jr2_infra.resources import Component, DynamicResource, KubernetesResource, Program
from tests.reporter import Reporter

PROGRAM = Program(
    project="jr2",
    stack="demo.0123456789ab",
    components=(
        Component(name="config", type="Config", announce=("config: applying",)),
        Component(name="publish", type="Publish", announce=("assembly: looking",)),
    ),
    resources=(
        KubernetesResource(
            name="map",
            component="config",
            object={
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "jr2-images", "namespace": "demo"},
            },
        ),
        DynamicResource(
            name="assembly",
            kind="AssemblyPublish",
            component="publish",
            inputs={"hash": "b"},
            derived={"hash": "a"},
            unchanged=("assembly: b is current",),
        ),
    ),
)
MAP, ASSEMBLY = (Urns(PROGRAM).resource(resource) for resource in PROGRAM.resources)


@pytest.fixture
def reporter() -> Reporter:
    return Reporter(warns=True)


@pytest.fixture
def engine(reporter: Reporter) -> EngineEvents:
    return EngineEvents(PROGRAM, reporter)


def event(**body: Any) -> Any:
    return events.EngineEvent.from_json({"sequence": 1, "timestamp": 1, **body})


def metadata(urn: str, op: str, **more: Any) -> dict[str, Any]:
    return {"op": op, "urn": urn, "type": urn.split("::")[2].split("$")[-1], "provider": "", **more}


def state(urn: str, **inputs: str) -> dict[str, Any]:
    return {"type": "t", "urn": urn, "id": "", "parent": "", "provider": "", "inputs": inputs}


def begun(urn: str, op: str = "create") -> Any:
    return event(resourcePreEvent={"metadata": metadata(urn, op)})


def done(urn: str, op: str, **more: Any) -> Any:
    return event(resOutputsEvent={"metadata": metadata(urn, op, **more)})


def said(text: str, *, urn: str | None = None, severity: str = "info") -> Any:
    body = {"message": text, "color": "raw", "severity": severity}
    return event(diagnosticEvent=body if urn is None else {**body, "urn": urn})


def test_a_part_is_announced_once_when_it_is_reached(
    engine: EngineEvents, reporter: Reporter
) -> None:
    for step in (begun(Urns(PROGRAM).component("config")), begun(MAP, "same"), begun(MAP)):
        engine(step)
    engine(begun(ASSEMBLY))

    assert reporter.said == [
        ("line", "config: applying", "line"),
        ("line", "assembly: looking", "line"),
    ]


def test_the_parts_are_announced_in_the_order_of_the_program(
    engine: EngineEvents, reporter: Reporter
) -> None:
    engine(begun(ASSEMBLY))
    engine(begun(MAP))

    assert [text for _, text, _ in reporter.said] == ["config: applying", "assembly: looking"]


def test_a_step_that_stands_says_its_lines(engine: EngineEvents, reporter: Reporter) -> None:
    engine(done(ASSEMBLY, "same"))

    assert reporter.said == [("line", "assembly: b is current", "line")]
    assert engine.steps["assembly"] == StepOutcome(resource="assembly", operation="same")


def test_what_changed_is_kept_for_objects_and_for_steps(engine: EngineEvents) -> None:
    engine(done(MAP, "update", detailedDiff={"data": {"diffKind": "update", "inputDiff": False}}))
    engine(
        done(
            ASSEMBLY,
            "update",
            old=state(ASSEMBLY, hash="a", __provider="x"),
            new=state(ASSEMBLY, hash="b", __provider="x"),
        )
    )
    engine(done(Urns(PROGRAM).component("config"), "create"))

    assert list(engine.steps.values()) == [
        StepOutcome(resource="map", operation="update", fields=("data",)),
        StepOutcome(resource="assembly", operation="update", fields=("hash",)),
    ]


def test_lines_of_a_provider_arrive_in_order_with_their_codes(
    engine: EngineEvents, reporter: Reporter
) -> None:
    engine(said('jr2-say {"progress": "publishing"}\n', urn=ASSEMBLY))
    engine(said('jr2-say {"line": "one", "code": "a"}\njr2-say {"line": "two"}\n', urn=ASSEMBLY))
    engine(said('jr2-say {"warning": "warning: x", "code": "w"}', urn=ASSEMBLY))
    engine(said('jr2-say {"progress": null}', urn=ASSEMBLY))
    engine(said('jr2-say {"line": "from the output of the plugin"}\n\n'))

    assert reporter.said == [
        ("progress", "publishing", ""),
        ("line", "one", "a"),
        ("line", "two", "line"),
        ("warning", "warning: x", "w"),
        ("progress", None, ""),
        ("line", "from the output of the plugin", "line"),
    ]


@pytest.mark.parametrize(
    "noise",
    [
        said("registering resource", severity="debug"),
        said("Retry #0; creation failed", urn=MAP),
        said("  ", urn=MAP, severity="warning"),
        said("a stray print of a library", urn=ASSEMBLY),
        said("jr2-say {not json", urn=ASSEMBLY),
        said('jr2-say {"line": "forged"}', urn=MAP),
        said("using pulumi-resource-x from $PATH", severity="warning"),
    ],
)
def test_noise_is_dropped(noise: Any, engine: EngineEvents, reporter: Reporter) -> None:
    engine(noise)

    assert (reporter.said, engine.error()) == ([], None)


def test_a_warning_about_an_object_names_it(engine: EngineEvents, reporter: Reporter) -> None:
    engine(said("<{%fg 3%}>field is deprecated<{%reset%}>", urn=MAP, severity="warning"))

    assert reporter.said == [("warning", "warning: map: field is deprecated", "warning")]


def test_the_error_of_an_object_is_one_line_that_names_it(engine: EngineEvents) -> None:
    engine(said("update failed", severity="error"))
    engine(
        said(
            "1 error occurred:\n\t* configmaps is forbidden: exceeded quota\n\n",
            urn=MAP,
            severity="error",
        )
    )

    assert engine.error() == (
        "cannot apply ConfigMap demo/jr2-images: configmaps is forbidden: exceeded quota"
    )


@pytest.mark.parametrize(
    "frame",
    [
        'resource "urn:pulumi:s::jr2::kubernetes:core/v1:Service::a" was not successfully created '
        "by the Kubernetes API server: ",
        '1 error occurred:\n\t* the Kubernetes API server reported that "demo/x" failed to fully '
        "initialize or become live: ",
    ],
)
def test_the_frames_of_the_engines_layers_are_taken_off(engine: EngineEvents, frame: str) -> None:
    engine(said(f"{frame}quota is used up", urn=MAP, severity="error"))

    assert engine.error() == "cannot apply ConfigMap demo/jr2-images: quota is used up"


def test_a_traceback_of_a_step_is_its_last_line(engine: EngineEvents) -> None:
    text = "Traceback (most recent call last):\n  File x\nValueError: no\n"
    engine(said(text, urn=ASSEMBLY, severity="error"))

    assert engine.error() == "assembly failed: ValueError: no"


def test_an_error_without_a_resource_is_the_engines(engine: EngineEvents) -> None:
    engine(said("no plugin", severity="error"))

    assert engine.error() == "the Pulumi engine failed: no plugin"
