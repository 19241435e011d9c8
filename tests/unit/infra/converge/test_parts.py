"""The parts that come and go: what the Machines need is applied, in its order, and nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jr2 import names, signed
from jr2.config import (
    Config,
    ConfigMapKeyRef,
    EnvFrom,
    EnvVar,
    FieldRef,
    Harness,
    Sandbox,
    Secret,
    SecretKeyRef,
    Toleration,
)
from jr2.errors import Refusal
from jr2.walk import WalkedAgent, WalkedEffect, WalkedParts, WalkedSandbox
from jr2_infra.facts.images import ImageFacts
from jr2_infra.graph import PUBLISH
from jr2_infra.parts import PartsWanted
from jr2_infra.resources import KubernetesResource

if TYPE_CHECKING:
    from tests.unit.infra.converge.conftest import TakeOver, World

HARNESS_IMAGE = "jr2.local/jr2-harness:0123456789ab"
KEY = signed.read_key("A" * 43)
ALL = PartsWanted(repo_cache=True, instance_harness=True, instance_effector=True)
OF = {
    "repo_cache": {
        "serviceaccount-jr2-repo-cache",
        "role-jr2-repo-cache",
        "rolebinding-jr2-repo-cache",
        "daemonset-jr2-repo-cache",
        "rollout-repo-cache",
    },
    "instance_harness": {
        "persistentvolumeclaim-jr2-conversations",
        "service-jr2-instance-harness",
        "service-jr2-instance-harness-pods",
        "statefulset-jr2-instance-harness",
        "rollout-instance-harness",
    },
    "instance_effector": {
        "secret-jr2-instance-effector",
        "networkpolicy-jr2-instance-effector-ingress",
        "service-jr2-instance-effector",
        "deployment-jr2-instance-effector",
        "rollout-instance-effector",
    },
}


def want(world: World, parts: PartsWanted, **changed: Any) -> None:
    world.refs = replace(world.refs, harness=HARNESS_IMAGE)
    world.wants = world.wanting(parts=parts, **changed)


def program(world: World) -> dict[str, Any]:
    return {item.name: item for item in world.plan().program.resources}


def wanted(world: World, name: str) -> dict[str, Any]:
    found: dict[str, Any] = program(world)[name].object
    return found


def changed(world: World) -> set[tuple[str, str]]:
    return {(item.operation, item.resource) for item in world.plan().differences}


@pytest.mark.parametrize(
    ("part", "alone"),
    [
        ("repo_cache", PartsWanted(repo_cache=True)),
        ("instance_harness", PartsWanted(instance_harness=True)),
        ("instance_effector", PartsWanted(instance_effector=True)),
    ],
)
def test_a_part_is_applied_alone_where_it_is_needed(
    world: World, part: str, alone: PartsWanted
) -> None:
    want(world, PartsWanted())
    without = set(program(world))
    want(world, alone)
    assert set(program(world)) - without == OF[part]


def test_the_parts_come_after_the_orchestrator_and_before_the_publish(world: World) -> None:
    want(world, ALL)
    before: dict[str, set[str]] = {}
    for item in world.plan().program.resources:
        before[item.name] = set(item.depends_on).union(*(before[name] for name in item.depends_on))
    for first, then in (
        ("rollout-orchestrator", "daemonset-jr2-repo-cache"),
        ("rollout-repo-cache", "statefulset-jr2-instance-harness"),
        ("rollout-instance-harness", "deployment-jr2-instance-effector"),
        ("rollout-instance-effector", PUBLISH),
        ("networkpolicy-jr2-instance-harness-ingress", "statefulset-jr2-instance-harness"),
        ("networkpolicy-jr2-instance-effector-ingress", "deployment-jr2-instance-effector"),
        ("customresourcedefinition-repos.core.jr2.dev", "daemonset-jr2-repo-cache"),
    ):
        assert first in before[then], (first, then)


def test_a_converged_cluster_is_proved_and_says_the_lines_of_each_part(world: World) -> None:
    want(world, ALL)
    world.converge()
    plan = world.plan()
    assert plan.is_proved
    operator = world.refs.operator
    assert plan.standing_lines()[-10:-1] == (
        f"repo cache: applying (image {operator})",
        "repo cache: waiting for rollout",
        f"repo cache: verified — 1 pod(s) running {operator}",
        f"instance harness: applying (image {HARNESS_IMAGE})",
        "instance harness: waiting for rollout",
        f"instance harness: verified — 1 pod(s) running {HARNESS_IMAGE}",
        f"instance effector: applying (image {HARNESS_IMAGE})",
        "instance effector: waiting for rollout",
        f"instance effector: verified — 1 pod(s) running {HARNESS_IMAGE}",
    )


def test_a_part_that_nobody_needs_any_more_is_removed_and_its_claim_stays(world: World) -> None:
    want(world, ALL)
    world.converge()
    want(world, PartsWanted(instance_effector=True))
    plan = world.plan()
    gone = {item.resource for item in plan.differences if item.operation == "delete"}
    assert gone == {
        "surplus:daemonset:jr2-repo-cache",
        "surplus:role:jr2-repo-cache",
        "surplus:rolebinding:jr2-repo-cache",
        "surplus:service:jr2-instance-harness",
        "surplus:service:jr2-instance-harness-pods",
        "surplus:serviceaccount:jr2-repo-cache",
        "surplus:statefulset:jr2-instance-harness",
    }
    assert plan.lines == (
        "repo cache: removing it (no Machine has a Sandbox)",
        "instance harness: removing it (no Agent is Menu-only)",
    )
    assert plan.drift == ()


def test_a_part_that_comes_later_is_no_drift_and_one_that_somebody_removed_is(
    world: World,
) -> None:
    want(world, PartsWanted())
    world.converge()
    want(world, ALL)
    assert world.plan().drift == ()
    world.converge()
    world.remove("DaemonSet", names.REPO_CACHE)
    world.remove("Service", names.INSTANCE_HARNESS_PODS)
    assert world.plan().drift == (
        "drift: DaemonSet jr2-repo-cache in demo is gone — made again",
        "drift: Service jr2-instance-harness-pods in demo is gone — made again",
    )


def test_what_others_changed_in_a_part_is_named(world: World, take_over: TakeOver) -> None:
    want(world, ALL)
    world.converge()
    role = world.find("Role", names.REPO_CACHE)
    role["rules"] = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    take_over(role, "kubectl-edit", ("f:rules",))
    plan = world.plan()
    assert plan.drift == (
        "drift: Role jr2-repo-cache in demo: rules was changed by kubectl-edit — set back",
    )


def test_the_repo_cache_runs_where_sandboxes_may(world: World) -> None:
    sandbox = Sandbox(
        node_selector={"pool": "agents"},
        tolerations=[
            Toleration(key="agents", operator="Exists", effect="NoExecute", toleration_seconds=30)
        ],
    )
    parts = PartsWanted.of(Config(sandbox=sandbox), [WalkedParts(sandboxes=[sandbox_of()])])
    want(world, parts)
    spec = wanted(world, "daemonset-jr2-repo-cache")["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"pool": "agents"}
    assert spec["tolerations"] == [
        {"key": "agents", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
    ]
    assert spec["priorityClassName"] == names.PRIORITY_CONTROL
    assert spec["containers"][0]["image"] == world.refs.operator


def test_the_harness_hears_the_config_and_then_what_nobody_may_change(world: World) -> None:
    config = Config(
        harness=Harness(
            env=[
                EnvVar("PLAIN", value="CANARY"),
                EnvVar("KEY", value_from=SecretKeyRef(name="keys", key="a")),
                EnvVar("REGION", value_from=ConfigMapKeyRef(name="places", key="region")),
                EnvVar("POD", value_from=FieldRef(field_path="metadata.name")),
            ],
            env_from=[EnvFrom(secret="mine"), EnvFrom(config_map="also")],
        )
    )
    parts = PartsWanted.of(config, [WalkedParts(agents=[], menu_only=True)])
    want(world, parts)
    found = wanted(world, "statefulset-jr2-instance-harness")
    [harness] = found["spec"]["template"]["spec"]["containers"]
    bearer = signed.harness_bearer(KEY, "jr2-instance-harness")
    digest = base64.urlsafe_b64encode(hashlib.sha256(bearer.encode()).digest()).decode()
    assert harness["env"] == [
        {
            "name": "JR2_HARNESS_JSON",
            "valueFrom": {"configMapKeyRef": {"name": "jr2-harness", "key": "harness.json"}},
        },
        {"name": "JR2_MENU_ONLY", "value": "1"},
        {"name": "JR2_CONVERSATIONS_DIR", "value": "/conversations"},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "a"}}},
        {"name": "REGION", "valueFrom": {"configMapKeyRef": {"name": "places", "key": "region"}}},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "JR2_CUSTODIAN_URL", "value": "http://127.0.0.1:8081"},
        {"name": "JR2_SANDBOX_TOKEN", "value": "jr2-held-JR2_SANDBOX_TOKEN"},
        {"name": "JR2_HARNESS_TOKEN_SHA256", "value": digest.rstrip("=")},
    ]
    assert harness["envFrom"] == [
        {"secretRef": {"name": "jr2-harness-env"}},
        {"secretRef": {"name": "mine"}},
        {"configMapRef": {"name": "also"}},
    ]
    shown = json.dumps(found)
    assert "CANARY" not in shown
    assert bearer not in shown
    assert signed.sandbox_token(KEY, "jr2-instance-harness") not in shown


def test_the_custodian_is_a_sidecar_and_alone_has_the_token(world: World) -> None:
    want(world, PartsWanted(instance_harness=True))
    spec = wanted(world, "statefulset-jr2-instance-harness")["spec"]["template"]["spec"]
    [custodian] = spec["initContainers"]
    assert (custodian["name"], custodian["restartPolicy"]) == ("custodian", "Always")
    assert custodian["image"] == names.CUSTODIAN_IMAGE
    values = next(v for v in spec["volumes"] if v["name"] == "custodian-values")
    assert values["projected"]["sources"] == [
        {
            "secret": {
                "name": "jr2-instance",
                "items": [{"key": "JR2_INSTANCE_HARNESS_TOKEN", "path": "JR2_SANDBOX_TOKEN"}],
            }
        }
    ]
    mounted = {mount["name"] for mount in spec["containers"][0]["volumeMounts"]}
    assert mounted == {"conversations", "tmp"}
    secret = wanted(world, "secret-jr2-instance")["data"]
    token = base64.b64decode(secret["JR2_INSTANCE_HARNESS_TOKEN"]).decode()
    assert signed.sandbox_of(KEY, token) == "jr2-instance-harness"


def test_what_the_pod_reads_at_its_start_starts_it_anew(world: World) -> None:
    want(world, PartsWanted(instance_harness=True))

    def digest() -> str:
        template = wanted(world, "statefulset-jr2-instance-harness")["spec"]["template"]
        return str(template["metadata"]["annotations"]["jr2.dev/held-digest"])

    first = digest()
    assert first == digest()
    want(world, PartsWanted(instance_harness=True), harness='{"catalog":{}}')
    assert digest() != first


def test_the_effector_gets_its_key_and_the_secrets_that_its_effects_name(world: World) -> None:
    config = Config(
        secrets=[
            Secret("HOOK", value="CANARY"),
            Secret("OTHER_TOKEN", value_from=SecretKeyRef(name="theirs", key="token")),
            Secret("PUSH_KEY", value="CANARY"),
        ]
    )
    machines = [
        WalkedParts(
            effects=[
                effect("hook", "http", "instance-effector", "HOOK"),
                effect("start", "dispatch", "instance-effector", "OTHER_TOKEN"),
                effect("push", "push", "sandbox-effector", "PUSH_KEY"),
            ],
            instance_effector=True,
        )
    ]
    want(world, PartsWanted.of(config, machines))
    deployment = wanted(world, "deployment-jr2-instance-effector")
    spec = deployment["spec"]["template"]["spec"]
    values = next(v for v in spec["volumes"] if v["name"] == "values")

    def items(secret: str, key: str, path: str) -> dict[str, Any]:
        return {"secret": {"name": secret, "items": [{"key": key, "path": path}]}}

    assert values["projected"]["sources"] == [
        items("jr2-instance-effector", "signing-key", "signing-key"),
        items("jr2-effect-secrets", "HOOK", "secrets/HOOK"),
        items("theirs", "token", "secrets/OTHER_TOKEN"),
    ]
    own = wanted(world, "secret-jr2-instance-effector")["data"]["signing-key"]
    assert base64.b64decode(own).decode() == signed.effector_key(KEY, "jr2-instance-effector")
    assert signed.effector_key(KEY, "jr2-instance-effector") not in json.dumps(deployment)
    assert "CANARY" not in json.dumps([item.object for item in objects(world)])


def objects(world: World) -> Iterable[KubernetesResource]:
    return (item for item in program(world).values() if isinstance(item, KubernetesResource))


def test_each_part_follows_what_the_machines_carry() -> None:
    assert PartsWanted.of(Config(), []) == PartsWanted()
    assert PartsWanted.of(Config(), [WalkedParts(), WalkedParts(menu_only=True)]) == (
        PartsWanted(instance_harness=True)
    )
    assert PartsWanted.of(Config(), [WalkedParts(sandboxes=[sandbox_of()])]) == (
        PartsWanted(repo_cache=True)
    )
    assert PartsWanted.of(Config(), [WalkedParts(instance_effector=True)]) == (
        PartsWanted(instance_effector=True)
    )
    agent = WalkedAgent(slot="planner", model=None, workspace="read")
    assert not PartsWanted.of(Config(), [WalkedParts(agents=[agent])]).harness_image


def test_another_digest_of_the_harness_image_is_rolled_out_again(world: World) -> None:
    want(world, PartsWanted(instance_harness=True))
    digest, config = "sha256:" + "1" * 64, "sha256:" + "c" * 64
    world.images += (ImageFacts(ref=HARNESS_IMAGE, held=digest, config=config),)
    world.converge()
    assert world.plan().is_proved
    [pod] = [p for p in world.pods if p["metadata"]["name"] == "jr2-instance-harness-1"]
    pod["status"]["containerStatuses"][0]["imageID"] = "sha256:" + "2" * 64
    assert changed(world) == {("create", "rollout-instance-harness")}


def test_a_claim_of_conversations_keeps_its_size_and_is_refused_with_other_modes(
    world: World,
) -> None:
    want(world, PartsWanted(instance_harness=True))
    world.converge()
    claim = world.find("PersistentVolumeClaim", names.CONVERSATIONS_CLAIM)
    claim["spec"]["resources"]["requests"]["storage"] = "5Gi"
    assert world.plan().is_proved
    claim["spec"]["accessModes"] = ["ReadWriteMany"]
    with pytest.raises(
        Refusal, match=r"jr2-conversations.*holds the conversations of this Instance"
    ):
        world.plan()


@pytest.mark.parametrize(
    ("kind", "name", "path", "value"),
    [
        ("StatefulSet", names.INSTANCE_HARNESS, ("spec", "podManagementPolicy"), "OrderedReady"),
        ("StatefulSet", names.INSTANCE_HARNESS, ("spec", "serviceName"), "other"),
        ("DaemonSet", names.REPO_CACHE, ("spec", "selector"), {"matchLabels": {"app": "x"}}),
        ("Service", names.INSTANCE_HARNESS_PODS, ("spec", "clusterIP"), "10.96.0.9"),
        ("Service", names.INSTANCE_HARNESS, ("spec", "clusterIP"), "None"),
    ],
)
def test_what_cannot_be_changed_is_deleted_and_made_again(
    world: World, kind: str, name: str, path: tuple[str, ...], value: Any
) -> None:
    want(world, ALL)
    world.converge()
    inner = world.find(kind, name)
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    plan = world.plan()
    assert any(f"{kind} {name}: {'.'.join(path)}" in line for line in plan.drift), plan.drift


def sandbox_of() -> WalkedSandbox:
    return WalkedSandbox(
        path=[], route=[], image=None, user=None, effector=False, memory="2Gi", cpu="1"
    )


def effect(slot: str, kind: Any, place: Any, secret: str) -> WalkedEffect:
    return WalkedEffect(slot=slot, kind=kind, place=place, secret=secret)
