"""The real engine against a real API server: derived state, proof, minder, folder and Lease."""

from __future__ import annotations

import base64
import copy
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from jr2.errors import StepFailed
from jr2_cli import tools
from jr2_infra import kube, process_table
from jr2_infra.derived import differences, healing, key_of, live_objects, nothing_more, settled
from jr2_infra.derived.live import LiveObject, LiveObjects
from jr2_infra.engine import minder
from jr2_infra.engine.run import EngineResult, run_engine
from jr2_infra.lease import ConvergeLease, nonce_of
from jr2_infra.resources import Component, DynamicResource, KubernetesResource, Program
from jr2_infra.tooling import Tooling

pytestmark = pytest.mark.cluster

CANARY = "CANARY-6f1d"
CODED = base64.b64encode(CANARY.encode()).decode()
OTHER = "some-other-tool"

PLURALS = {"NetworkPolicy": "networkpolicies", "PriorityClass": "priorityclasses"}
ANNOTATIONS = {
    "pulumi.com/patchFieldManager": "jr2",
    "pulumi.com/patchForce": "true",
    "pulumi.com/skipAwait": "true",
}
RBAC = "rbac.authorization.k8s.io"


class Reporter:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str, *, code: str = "line") -> None:
        self.lines.append(text)

    def warning(self, text: str, *, code: str = "warning") -> None:
        self.lines.append(text)

    def progress(self, text: str | None) -> None:
        pass

    def confirm(self, question: str) -> bool:
        raise AssertionError(question)


class Cluster:
    """A namespace of its own, the objects in it and the engine over them."""

    def __init__(self, context: kube.KubeContext, namespace: str) -> None:
        self.context = context
        self.namespace = namespace
        self.http = context.http(timeout=30)
        self.tooling = Tooling(
            pulumi=tools.require("pulumi"),
            kubernetes_plugin=tools.require("pulumi-resource-kubernetes"),
            kubectl=tools.require("kubectl"),
        )
        self.objects = sample(namespace)

    def path(self, obj: Mapping[str, Any]) -> str:
        api, kind, metadata = obj["apiVersion"], obj["kind"], obj["metadata"]
        root = "/apis/" if "/" in api else "/api/"
        inner = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
        plural = PLURALS.get(kind, f"{kind.lower()}s")
        return f"{root}{api}{inner}/{plural}/{metadata['name']}"

    def get(self, obj: Mapping[str, Any]) -> dict[str, Any] | None:
        response = self.http.get(self.path(obj))
        if response.status_code == 404:
            return None
        response.raise_for_status()
        found: dict[str, Any] = response.json()
        return None if "deletionTimestamp" in found["metadata"] else found

    def live(self, objects: Sequence[Mapping[str, Any]] | None = None) -> LiveObjects:
        wanted = self.objects if objects is None else objects
        return live_objects([found for obj in wanted if (found := self.get(obj))])

    def patch(
        self,
        obj: Mapping[str, Any],
        body: Any,
        *,
        kind: str = "merge-patch",
        manager: str = OTHER,
        subresource: str = "",
        **params: str,
    ) -> httpx2.Response:
        return self.http.patch(
            self.path(obj) + subresource,
            params={"fieldManager": manager, **params},
            content=json.dumps(body),
            headers={"Content-Type": f"application/{kind}+json"},
        )

    def change(self, obj: Mapping[str, Any], body: Any, **how: Any) -> None:
        response = self.patch(obj, body, **how)
        assert response.is_success, response.text

    def delete(self, obj: Mapping[str, Any]) -> None:
        response = self.http.request(
            "DELETE", self.path(obj), json={"propagationPolicy": "Background"}
        )
        assert response.status_code in (200, 202, 404), response.text
        until = time.monotonic() + 30
        while obj["kind"] != "Namespace" and self.http.get(self.path(obj)).status_code != 404:
            assert time.monotonic() < until
            time.sleep(0.05)

    def program(
        self,
        objects: Sequence[Mapping[str, Any]] | None = None,
        steps: Sequence[DynamicResource] = (),
    ) -> Program:
        wanted = self.objects if objects is None else objects
        name_of = {
            key_of(obj): f"{obj['kind'].lower()}-{obj['metadata']['name']}" for obj in wanted
        }
        first = f"namespace-{self.namespace}"
        return Program(
            project="jr2",
            stack="engine-test.0123456789ab",
            components=(Component(name="part", type="Part", announce=("part: reached",)),),
            resources=(
                *(
                    KubernetesResource(
                        name=name_of[key_of(obj)],
                        object=obj,
                        component="part",
                        depends_on=(first,) if "namespace" in obj["metadata"] else (),
                    )
                    for obj in wanted
                ),
                *steps,
            ),
        )

    def engine(
        self,
        program: Program | None = None,
        live: LiveObjects | None = None,
        *,
        preview: bool = False,
        surplus: Sequence[LiveObject] = (),
        reporter: Reporter | None = None,
        **more: Any,
    ) -> EngineResult:
        return run_engine(
            program or self.program(),
            self.live() if live is None else live,
            tooling=self.tooling,
            kubeconfig_text=self.context.kubeconfig_text(),
            run_settings={"namespace": self.namespace},
            reporter=reporter or Reporter(),
            preview=preview,
            surplus=surplus,
            **more,
        )

    def heal_more(self) -> list[str]:
        said: list[str] = []
        for obj in self.objects:
            # A controller that writes a status between read and patch moves the resourceVersion.
            for _ in range(20):
                found = self.get(obj)
                more = nothing_more(obj, found) if found else []
                if not found or not more:
                    break
                said += [str(item) for item in more if str(item) not in said]
                self.patch(obj, healing(found, more), kind="json-patch", manager="jr2")
            else:
                pytest.fail(f"cannot heal {obj['kind']}: {said}")
        return said

    def settle(self) -> None:
        """Bring every object back, whatever a test did."""
        self.heal_more()
        if differences(self.program(), self.live()):
            self.engine()
        self.proved()

    def proved(self) -> None:
        live = self.live()
        assert differences(self.program(), live) == []
        for obj in self.objects:
            assert nothing_more(obj, live[key_of(obj)]) == []


def sample(namespace: str) -> list[dict[str, Any]]:
    """One object of each kind that jr2 makes, and some more; none of them starts a pod."""

    def obj(api: str, kind: str, name: str, *, shared: bool = False, **body: Any) -> dict[str, Any]:
        metadata: dict[str, Any] = {"name": name, "annotations": dict(ANNOTATIONS)}
        metadata["labels"] = {"app.kubernetes.io/managed-by": "jr2", "engine-test": "yes"}
        if not shared:
            metadata["namespace"] = namespace
        return {"apiVersion": api, "kind": kind, "metadata": metadata, **body}

    def pod(app: str) -> dict[str, Any]:
        return {
            "metadata": {"labels": {"app": app}},
            "spec": {
                "serviceAccountName": "account",
                "automountServiceAccountToken": False,
                "nodeSelector": {"no-such-node": "true"},
                "securityContext": {"runAsNonRoot": True, "fsGroup": 10000},
                "resources": {"limits": {"memory": "1Gi"}},
                "containers": [
                    {
                        "name": "main",
                        "image": "jr2.local/x:1",
                        "env": [
                            {"name": "A", "value": "1"},
                            {
                                "name": "B",
                                "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
                            },
                            {
                                "name": "C",
                                "valueFrom": {
                                    "resourceFieldRef": {"resource": "limits.cpu", "divisor": "1"}
                                },
                            },
                        ],
                        "ports": [{"name": "http", "containerPort": 4000}],
                        "resources": {
                            "limits": {"memory": "0.5Gi", "cpu": "1e-1"},
                            "requests": {"cpu": 0.1},
                        },
                        "readinessProbe": {"httpGet": {"path": "/healthz", "port": "http"}},
                        "securityContext": {
                            "allowPrivilegeEscalation": False,
                            "capabilities": {"drop": ["ALL"]},
                        },
                        "volumeMounts": [
                            {"name": "tmp", "mountPath": "/tmp"},
                            {"name": "data", "mountPath": "/data", "subPath": "x"},
                        ],
                    },
                    {"name": "worker", "image": "jr2.local/x:1", "command": ["a", "b"]},
                ],
                "volumes": [
                    {"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}},
                    {"name": "data", "emptyDir": {}},
                    {"name": "runtime", "image": {"reference": "jr2.local/y:1"}},
                    {
                        "name": "access",
                        "projected": {
                            "sources": [
                                {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}},
                                {
                                    "downwardAPI": {
                                        "items": [
                                            {
                                                "path": "n",
                                                "fieldRef": {"fieldPath": "metadata.namespace"},
                                            }
                                        ]
                                    }
                                },
                            ]
                        },
                    },
                ],
            },
        }

    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    subjects = [{"kind": "ServiceAccount", "name": "account", "namespace": namespace}]
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "0.5Gi"}}}
    named = f"{namespace}-shared"
    return [
        obj("v1", "Namespace", namespace, shared=True),
        obj("v1", "ConfigMap", "config", data={"a.json": "{}", "limits": "1", "n": "1000m"}),
        obj("v1", "Secret", "secret", type="Opaque", data={"token": CODED, "b": "eA=="}),
        obj("v1", "ServiceAccount", "account", automountServiceAccountToken=False),
        obj("v1", "PersistentVolumeClaim", "claim", spec=claim),
        obj(f"{RBAC}/v1", "Role", "role", rules=rules),
        obj(
            f"{RBAC}/v1",
            "RoleBinding",
            "role",
            roleRef={"apiGroup": RBAC, "kind": "Role", "name": "role"},
            subjects=subjects,
        ),
        obj(f"{RBAC}/v1", "ClusterRole", named, shared=True, rules=rules),
        obj(
            f"{RBAC}/v1",
            "ClusterRoleBinding",
            named,
            shared=True,
            roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": named},
            subjects=subjects,
        ),
        obj(
            "v1",
            "Service",
            "service",
            spec={
                "type": "ClusterIP",
                "selector": {"app": "deployment"},
                "ports": [
                    {"name": "t", "port": 53, "targetPort": 4000},
                    {"name": "u", "port": 53, "protocol": "UDP", "targetPort": "http"},
                ],
            },
        ),
        obj(
            "apps/v1",
            "Deployment",
            "deployment",
            spec={
                "replicas": 1,
                "strategy": {"type": "Recreate"},
                "selector": {"matchLabels": {"app": "deployment"}},
                "template": pod("deployment"),
            },
        ),
        obj(
            "apps/v1",
            "StatefulSet",
            "set",
            spec={
                "serviceName": "service",
                "replicas": 1,
                "selector": {"matchLabels": {"app": "set"}},
                "template": pod("set"),
                "volumeClaimTemplates": [{"metadata": {"name": "own"}, "spec": claim}],
            },
        ),
        obj(
            "apps/v1",
            "DaemonSet",
            "daemons",
            spec={"selector": {"matchLabels": {"app": "daemons"}}, "template": pod("daemons")},
        ),
        obj(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            "policy",
            spec={
                "podSelector": {},
                "policyTypes": ["Ingress"],
                "ingress": [
                    {
                        "from": [{"podSelector": {"matchLabels": {"app": "x"}}}],
                        "ports": [{"port": 4000}],
                    }
                ],
            },
        ),
        obj("scheduling.k8s.io/v1", "PriorityClass", named, shared=True, value=1000),
        obj(
            "policy/v1",
            "PodDisruptionBudget",
            "budget",
            spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "deployment"}}},
        ),
        obj(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            f"things.{namespace}.jr2.dev",
            shared=True,
            spec={
                "group": f"{namespace}.jr2.dev",
                "names": {"kind": "Thing", "plural": "things"},
                "scope": "Namespaced",
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "subresources": {"status": {}},
                        "schema": {
                            "openAPIV3Schema": {
                                "type": "object",
                                "properties": {
                                    "spec": {
                                        "type": "object",
                                        "x-kubernetes-preserve-unknown-fields": True,
                                    }
                                },
                            }
                        },
                    }
                ],
            },
        ),
    ]


@pytest.fixture(scope="module")
def whole(local_cluster: str) -> Iterator[Cluster]:
    """A namespace of its own with every object converged once."""
    context = kube.load_context(local_cluster)
    cluster = Cluster(context, f"engine-test-{os.getpid()}")
    try:
        created = cluster.engine()
        assert {step.operation for step in created.steps} == {"create"}
        assert len(created.steps) == len(cluster.objects)
        yield cluster
    finally:
        for obj in reversed(cluster.objects):
            if "namespace" not in obj["metadata"]:
                cluster.delete(obj)
        cluster.http.close()


@pytest.fixture
def cluster(whole: Cluster) -> Cluster:
    whole.settle()
    return whole


def named(cluster: Cluster, kind: str) -> dict[str, Any]:
    return next(obj for obj in cluster.objects if obj["kind"] == kind)


def resource_of(obj: Mapping[str, Any]) -> str:
    return f"{obj['kind'].lower()}-{obj['metadata']['name']}"


def test_a_second_run_is_proved_and_the_engine_agrees(cluster: Cluster) -> None:
    reporter = Reporter()

    cluster.proved()
    result = cluster.engine(reporter=reporter)

    assert {step.operation for step in result.steps} == {"same"}
    assert len(result.steps) == len(cluster.objects)
    assert reporter.lines == ["part: reached"]


def test_what_was_changed_by_hand_is_exactly_what_is_healed(cluster: Cluster) -> None:
    deployment, role = named(cluster, "Deployment"), named(cluster, "Role")
    cluster.change(
        deployment,
        {
            "spec": {
                "replicas": 0,
                "template": {"spec": {"containers": [{"name": "main", "image": "evil:1"}]}},
            }
        },
        kind="strategic-merge-patch",
    )
    cluster.change(named(cluster, "ConfigMap"), {"data": {"a.json": "{1}"}})
    cluster.change(role, {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]})
    cluster.delete(named(cluster, "Secret"))
    before = {resource_of(obj): (cluster.get(obj) or {}) for obj in cluster.objects}

    preview = cluster.engine(preview=True)
    result = cluster.engine()

    changed = {
        "deployment-deployment": (
            "update",
            ("spec.replicas", "spec.template.spec.containers[0].image"),
        ),
        "configmap-config": ("update", ('data["a.json"]',)),
        "role-role": ("update", ("rules",)),
        "secret-secret": ("create", ()),
    }
    for outcome in (preview, result):
        assert {s.resource: (s.operation, s.fields) for s in outcome.changed} == changed
    for obj in cluster.objects:
        name, old = resource_of(obj), before[resource_of(obj)]
        if name not in changed:
            now = cluster.get(obj)
            assert now is not None
            assert written(now) == written(old), name
    cluster.proved()


def written(obj: Mapping[str, Any]) -> Any:
    """What changes when an object is written; a controller's status moves the resourceVersion."""
    metadata = obj["metadata"]
    return metadata.get("generation") or metadata["resourceVersion"]


def test_what_others_added_is_named_and_taken_away(cluster: Cluster) -> None:
    cluster.change(
        named(cluster, "Deployment"),
        {
            "spec": {
                "template": {
                    "spec": {"hostPID": True, "containers": [{"name": "evil", "image": "e"}]}
                }
            }
        },
        kind="strategic-merge-patch",
    )
    cluster.change(named(cluster, "Secret"), {"data": {"extra": "eA=="}})

    assert differences(cluster.program(), cluster.live()) == []
    assert {step.operation for step in cluster.engine(preview=True).steps} == {"same"}
    assert sorted(cluster.heal_more()) == [
        f'Secret key "extra", put there by "{OTHER}"',
        f'container "evil", put there by "{OTHER}"',
        f'hostPID, put there by "{OTHER}"',
    ]
    cluster.proved()


def test_what_is_no_longer_wanted_is_deleted_and_nothing_else(cluster: Cluster) -> None:
    gone = {"ConfigMap", "NetworkPolicy", "PersistentVolumeClaim"}
    wanted = [obj for obj in cluster.objects if obj["kind"] not in gone]
    live = cluster.live()
    surplus = [live[key_of(obj)] for obj in cluster.objects if obj["kind"] in gone]

    result = cluster.engine(cluster.program(wanted), live, surplus=surplus)

    assert sorted((step.resource, step.operation) for step in result.changed) == [
        ("surplus:configmap:config", "delete"),
        ("surplus:networkpolicy:policy", "delete"),
    ]
    assert {key.kind for key in live} - {key.kind for key in cluster.live()} == {
        "ConfigMap",
        "NetworkPolicy",
    }


def test_a_change_of_the_program_is_an_update_of_that_field(cluster: Cluster) -> None:
    wanted = copy.deepcopy(cluster.objects)
    deployment = next(obj for obj in wanted if obj["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] = "1000m"
    del deployment["spec"]["template"]["spec"]["containers"][0]["env"][2]

    result = cluster.engine(cluster.program(wanted))

    assert [(step.resource, step.operation) for step in result.changed] == [
        ("deployment-deployment", "update")
    ]
    found = cluster.get(deployment)
    assert found is not None
    env = found["spec"]["template"]["spec"]["containers"][0]["env"]
    assert [item["name"] for item in env] == ["A", "B"]
    assert differences(cluster.program(wanted), cluster.live()) == []


def test_an_autoscaler_and_a_restart_are_left_alone(cluster: Cluster) -> None:
    """Field case 9: no conflict, no new pod, no difference."""
    deployment = named(cluster, "Deployment")
    scale = {"spec": {"replicas": 3}}
    cluster.change(deployment, scale, manager="kube-controller-manager", subresource="/scale")
    restarted = {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}
    cluster.change(deployment, {"spec": {"template": {"metadata": {"annotations": restarted}}}})
    cluster.change(named(cluster, "ConfigMap"), {"data": {"n": "2"}})

    live = cluster.live()
    assert [d.resource for d in differences(settled(cluster.program(), live), live)] == [
        "configmap-config"
    ]
    cluster.engine()

    found = cluster.get(deployment)
    assert found is not None
    assert found["spec"]["replicas"] == 3
    assert found["spec"]["template"]["metadata"]["annotations"] == restarted
    cluster.change(deployment, {"spec": {"replicas": 1}}, manager="jr2", kind="merge-patch")


EDITS: list[tuple[str, Any, str]] = [
    ("ConfigMap", {"data": {"a.json": "{2}"}}, "merge-patch"),
    ("ConfigMap", {"data": {"a.json": "{}"}}, "merge-patch"),
    ("ConfigMap", {"data": {"n": None}}, "merge-patch"),
    ("ConfigMap", {"data": None}, "merge-patch"),
    ("ConfigMap", {"data": {"added": "1"}}, "merge-patch"),
    ("ConfigMap", {"metadata": {"labels": {"engine-test": "no"}}}, "merge-patch"),
    ("ConfigMap", {"metadata": {"labels": {"another": "label"}}}, "merge-patch"),
    ("ConfigMap", {"metadata": {"annotations": {"pulumi.com/patchForce": None}}}, "merge-patch"),
    ("Secret", {"data": {"token": "eA=="}}, "merge-patch"),
    ("Secret", {"data": {"added": "eA=="}}, "merge-patch"),
    ("ServiceAccount", {"automountServiceAccountToken": True}, "merge-patch"),
    ("ServiceAccount", {"automountServiceAccountToken": None}, "merge-patch"),
    ("PersistentVolumeClaim", {"metadata": {"labels": {"engine-test": None}}}, "merge-patch"),
    ("Role", {"rules": []}, "merge-patch"),
    (
        "Role",
        {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}]},
        "merge-patch",
    ),
    ("RoleBinding", {"subjects": None}, "merge-patch"),
    ("ClusterRole", {"rules": None}, "merge-patch"),
    ("Service", {"spec": {"selector": {"app": "evil"}}}, "merge-patch"),
    ("Service", {"spec": {"selector": {"more": "evil"}}}, "merge-patch"),
    ("Service", {"spec": {"externalIPs": ["192.0.2.1"]}}, "merge-patch"),
    ("Service", {"spec": {"ports": [{"port": 99, "name": "z"}]}}, "strategic-merge-patch"),
    ("Deployment", {"spec": {"replicas": 0}}, "merge-patch"),
    ("Deployment", {"spec": {"revisionHistoryLimit": 3}}, "merge-patch"),
    ("NetworkPolicy", {"spec": {"ingress": None}}, "merge-patch"),
    ("NetworkPolicy", {"spec": {"ingress": [{}]}}, "merge-patch"),
    ("NetworkPolicy", {"spec": {"egress": [{}]}}, "merge-patch"),
    ("NetworkPolicy", {"spec": {"podSelector": {"matchLabels": {"a": "b"}}}}, "merge-patch"),
    ("PodDisruptionBudget", {"spec": {"minAvailable": 0}}, "merge-patch"),
    ("PriorityClass", {"description": "by hand"}, "merge-patch"),
    ("CustomResourceDefinition", {"metadata": {"labels": None}}, "merge-patch"),
]
IN_POD: list[Any] = [
    {"hostNetwork": True},
    {"automountServiceAccountToken": None},
    {"serviceAccountName": "other"},
    {"priorityClassName": "system-node-critical"},
    {"terminationGracePeriodSeconds": 5},
    {"nodeSelector": {"other": "x"}},
    {"securityContext": {"runAsNonRoot": None}},
    {"securityContext": {"runAsUser": 0}},
    {"resources": {"limits": {"memory": "2Gi"}}},
    {"containers": [{"name": "main", "image": "evil:1"}]},
    {"containers": [{"name": "evil", "image": "e"}]},
    {"containers": [{"name": "worker", "$patch": "delete"}]},
    {"containers": [{"name": "worker", "command": ["c"]}]},
    {"containers": [{"name": "worker", "args": ["c"]}]},
    {"containers": [{"name": "main", "env": [{"name": "A", "value": "2"}]}]},
    {"containers": [{"name": "main", "env": [{"name": "EVIL", "value": "2"}]}]},
    {"containers": [{"name": "main", "env": [{"name": "B", "$patch": "delete"}]}]},
    {"containers": [{"name": "main", "resources": {"limits": {"memory": "512Mi"}}}]},
    {"containers": [{"name": "main", "resources": {"limits": {"memory": "513Mi"}}}]},
    {"containers": [{"name": "main", "resources": {"requests": {"cpu": "0.05"}}}]},
    {"containers": [{"name": "main", "readinessProbe": {"periodSeconds": 3}}]},
    {"containers": [{"name": "main", "readinessProbe": None}]},
    {"containers": [{"name": "main", "securityContext": {"privileged": True}}]},
    {"containers": [{"name": "main", "securityContext": {"capabilities": {"drop": None}}}]},
    {"volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "2Gi"}}]},
    {"volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": None}}]},
    {"volumes": [{"name": "data", "emptyDir": {"medium": "Memory"}}]},
    {"volumes": [{"name": "evil", "hostPath": {"path": "/"}}]},
    {"volumes": [{"name": "access", "projected": {"defaultMode": 256}}]},
]
IN_THE_WAY: list[dict[str, Any]] = [
    {"replicas": 1, "strategy": {"type": "RollingUpdate"}},
    *(
        {"template": {"spec": body}}
        for body in list[dict[str, Any]](
            (
                {"volumes": [{"name": "data", "emptyDir": None, "hostPath": {"path": "/"}}]},
                {"volumes": [{"name": "runtime", "image": None, "emptyDir": {}}]},
                {
                    "containers": [
                        {
                            "name": "main",
                            "readinessProbe": {"httpGet": None, "exec": {"command": ["x"]}},
                        }
                    ]
                },
                {
                    "containers": [
                        {
                            "name": "main",
                            "env": [
                                {
                                    "name": "A",
                                    "value": None,
                                    "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}},
                                }
                            ],
                        }
                    ]
                },
                {
                    "containers": [
                        {
                            "name": "main",
                            "env": [{"name": "B", "value": "by hand", "valueFrom": None}],
                        }
                    ]
                },
            )
        )
    ),
]
"""Edits beside which the API would not take the wanted value: what is more must go first."""
MANAGERS = (OTHER, "kubectl-edit", "jr2", "kube-controller-manager")


@pytest.mark.parametrize("edit", IN_THE_WAY, ids=lambda edit: json.dumps(edit)[-40:])
def test_what_stands_in_the_way_of_a_wanted_value_goes_first(cluster: Cluster, edit: Any) -> None:
    cluster.change(named(cluster, "Deployment"), {"spec": edit}, kind="strategic-merge-patch")

    assert len(cluster.heal_more()) == 1
    assert [step.resource for step in cluster.engine().changed] == ["deployment-deployment"]
    cluster.proved()


def edit_at_random(cluster: Cluster, chance: random.Random) -> str | None:
    """Do one edit as somebody might; return what it was, or `None` when the API refused it."""
    manager = chance.choice(MANAGERS)
    if chance.random() < 0.06:
        obj = chance.choice([o for o in cluster.objects if o["kind"] not in {"Namespace"}])
        if obj["kind"] not in {"PersistentVolumeClaim", "CustomResourceDefinition"}:
            cluster.delete(obj)
            return f"deleted {obj['kind']}"
        return None
    if chance.random() < 0.12:
        # Another manager applies the very same values: nothing differs, and they have two owners.
        obj = chance.choice([o for o in cluster.objects if "spec" in o or "data" in o])
        part = "data" if "data" in obj else "spec"
        body = {key: obj[key] for key in ("apiVersion", "kind", part)}
        body["metadata"] = {"name": obj["metadata"]["name"]}
        done = cluster.patch(obj, body, kind="apply-patch", manager="co-owner", force="true")
        return f"{obj['kind']} applied by co-owner" if done.is_success else None
    if chance.random() < 0.5:
        kind = chance.choice(["Deployment", "StatefulSet", "DaemonSet"])
        body = {"spec": {"template": {"spec": chance.choice(IN_POD)}}}
        how = "strategic-merge-patch"
    else:
        kind, body, how = chance.choice(EDITS)
    done = cluster.patch(named(cluster, kind), body, kind=how, manager=manager)
    return f"{kind} {json.dumps(body)} by {manager}" if done.is_success else None


@pytest.mark.parametrize("seed", range(3))
def test_proved_exactly_when_the_engine_says_same_and_nothing_is_more(
    cluster: Cluster, seed: int
) -> None:
    """Random edits: proof and engine name the same resources, and one heal brings all back."""
    chance = random.Random(seed)
    for _ in range(3):
        done = [
            edit for _ in range(chance.randint(1, 12)) if (edit := edit_at_random(cluster, chance))
        ]
        live = cluster.live()
        found = {d.resource: d.operation for d in differences(cluster.program(), live)}

        said = {
            step.resource: step.operation
            for step in cluster.engine(live=live, preview=True).changed
        }

        assert said == found, "\n".join(done)
        cluster.heal_more()
        cluster.engine()
        cluster.proved()


def test_the_words_of_the_api_are_one_readable_error(cluster: Cluster) -> None:
    wanted = copy.deepcopy(cluster.objects)
    service = next(obj for obj in wanted if obj["kind"] == "Service")
    service["spec"]["ports"][0]["port"] = 99999

    with pytest.raises(StepFailed) as caught:
        cluster.engine(cluster.program(wanted))

    text = str(caught.value)
    assert text.startswith(f"cannot apply Service {cluster.namespace}/service: ")
    assert "must be between 1 and 65535" in text
    assert "\n" not in text
    assert "Traceback" not in text


def test_an_error_of_a_dynamic_provider_is_printed_as_it_was_written(cluster: Cluster) -> None:
    step = DynamicResource(
        name="preflight",
        kind="ProviderPreflight",
        inputs={"models": "some/model"},
        derived=None,
        component="part",
    )

    with pytest.raises(StepFailed) as caught:
        cluster.engine(cluster.program(steps=[step]))

    assert caught.value.printed == "error: this Kit cannot check a model yet: some/model"


def test_a_step_that_stands_is_same_and_says_its_lines(cluster: Cluster) -> None:
    step = DynamicResource(
        name="preflight",
        kind="ProviderPreflight",
        inputs={"models": "some/model"},
        derived={"models": "some/model"},
        component="part",
        unchanged=("preflight: stands",),
    )
    reporter = Reporter()

    result = cluster.engine(cluster.program(steps=[step]), reporter=reporter)

    assert {outcome.operation for outcome in result.steps} == {"same"}
    assert reporter.lines == ["part: reached", "preflight: stands"]


def test_no_value_of_a_secret_is_in_the_folder_of_a_run(cluster: Cluster, tmp_path: Path) -> None:
    """Read again and again while the engine creates and updates Secrets."""
    wanted = copy.deepcopy(cluster.objects)
    secret = next(obj for obj in wanted if obj["kind"] == "Secret")
    secret["data"]["new"] = base64.b64encode(f"{CANARY}-new".encode()).decode()
    wanted.append({**copy.deepcopy(secret), "metadata": {**secret["metadata"], "name": "second"}})
    over, seen, files = threading.Event(), list[str](), set[str]()

    def read_all() -> None:
        while not over.is_set():
            for path in (Path(top, name) for top, _, names in os.walk(tmp_path) for name in names):
                try:
                    content = b"" if path.is_symlink() else path.read_bytes()
                except OSError:
                    continue
                files.add(path.name)
                text = content.decode("utf-8", "replace")
                seen.extend(f"{path}: {word}" for word in (CANARY, CODED[:16]) if word in text)

    reader = threading.Thread(target=read_all)
    reader.start()
    try:
        cluster.engine(cluster.program(wanted), folder_root=tmp_path)
    finally:
        over.set()
        reader.join()

    assert "engine-test.0123456789ab.json" in files
    assert seen == []
    assert list(tmp_path.iterdir()) == []
    cluster.delete(wanted[-1])
    cluster.change(named(cluster, "Secret"), {"data": {"new": None}}, manager="jr2")


RUN = """
import json, sys
from pathlib import Path
from jr2_infra import kube
from jr2_infra.engine.run import run_engine
from jr2_infra.resources import Component, KubernetesResource, Program
from jr2_infra.tooling import Tooling

spec = json.loads(sys.stdin.read())

class Reporter:
    def line(self, text, *, code="line"): pass
    def warning(self, text, *, code="warning"): pass
    def progress(self, text): pass

def started(session, start, mark):
    print(json.dumps([session, start, mark]), flush=True)

run_engine(
    Program(
        project="jr2", stack="engine-test.0123456789ab",
        components=(Component(name="part", type="Part"),),
        resources=tuple(
            KubernetesResource(name=f"map-{at}", object=obj, component="part")
            for at, obj in enumerate(spec["objects"])
        ),
    ),
    {},
    tooling=Tooling(**{name: Path(path) for name, path in spec["tooling"].items()}),
    kubeconfig_text=kube.load_context(spec["context"]).kubeconfig_text(),
    run_settings={}, reporter=Reporter(), started=started, folder_root=Path(spec["folder"]),
)
"""


class Running:
    """A command with an engine in the middle of its run."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.maps = [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": f"map-{at}",
                    "namespace": cluster.namespace,
                    "annotations": ANNOTATIONS,
                },
                "data": {"a": "b"},
            }
            for at in range(150)
        ]
        tooling = cluster.tooling
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(RUN)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        json.dump(
            {
                "objects": self.maps,
                "context": cluster.context.name,
                "folder": str(folder),
                "tooling": {
                    "pulumi": str(tooling.pulumi),
                    "kubernetes_plugin": str(tooling.kubernetes_plugin),
                    "kubectl": str(tooling.kubectl),
                },
            },
            self.process.stdin,
        )
        self.process.stdin.close()
        self.session, self.start, self.mark = json.loads(self.process.stdout.readline())
        until = time.monotonic() + 60
        # In the middle: minder, engine and plugin run, and some of the objects exist.
        while len(minder.session_members(self.session)) < 3 or not cluster.get(self.maps[0]):
            assert time.monotonic() < until
            time.sleep(0.02)

    def members(self) -> list[int]:
        return minder.session_members(self.session)

    def end(self) -> None:
        assert self.process.stdout is not None
        self.process.kill()
        self.process.stdout.close()
        self.process.wait()
        process_table.end_left_over(self.session, self.start, self.mark)


def test_a_killed_run_leaves_no_process_and_its_folder_goes_unread(
    cluster: Cluster, tmp_path: Path
) -> None:
    """4a and 4e: kill -9 of the command in the middle; the next run adopts what is there."""
    running = Running(cluster, tmp_path)
    try:
        running.process.send_signal(signal.SIGKILL)
        until = time.monotonic() + 1.5
        while running.members() and time.monotonic() < until:
            time.sleep(0.01)
        assert running.members() == []
        (left,) = tmp_path.iterdir()
        (
            left / "state" / ".pulumi" / "stacks" / "jr2" / "engine-test.0123456789ab.json"
        ).write_text('{"version": 3, "checkpoint": {"half')
    finally:
        running.end()

    objects = [named(cluster, "Namespace"), *running.maps]
    program, live = cluster.program(objects), cluster.live(objects)
    existed = {key for key in live if key.kind == "ConfigMap"}
    cluster.engine(program, live, folder_root=tmp_path)

    assert existed
    assert list(tmp_path.iterdir()) == []
    after = cluster.live(objects)
    assert differences(program, after) == []
    for key in existed:
        versions = [found[key]["metadata"]["resourceVersion"] for found in (live, after)]
        assert versions[0] == versions[1]
    cluster.http.request(
        "DELETE",
        f"/api/v1/namespaces/{cluster.namespace}/configmaps",
        params={"labelSelector": "!engine-test"},
    )


def test_an_interrupt_ends_everything_within_two_seconds(cluster: Cluster, tmp_path: Path) -> None:
    """4f."""
    running = Running(cluster, tmp_path)
    try:
        began = time.monotonic()
        running.process.send_signal(signal.SIGINT)
        running.process.wait(timeout=10)
        assert time.monotonic() - began < 2
        assert running.members() == []
        assert list(tmp_path.iterdir()) == []
    finally:
        running.end()
        cluster.http.request(
            "DELETE",
            f"/api/v1/namespaces/{cluster.namespace}/configmaps",
            params={"labelSelector": "!engine-test"},
        )


def test_the_lease_on_a_real_server(cluster: Cluster) -> None:
    """4b and 4g with the system's own clock."""
    first = ConvergeLease(cluster.http, cluster.namespace)
    with first.held(Reporter()):
        began = time.monotonic()
        with pytest.raises(StepFailed, match="another `jr2 up` converges namespace"):
            ConvergeLease(cluster.http, cluster.namespace).acquire(Reporter())
        assert time.monotonic() - began <= 5
    assert nonce_of(cluster.http, cluster.namespace) is None

    left = ConvergeLease(cluster.http, cluster.namespace)
    left.acquire(Reporter())
    reporter, began = Reporter(), time.monotonic()
    second = ConvergeLease(cluster.http, cluster.namespace)
    second.acquire(reporter)
    assert time.monotonic() - began <= 6
    assert len(reporter.lines) == 1
    assert second.stamp.acquired > left.stamp.acquired > first.stamp.acquired
    assert not left.renew()
    second.release()
