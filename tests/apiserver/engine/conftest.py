"""A namespace of its own with one object of each kind, and the real engine over them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import httpx2
import pytest

from jr2_cli import tools
from jr2_infra.derived import differences, healing, key_of, live_objects, nothing_more
from jr2_infra.derived.live import LiveObject, LiveObjects
from jr2_infra.engine.run import EngineResult, run_engine
from jr2_infra.resources import Component, DynamicResource, KubernetesResource, Program
from jr2_infra.tooling import Tooling
from tests.apiserver.server import ApiServer
from tests.reporter import Reporter
from tests.waiting import LIMIT, wait_for

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


class Cluster:
    """A namespace of its own, the objects in it and the engine over them.

    Args:
        server: the server.
        namespace: the namespace; the engine makes it.
        prefix: stands before the names of the resources, when a program holds several of these.
    """

    def __init__(self, server: ApiServer, namespace: str, prefix: str = "") -> None:
        self.prefix = prefix
        self.server = server
        self.context = server.kube_context()
        self.kubeconfig = server.kubeconfig
        self.namespace = namespace
        self.tooling = Tooling(
            pulumi=tools.require("pulumi"),
            kubernetes_plugin=tools.require("pulumi-resource-kubernetes"),
            kubectl=tools.require("kubectl"),
        )
        self.objects = sample(namespace)
        self.annotations = ANNOTATIONS
        self.canary, self.coded = CANARY, CODED
        self.other = OTHER
        self.http = self.context.http(timeout=LIMIT)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def named(self, kind: str) -> dict[str, Any]:
        """Return the wanted object of a kind."""
        return next(obj for obj in self.objects if obj["kind"] == kind)

    def reporter(self) -> Reporter:
        """Return a reporter that keeps its lines."""
        return Reporter(warns=True)

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
            # What is applied is YAML, of which JSON is a part.
            headers={
                "Content-Type": f"application/{kind}+{'yaml' if kind == 'apply-patch' else 'json'}"
            },
        )

    def change(self, obj: Mapping[str, Any], body: Any, **how: Any) -> None:
        response = self.patch(obj, body, **how)
        assert response.is_success, response.text

    def delete(self, obj: Mapping[str, Any]) -> None:
        response = self.http.request(
            "DELETE", self.path(obj), json={"propagationPolicy": "Background"}
        )
        assert response.status_code in (200, 202, 404), response.text
        if obj["kind"] != "Namespace":
            wait_for(
                f"{obj['kind']} is gone",
                lambda: self.http.get(self.path(obj)).status_code == 404,
            )

    def program(
        self,
        objects: Sequence[Mapping[str, Any]] | None = None,
        steps: Sequence[DynamicResource] = (),
    ) -> Program:
        wanted = self.objects if objects is None else objects
        name_of = {
            key_of(obj): f"{self.prefix}{obj['kind'].lower()}-{obj['metadata']['name']}"
            for obj in wanted
        }
        first = f"{self.prefix}namespace-{self.namespace}"
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
            reporter=reporter or Reporter(warns=True),
            preview=preview,
            surplus=surplus,
            **more,
        )

    def heal_more(self, objects: Sequence[Mapping[str, Any]] | None = None) -> list[str]:
        said: list[str] = []
        for obj in self.objects if objects is None else objects:
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

    def proved(self, objects: Sequence[Mapping[str, Any]] | None = None) -> None:
        wanted = self.objects if objects is None else objects
        live = self.live(wanted)
        assert differences(self.program(wanted), live) == []
        for obj in wanted:
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


@pytest.fixture(scope="session")
def whole(api_server: ApiServer) -> Iterator[Cluster]:
    """Every object, converged once."""
    with Cluster(api_server, "engine-test") as cluster:
        created = cluster.engine()
        assert {step.operation for step in created.steps} == {"create"}
        assert len(created.steps) == len(cluster.objects)
        yield cluster


@pytest.fixture
def cluster(whole: Cluster) -> Cluster:
    whole.settle()
    return whole
