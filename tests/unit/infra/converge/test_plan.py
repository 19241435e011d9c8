"""Facts become a plan: what is proved, what is named, what is left out, and in which order."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jr2 import names
from jr2.errors import Refusal, StepFailed
from jr2_infra.components.secrets import InstanceValues
from jr2_infra.graph import PREFLIGHT, PUBLISH
from jr2_infra.resources import DynamicResource, KubernetesResource

if TYPE_CHECKING:
    from tests.unit.infra.converge.conftest import TakeOver, World

OTHER_VALUES = InstanceValues(
    instance_token="other-instance-token", publish_token="other-publish-token", signing_key="B" * 43
)


def changed(plan: Any) -> set[str]:
    return {item.resource for item in plan.differences}


def resource(plan: Any, name: str) -> Any:
    return next(item for item in plan.program.resources if item.name == name)


def text(obj: dict[str, Any], key: str) -> str:
    return base64.b64decode(obj["data"][key]).decode()


def test_an_empty_cluster_gets_everything(world: World) -> None:
    plan = world.plan()
    assert all(item.operation == "create" for item in plan.differences)
    assert changed(plan) == {item.name for item in plan.program.resources}
    assert plan.drift == ()
    assert plan.writes_shared


def test_a_converged_cluster_is_proved_and_says_the_same_lines(converged: World) -> None:
    plan = converged.plan()
    assert plan.is_proved
    assert plan.drift == ()
    assert not plan.writes_shared
    orchestrator, operator = converged.refs.orchestrator, converged.refs.operator
    assert plan.standing_lines() == (
        f"operator: applying v1.0.0.dev0 ({operator})",
        "operator: waiting for rollout",
        f"operator: verified — 1 pod(s) running {operator}",
        f"orchestrator: applying (image {orchestrator})",
        "orchestrator: waiting for rollout",
        f"orchestrator: verified — 1 pod(s) running {orchestrator}",
        "assembly: abababababab is current already — workflows: ping",
    )


def test_a_proved_plan_does_not_depend_on_what_was_minted(converged: World) -> None:
    assert converged.plan(minted=OTHER_VALUES).is_proved


def test_every_dependency_stands_before_what_depends_on_it(world: World) -> None:
    seen: set[str] = set()
    for item in world.plan().program.resources:
        assert set(item.depends_on) <= seen, item.name
        assert item.name not in seen
        seen.add(item.name)


def test_the_order_of_the_parts_is_that_of_the_seeds(world: World) -> None:
    world.wants = replace(world.wants, models=("anthropic/claude-haiku-5-5",))
    program = world.plan().program
    before: dict[str, set[str]] = {}
    for item in program.resources:
        before[item.name] = set(item.depends_on).union(*(before[name] for name in item.depends_on))
    assert "kit-image-jr2-operator" in before[PREFLIGHT]
    for item in program.resources:
        if isinstance(item, KubernetesResource) and item.component != "namespace":
            assert PREFLIGHT in before[item.name], item.name
    assert "rollout-operator" in before["secret-jr2-instance"]
    assert {"rollout-operator", "secret-jr2-orchestrator", "networkpolicy-jr2-sandbox-ingress"} <= (
        before["deployment-jr2-orchestrator"]
    )
    assert {"rollout-orchestrator", "configmap-jr2-images", "configmap-jr2-held"} <= before[PUBLISH]


def test_the_preflight_is_declared_only_when_there_is_a_model_to_check(converged: World) -> None:
    assert all(item.name != PREFLIGHT for item in converged.plan().program.resources)
    converged.wants = replace(converged.wants, models=("anthropic/claude-haiku-5-5",))
    plan = converged.plan()
    assert resource(plan, PREFLIGHT).inputs == {"models": "anthropic/claude-haiku-5-5"}
    assert changed(plan) == {PREFLIGHT}


def test_a_new_assembly_is_published_and_starts_no_pod(converged: World) -> None:
    converged.wants = replace(converged.wants, assembly="cd" * 32)
    plan = converged.plan()
    assert changed(plan) == {PUBLISH}
    assert resource(plan, PUBLISH).derived == {"assembly": "ab" * 32}


def test_an_image_changed_by_hand_is_named_and_rolled_out(
    converged: World, take_over: TakeOver
) -> None:
    deployment = converged.find("Deployment", names.ORCHESTRATOR)
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = "evil:1"
    take_over(
        deployment,
        "kubectl-edit",
        (
            "f:spec",
            "f:template",
            "f:spec",
            "f:containers",
            'k:{"name": "orchestrator"}',
            "f:image",
        ),
    )
    plan = converged.plan()
    assert changed(plan) == {"deployment-jr2-orchestrator", "rollout-orchestrator", PUBLISH}
    assert plan.drift == (
        "drift: Deployment jr2-orchestrator in demo: "
        "spec.template.spec.containers[orchestrator].image was changed by kubectl-edit — set back",
    )


def test_a_map_value_changed_by_hand_is_named_and_starts_no_pod(
    converged: World, take_over: TakeOver
) -> None:
    found = converged.find("ConfigMap", names.IMAGES_MAP)
    found["data"][names.IMAGES_KEY] = "{}"
    take_over(found, "kubectl-patch", ("f:data", "f:images.json"))
    plan = converged.plan()
    assert changed(plan) == {"configmap-jr2-images"}
    assert plan.drift == (
        'drift: ConfigMap jr2-images in demo: data["images.json"] was changed by kubectl-patch '
        "— set back",
    )


def test_a_widened_role_is_named(converged: World, take_over: TakeOver) -> None:
    role = converged.find("Role", names.ORCHESTRATOR)
    role["rules"] = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    take_over(role, "kubectl-edit", ("f:rules",))
    plan = converged.plan()
    assert changed(plan) == {"role-jr2-orchestrator"}
    assert plan.drift == (
        "drift: Role jr2-orchestrator in demo: rules was changed by kubectl-edit — set back",
    )


def test_a_deleted_secret_gets_new_values_and_starts_the_pod_once(converged: World) -> None:
    before = converged.find("Deployment", names.ORCHESTRATOR)["spec"]["template"]["metadata"]
    converged.remove("Secret", names.INSTANCE_SECRET)
    plan = converged.plan(minted=OTHER_VALUES)
    assert plan.drift == (
        "drift: Secret jr2-instance in demo is gone — made again, with new values",
    )
    assert changed(plan) == {
        "secret-jr2-instance",
        "secret-jr2-orchestrator",
        "deployment-jr2-orchestrator",
        "rollout-orchestrator",
        PUBLISH,
    }
    wanted = resource(plan, "deployment-jr2-orchestrator").object["spec"]["template"]["metadata"]
    assert wanted["annotations"] != before["annotations"]
    secret = resource(plan, "secret-jr2-instance").object
    assert text(secret, names.KEY_INSTANCE_TOKEN) == "other-instance-token"


def test_one_deleted_key_is_made_again_and_the_others_are_kept(converged: World) -> None:
    del converged.find("Secret", names.INSTANCE_SECRET)["data"][names.KEY_PUBLISH_TOKEN]
    secret = resource(converged.plan(minted=OTHER_VALUES), "secret-jr2-instance").object
    assert text(secret, names.KEY_INSTANCE_TOKEN) == "instance-token-0123456789"
    assert text(secret, names.KEY_PUBLISH_TOKEN) == "other-publish-token"


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        (names.KEY_INSTANCE_TOKEN, "tok\n", "printable ASCII"),
        (names.KEY_PUBLISH_TOKEN, "", "printable ASCII"),
        (names.KEY_SIGNING_KEY, "c2hvcnQ", "base64url of 32 bytes"),
    ],
)
def test_a_value_that_nobody_can_use_is_refused_and_not_shown(
    converged: World, key: str, value: str, rule: str
) -> None:
    secret = converged.find("Secret", names.INSTANCE_SECRET)
    secret["data"][key] = base64.b64encode(value.encode()).decode()
    with pytest.raises(StepFailed, match=rule) as caught:
        converged.plan()
    assert key in str(caught.value)
    assert not value.strip() or value.strip() not in str(caught.value)


def test_an_added_container_is_named_and_taken_away_before_the_object(converged: World) -> None:
    deployment = converged.find("Deployment", names.ORCHESTRATOR)
    deployment["spec"]["template"]["spec"]["containers"].append({"name": "evil", "image": "evil"})
    deployment["metadata"]["managedFields"].append(
        {
            "manager": "other",
            "operation": "Update",
            "fieldsV1": {
                "f:spec": {
                    "f:template": {
                        "f:spec": {"f:containers": {'k:{"name":"evil"}': {".": {}, "f:name": {}}}}
                    }
                }
            },
        }
    )
    plan = converged.plan()
    healing = resource(plan, "nothing-more-deployment-jr2-orchestrator")
    assert isinstance(healing, DynamicResource)
    assert 'container "evil"' in healing.inputs["what"]
    assert healing.inputs["path"] == "/apis/apps/v1/namespaces/demo/deployments/jr2-orchestrator"
    assert healing.name in resource(plan, "deployment-jr2-orchestrator").depends_on
    assert changed(plan) == {healing.name, "rollout-orchestrator", PUBLISH}
    assert plan.drift == (
        'drift: Deployment jr2-orchestrator in demo: container "evil", put there by "other" '
        "— taken away",
    )


def test_a_newer_operator_is_left_with_everything_that_is_shared(converged: World) -> None:
    operator = converged.find("Deployment", names.OPERATOR)
    operator["metadata"]["labels"][names.LABEL_VERSION] = "1.1.0"
    converged.remove("PriorityClass", names.PRIORITY_SANDBOX)
    plan = converged.plan()
    assert plan.is_proved
    assert plan.lines == (
        "operator: leaving v1.1.0 (newer than this kit's v1.0.0.dev0 — never downgraded)",
    )
    assert not any(key.namespace is None and key.name != "demo" for key in plan.live)
    assert plan.surplus == ()


def test_an_older_operator_is_upgraded_and_the_line_names_it(converged: World) -> None:
    operator = converged.find("Deployment", names.OPERATOR)
    operator["metadata"]["labels"][names.LABEL_VERSION] = "0.9.0"
    plan = converged.plan()
    assert "deployment-jr2-controller-manager" in changed(plan)
    assert plan.writes_shared
    announced = next(item for item in plan.program.components if item.name == "operator").announce
    assert announced == (f"operator: applying v1.0.0.dev0 ({converged.refs.operator}) over v0.9.0",)


def test_an_operator_that_somebody_else_runs_is_no_part_of_the_program(converged: World) -> None:
    converged.wants = replace(converged.wants, manage_operator=False)
    plan = converged.plan()
    assert plan.is_proved
    assert "operator" not in {item.component for item in plan.program.resources}
    assert plan.lines[0].startswith("operator: skipped (operator.manage: false")
    assert plan.surplus == ()


def test_priority_classes_are_made_also_when_somebody_else_runs_the_operator(world: World) -> None:
    """They belong to the pods of an Instance; `priority_classes` alone leaves them out."""
    world.wants = replace(world.wants, manage_operator=False)
    made = {item.name for item in world.plan().program.resources}
    assert {"priorityclass-jr2-control", "priorityclass-jr2-sandbox"} <= made
    world.wants = replace(world.wants, control_class="theirs", sandbox_class="theirs")
    plan = world.plan()
    assert not [item.name for item in plan.program.resources if "priorityclass" in item.name]
    assert not plan.writes_shared


def test_another_priority_class_takes_the_place_of_ours(world: World) -> None:
    world.wants = replace(world.wants, control_class="system-critical")
    plan = world.plan()
    made = {item.name for item in plan.program.resources}
    assert "priorityclass-jr2-control" not in made
    assert "priorityclass-jr2-sandbox" in made
    for name in ("deployment-jr2-orchestrator", "deployment-jr2-controller-manager"):
        pod = resource(plan, name).object["spec"]["template"]["spec"]
        assert pod["priorityClassName"] == "system-critical"


def test_a_class_that_is_not_wanted_any_more_stays_for_the_other_instances(
    converged: World,
) -> None:
    converged.wants = replace(converged.wants, sandbox_class="other")
    assert converged.plan().surplus == ()


def test_a_claim_that_was_made_larger_keeps_its_size(converged: World, take_over: TakeOver) -> None:
    claim = converged.find("PersistentVolumeClaim", names.STATE_CLAIM)
    claim["spec"]["resources"]["requests"]["storage"] = "5Gi"
    plan = converged.plan()
    wanted = resource(plan, "persistentvolumeclaim-jr2-state").object
    assert wanted["spec"]["resources"]["requests"]["storage"] == "5Gi"
    assert plan.is_proved


@pytest.mark.parametrize("given", ["local-path", "slow"])
def test_the_storage_class_that_the_cluster_gave_is_no_drift(converged: World, given: str) -> None:
    claim = converged.find("PersistentVolumeClaim", names.STATE_CLAIM)
    claim["spec"] |= {"storageClassName": given, "volumeName": "pvc-1", "volumeMode": "Filesystem"}
    plan = converged.plan()
    assert plan.is_proved
    assert plan.drift == ()


def test_a_claim_with_other_access_modes_is_refused(converged: World) -> None:
    converged.find("PersistentVolumeClaim", names.STATE_CLAIM)["spec"]["accessModes"] = [
        "ReadWriteMany"
    ]
    with pytest.raises(Refusal, match="holds the runs of this Instance"):
        converged.plan()


@pytest.mark.parametrize(
    ("kind", "name", "path", "value"),
    [
        ("RoleBinding", names.ORCHESTRATOR, ("roleRef", "name"), "cluster-admin"),
        ("PriorityClass", names.PRIORITY_CONTROL, ("value",), 5),
        ("Service", names.ORCHESTRATOR, ("spec", "clusterIP"), "None"),
        ("ConfigMap", names.HELD_MAP, ("immutable",), True),
    ],
)
def test_what_cannot_be_changed_and_holds_no_data_is_deleted_and_made_again(
    converged: World, kind: str, name: str, path: tuple[str, ...], value: Any
) -> None:
    found = converged.find(kind, name)
    inner = found
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    plan = converged.plan()
    own = f"{kind.lower()}-{name}"
    healing = resource(plan, f"nothing-more-{own}")
    assert healing.inputs["uid"] == found["metadata"]["uid"]
    assert healing.inputs["patch"] == ""
    assert {healing.name, own} <= changed(plan)
    assert not any(key.kind == kind and key.name == name for key in plan.live)
    assert any("deleted and made again" in line for line in plan.drift)


@pytest.mark.parametrize(
    ("image_id", "again"),
    [
        ("sha256:" + "c" * 64, False),
        ("jr2.local/jr2-orchestrator@sha256:" + "1" * 64, False),
        ("sha256:" + "2" * 64, True),
        ("jr2.local/jr2-orchestrator@sha256:" + "2" * 64, True),
        ("", False),
    ],
)
def test_a_pod_with_another_digest_is_rolled_out_again(
    converged: World, image_id: str, again: bool
) -> None:
    converged.pods[0]["status"]["containerStatuses"][1]["imageID"] = image_id
    assert changed(converged.plan()) == ({"rollout-orchestrator"} if again else set())


def test_a_pod_that_is_not_ready_is_waited_for(converged: World) -> None:
    converged.pods[0]["status"]["conditions"][0]["status"] = "False"
    assert changed(converged.plan()) == {"rollout-orchestrator"}


def test_an_orchestrator_that_does_not_answer_is_asked_again(converged: World) -> None:
    converged.health = None
    assert changed(converged.plan()) == {PUBLISH}


def test_the_stack_names_instance_and_cluster(world: World) -> None:
    assert world.plan().program.stack == "demo.0123456789ab"


def test_no_secret_value_stands_in_the_inputs_of_a_step(world: World) -> None:
    plan = world.plan()
    for item in plan.program.resources:
        if isinstance(item, DynamicResource):
            shown = " ".join(item.inputs.values())
            assert "instance-token" not in shown
            assert "publish-token" not in shown
            assert "A" * 43 not in shown
