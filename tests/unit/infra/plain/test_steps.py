"""Which steps a plain run does, and what it does about drift that its state does not know."""

from __future__ import annotations

from typing import Any

from jr2_infra.plain import steps
from jr2_infra.resources import Component, DynamicResource, KubernetesResource, Program


def obj(kind: str, name: str, namespace: str | None = "demo", **body: Any) -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **body}


def thing(name: str, object_: dict[str, Any], *after: str) -> KubernetesResource:
    return KubernetesResource(name=name, object=object_, component="orchestrator", depends_on=after)


def step(name: str, derived: dict[str, str] | None) -> DynamicResource:
    return DynamicResource(
        name=name,
        kind="Rollout",
        inputs={"image": "i"},
        derived=derived,
        component="orchestrator",
        depends_on=("deployment",),
    )


PROGRAM = Program(
    project="jr2",
    stack="s",
    components=(Component(name="orchestrator", type="Orchestrator"),),
    resources=(
        thing("namespace", obj("Namespace", "demo", None)),
        thing("deployment", obj("Deployment", "d", data="SECRET"), "namespace"),
        step("stands", {"image": "i"}),
        step("differs", {"image": "other"}),
        step("never", None),
    ),
)


def test_a_step_says_whether_the_facts_call_for_it() -> None:
    found = {
        item.name: dict(item.inputs)
        for item in steps.with_runs(PROGRAM, "n").resources
        if isinstance(item, DynamicResource)
    }

    assert found == {
        "stands": {"image": "i", "nonce": "n", "due": "false"},
        "differs": {"image": "i", "nonce": "n", "due": "true"},
        "never": {"image": "i", "nonce": "n", "due": "true"},
    }


def test_what_drifted_is_applied_before_its_own_resource_and_after_what_it_needs() -> None:
    healed = steps.with_healing(PROGRAM, ["deployment"])

    by_name = {item.name: item for item in healed.resources}
    heal = by_name["heal-deployment"]
    assert isinstance(heal, DynamicResource)
    assert (heal.kind, heal.derived, heal.depends_on) == ("NothingMore", None, ("namespace",))
    assert by_name["deployment"].depends_on == ("namespace", "heal-deployment")
    assert list(by_name).index("heal-deployment") < list(by_name).index("deployment")
    assert heal.component in {component.name for component in healed.components}
    # The object stands in a private file, since an input is shown.
    assert "SECRET" not in repr(heal.inputs)
    assert list(steps.healed_objects(PROGRAM, ["deployment"])) == ["deployment"]


def test_without_drift_the_program_stays_as_it_is() -> None:
    assert steps.with_healing(PROGRAM, ()) == PROGRAM


def test_objects_of_the_namespace_alone_are_not_shared() -> None:
    assert not steps.holds_shared(PROGRAM, "demo")
    assert steps.holds_shared(PROGRAM, "other")
