"""The wanted objects: what every one carries, and what a pod may and may not have."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jr2 import names
from jr2.config import AllowFrom, Gateway, Harness, Provider
from jr2_infra.closed_list import (
    CLUSTER_OBJECTS,
    INSTANCE_OBJECTS,
    OPTIONAL_OBJECTS,
    SYSTEM_OBJECTS,
)
from jr2_infra.components import images, network
from jr2_infra.parts import PartsWanted
from jr2_infra.resources import KubernetesResource

if TYPE_CHECKING:
    from tests.unit.infra.converge.conftest import World

Objects = list[Mapping[str, Any]]


@pytest.fixture
def objects(world: World) -> Objects:
    """All that a converge can make."""
    world.refs = replace(world.refs, harness="jr2.local/jr2-harness:0123456789ab")
    world.wants = world.wanting(
        parts=PartsWanted(repo_cache=True, instance_harness=True, instance_effector=True)
    )
    return [
        item.object
        for item in world.plan().program.resources
        if isinstance(item, KubernetesResource)
    ]


def pod_specs(objects: Objects) -> dict[str, dict[str, Any]]:
    return {
        obj["metadata"]["name"]: obj["spec"]["template"]["spec"]
        for obj in objects
        if obj["kind"] in ("Deployment", "StatefulSet", "DaemonSet")
    }


def test_every_object_carries_the_three_annotations_and_its_labels(objects: Objects) -> None:
    for obj in objects:
        annotations = obj["metadata"]["annotations"]
        assert annotations["pulumi.com/patchFieldManager"] == "jr2"
        assert annotations["pulumi.com/patchForce"] == "true"
        assert annotations["pulumi.com/skipAwait"] == "true"
        labels = obj["metadata"]["labels"]
        if obj["metadata"].get("namespace") == "demo":
            assert labels[names.LABEL_INSTANCE] == "demo"
            assert labels[names.LABEL_MANAGED_BY] == "jr2"
        elif obj["metadata"]["name"] != "demo":
            assert names.LABEL_INSTANCE not in labels
            assert labels[names.LABEL_MANAGED_BY] == "jr2"


def test_the_namespace_carries_only_its_owner(objects: Objects) -> None:
    own = next(obj for obj in objects if obj["metadata"]["name"] == "demo")
    assert own["metadata"]["labels"] == {names.LABEL_INSTANCE: "demo"}


def test_the_program_makes_exactly_the_closed_list(objects: Objects) -> None:
    made = {(obj["kind"], obj["metadata"]["name"]) for obj in objects} - {("Namespace", "demo")}
    listed = {
        (kind.kind, name) for kind, name in (*INSTANCE_OBJECTS, *SYSTEM_OBJECTS, *CLUSTER_OBJECTS)
    }
    assert made == listed - {(kind.kind, name) for kind, name in OPTIONAL_OBJECTS}


def test_every_pod_meets_the_restricted_standard(objects: Objects) -> None:
    specs = pod_specs(objects)
    cache = specs.pop(names.REPO_CACHE)
    assert set(specs) == {
        names.ORCHESTRATOR,
        names.OPERATOR,
        names.INSTANCE_HARNESS,
        names.INSTANCE_EFFECTOR,
    }
    # The one exception: uid 0 and a folder of the node, and no capability all the same.
    assert [volume for volume in cache["volumes"] if "hostPath" in volume] == [
        {
            "name": "cache",
            "hostPath": {"path": "/var/lib/jr2/demo/repos", "type": "DirectoryOrCreate"},
        }
    ]
    [agent] = cache["containers"]
    assert agent["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsUser": 0,
        "runAsGroup": 0,
    }
    for spec in specs.values():
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for field in ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"):
            assert field not in spec
        assert all("hostPath" not in volume for volume in spec["volumes"])
        for container in (*spec.get("initContainers", ()), *spec["containers"]):
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert context["readOnlyRootFilesystem"] is True
            assert "memory" in container["resources"]["limits"]


def test_the_worker_sees_assemblies_and_nothing_else(objects: Objects) -> None:
    spec = pod_specs(objects)[names.ORCHESTRATOR]
    main, worker = spec["containers"]
    assert [main["name"], worker["name"]] == ["orchestrator", "worker"]
    assert main["image"] == worker["image"]
    assert "env" not in worker
    assert "envFrom" not in worker
    assert {
        mount["mountPath"]: mount.get("readOnly", False) for mount in worker["volumeMounts"]
    } == {
        names.WORKER_ASSEMBLIES_PATH: True,
        names.SOCKET_DIR: False,
        "/tmp": False,
    }
    state = next(item for item in worker["volumeMounts"] if item["name"] == "state")
    assert state["subPath"] == names.ASSEMBLIES_DIR
    assert worker["securityContext"]["runAsUser"] == names.WORKER_UID
    assert main["securityContext"]["runAsUser"] == names.ORCHESTRATOR_UID


def test_only_the_orchestrator_container_has_token_and_values(objects: Objects) -> None:
    spec = pod_specs(objects)[names.ORCHESTRATOR]
    assert spec["automountServiceAccountToken"] is False
    main, worker = spec["containers"]
    private = {
        volume["name"] for volume in spec["volumes"] if "secret" in volume or "projected" in volume
    }
    assert len(private) == 2
    assert private <= {mount["name"] for mount in main["volumeMounts"]}
    assert not private & {mount["name"] for mount in worker["volumeMounts"]}
    assert "JR2_INSTANCE_TOKEN" not in json.dumps(spec)


def test_the_orchestrator_gets_digests_of_its_tokens(objects: Objects) -> None:
    by_name = {
        obj["metadata"]["name"]: {
            key: base64.b64decode(value).decode() for key, value in obj.get("data", {}).items()
        }
        for obj in objects
        if obj["kind"] == "Secret"
    }
    clear, held = by_name[names.INSTANCE_SECRET], by_name[names.ORCHESTRATOR]
    digest = hashlib.sha256(clear[names.KEY_INSTANCE_TOKEN].encode()).hexdigest()
    assert held[names.FILE_INSTANCE_TOKEN_DIGEST] == digest
    assert held[names.FILE_SIGNING_KEY] == clear[names.KEY_SIGNING_KEY]
    assert clear[names.KEY_INSTANCE_TOKEN] not in held.values()
    assert clear[names.KEY_PUBLISH_TOKEN] not in held.values()


def test_nothing_of_the_assembly_stands_in_the_pod_template(world: World, objects: Objects) -> None:
    template = next(
        obj
        for obj in objects
        if (obj["kind"], obj["metadata"]["name"]) == ("Deployment", names.ORCHESTRATOR)
    )["spec"]["template"]
    assert world.wants.assembly[:12] not in json.dumps(template)
    assert names.ANNOTATION_IMAGES not in template["metadata"]["annotations"]


def policies(objects: Objects) -> dict[str, Any]:
    return {
        obj["metadata"]["name"]: obj["spec"] for obj in objects if obj["kind"] == "NetworkPolicy"
    }


ORCHESTRATOR = {"matchLabels": {"app": "jr2-orchestrator", names.LABEL_INSTANCE: "demo"}}


def test_the_pods_of_agents_let_only_the_orchestrator_in(objects: Objects) -> None:
    found = policies(objects)
    assert len(found) == 4
    for name in (
        names.SANDBOX_INGRESS,
        names.INSTANCE_HARNESS_INGRESS,
        names.INSTANCE_EFFECTOR_INGRESS,
    ):
        assert found[name]["policyTypes"] == ["Ingress"]
        (rule,) = found[name]["ingress"]
        assert rule == {"from": [{"podSelector": ORCHESTRATOR}]}


def test_the_orchestrator_lets_in_who_calls_it_and_whom_the_config_names(
    objects: Objects,
) -> None:
    own = [
        {
            "podSelector": {
                "matchExpressions": [{"key": "sandbox.jr2.dev/name", "operator": "Exists"}]
            }
        },
        {"podSelector": {"matchLabels": {"app": "jr2-instance-harness"}}},
    ]
    port = [{"port": 4000, "protocol": "TCP"}]
    spec = policies(objects)[names.ORCHESTRATOR_INGRESS]
    assert spec["podSelector"] == ORCHESTRATOR
    assert spec["policyTypes"] == ["Ingress"]
    assert spec["ingress"] == [{"from": own, "ports": port}]

    allowed = [
        AllowFrom(namespace="hooks", pods={"app": "translator"}),
        AllowFrom(namespace="hooks"),
        AllowFrom(pods={"app": "own"}),
        AllowFrom(cidr="10.0.0.0/8"),
    ]
    made = network.policies("demo", "demo", allow_from=allowed)
    (rule,) = made[-1]["spec"]["ingress"]
    hooks = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "hooks"}}}
    assert rule["from"] == [
        *own,
        {**hooks, "podSelector": {"matchLabels": {"app": "translator"}}},
        hooks,
        {"podSelector": {"matchLabels": {"app": "own"}}},
        {"ipBlock": {"cidr": "10.0.0.0/8"}},
    ]


def test_the_orchestrators_role_names_its_two_maps(objects: Objects) -> None:
    role = next(
        obj
        for obj in objects
        if (obj["kind"], obj["metadata"]["name"]) == ("Role", names.ORCHESTRATOR)
    )
    assert role["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "verbs": ["list", "watch"],
            "resourceNames": ["jr2-images", "jr2-held"],
        }
    ]


def test_harness_json_says_where_models_are_and_holds_no_key() -> None:
    harness = Harness(
        provider=Provider(
            id="vllm",
            api="openai-completions",
            base_url="http://10.0.0.5:8000/v1",
            api_key="CANARY",
            context_window=32000,
        ),
        catalog={"anthropic": Gateway(base_url="https://gateway.example/anthropic")},
    )
    text = images.harness_json(harness)
    assert json.loads(text) == {
        "provider": {
            "id": "vllm",
            "api": "openai-completions",
            "baseUrl": "http://10.0.0.5:8000/v1",
            "contextWindow": 32000,
            "models": {},
        },
        "catalog": {"anthropic": {"baseUrl": "https://gateway.example/anthropic"}},
    }
    assert "CANARY" not in text


def test_a_mirror_holds_the_custodian_too() -> None:
    assert images.custodian_ref(None) == names.CUSTODIAN_IMAGE
    mirrored = images.custodian_ref("registry.example/kit/")
    assert mirrored.startswith("registry.example/kit/envoy:distroless-v1.39.1@sha256:")
