"""Derived state against a real API server: what was changed by hand, and what the engine says."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from jr2_infra import closed_list
from jr2_infra.api import Api
from jr2_infra.derived import LiveObjects, differences, key_of, settled
from jr2_infra.engine.run import EngineResult
from jr2_infra.resources import Program
from tests.apiserver.engine.conftest import Cluster
from tests.apiserver.server import ApiServer


def resource_of(obj: Mapping[str, Any]) -> str:
    return f"{obj['kind'].lower()}-{obj['metadata']['name']}"


def test_a_second_run_is_proved_and_the_engine_agrees(cluster: Cluster) -> None:
    reporter = cluster.reporter()

    cluster.proved()
    result = cluster.engine(reporter=reporter)

    assert {step.operation for step in result.steps} == {"same"}
    assert len(result.steps) == len(cluster.objects)
    assert reporter.lines == ["part: reached"]


def test_what_was_changed_by_hand_is_exactly_what_is_healed(cluster: Cluster) -> None:
    deployment, role = cluster.named("Deployment"), cluster.named("Role")
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
    cluster.change(cluster.named("ConfigMap"), {"data": {"a.json": "{1}"}})
    cluster.change(role, {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]})
    cluster.delete(cluster.named("Secret"))
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
        cluster.named("Deployment"),
        {
            "spec": {
                "template": {
                    "spec": {"hostPID": True, "containers": [{"name": "evil", "image": "e"}]}
                }
            }
        },
        kind="strategic-merge-patch",
    )
    cluster.change(cluster.named("Secret"), {"data": {"extra": "eA=="}})

    assert differences(cluster.program(), cluster.live()) == []
    assert {step.operation for step in cluster.engine(preview=True).steps} == {"same"}
    assert sorted(cluster.heal_more()) == [
        f'Secret key "extra", put there by "{cluster.other}"',
        f'container "evil", put there by "{cluster.other}"',
        f'hostPID, put there by "{cluster.other}"',
    ]
    cluster.proved()


def test_what_makes_a_pod_do_more_is_named_and_taken_away(cluster: Cluster) -> None:
    cluster.change(
        cluster.named("Deployment"),
        {
            "spec": {
                "template": {
                    "spec": {
                        "hostAliases": [{"ip": "192.0.2.1", "hostnames": ["evil"]}],
                        "imagePullSecrets": [{"name": "evil"}],
                        "dnsConfig": {"nameservers": ["192.0.2.1"]},
                        "tolerations": [{"operator": "Exists"}],
                        "runtimeClassName": "evil",
                        "nodeName": "evil",
                        "containers": [
                            {
                                "name": "main",
                                "ports": [
                                    {"containerPort": 4000, "hostPort": 4000},
                                    {"containerPort": 99, "hostPort": 99},
                                ],
                            }
                        ],
                    }
                }
            }
        },
        kind="strategic-merge-patch",
    )
    cluster.change(cluster.named("ServiceAccount"), {"imagePullSecrets": [{"name": "evil"}]})

    words = [
        "dnsConfig",
        'host alias "192.0.2.1"',
        'hostPort of port 4000/TCP of container "main"',
        'image pull secret "evil"',
        "nodeName",
        'port 99/TCP of container "main"',
        "runtimeClassName",
        "toleration",
    ]
    assert sorted(cluster.heal_more()) == [
        f'{word}, put there by "{cluster.other}"' for word in words
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
    deployment = cluster.named("Deployment")
    scale = {"spec": {"replicas": 3}}
    cluster.change(deployment, scale, manager="kube-controller-manager", subresource="/scale")
    restarted = {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}
    cluster.change(deployment, {"spec": {"template": {"metadata": {"annotations": restarted}}}})
    cluster.change(cluster.named("ConfigMap"), {"data": {"n": "2"}})

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
    ("ServiceAccount", {"imagePullSecrets": [{"name": "evil"}]}, "merge-patch"),
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
    {"hostAliases": [{"ip": "192.0.2.1", "hostnames": ["evil"]}]},
    {"imagePullSecrets": [{"name": "evil"}]},
    {"dnsConfig": {"nameservers": ["192.0.2.1"]}},
    {"dnsPolicy": "Default"},
    {"tolerations": [{"operator": "Exists"}]},
    {"runtimeClassName": "evil"},
    {"nodeName": "evil"},
    {"schedulerName": "evil"},
    {"containers": [{"name": "main", "ports": [{"containerPort": 4000, "hostPort": 4000}]}]},
    {"containers": [{"name": "main", "ports": [{"containerPort": 99, "hostPort": 99}]}]},
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
MANAGERS = ("some-other-tool", "kubectl-edit", "jr2", "kube-controller-manager")


def test_what_stands_in_the_way_of_a_wanted_value_goes_first(cluster: Cluster) -> None:
    """Each edit in a Deployment of its own."""
    deployments = []
    for number, edit in enumerate(IN_THE_WAY):
        obj = copy.deepcopy(cluster.named("Deployment"))
        obj["metadata"]["name"] = f"way-{number}"
        Api(cluster.http).apply(closed_list.DEPLOYMENT, obj)
        cluster.change(obj, {"spec": edit}, kind="strategic-merge-patch")
        deployments.append(obj)

    for obj, edit in zip(deployments, IN_THE_WAY, strict=True):
        assert len(cluster.heal_more([obj])) == 1, edit
    wanted = [cluster.named("Namespace"), *deployments]
    result = cluster.engine(cluster.program(wanted), cluster.live(wanted))

    assert sorted((step.resource, step.operation) for step in result.changed) == [
        (resource_of(obj), "update") for obj in deployments
    ]
    cluster.proved(wanted)
    for obj in deployments:
        cluster.delete(obj)


def test_a_port_of_a_service_that_was_changed_is_set_back(cluster: Cluster) -> None:
    """The API takes no Service without a port, and no two ports of one name."""
    service = cluster.named("Service")
    for field, value in (("port", 77), ("protocol", "SCTP")):
        edit = [{"op": "replace", "path": "/spec/ports/0/" + field, "value": value}]
        cluster.change(service, edit, kind="json-patch", manager="kubectl-edit")
        assert len(cluster.heal_more()) == 1
        cluster.engine()
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
        # The claims of a StatefulSet cannot change hands: such a one is made anew (`immutable`).
        kinds = [o for o in cluster.objects if o["kind"] != "StatefulSet"]
        obj = chance.choice([o for o in kinds if "spec" in o or "data" in o])
        part = "data" if "data" in obj else "spec"
        body = {key: obj[key] for key in ("apiVersion", "kind", part)}
        body["metadata"] = {"name": obj["metadata"]["name"]}
        done = cluster.patch(obj, body, kind="apply-patch", manager="co-owner", force="true")
        assert done.is_success, done.text
        return f"{obj['kind']} applied by co-owner"
    if chance.random() < 0.5:
        kind = chance.choice(["Deployment", "StatefulSet", "DaemonSet"])
        body = {"spec": {"template": {"spec": chance.choice(IN_POD)}}}
        how = "strategic-merge-patch"
    else:
        kind, body, how = chance.choice(EDITS)
    done = cluster.patch(cluster.named(kind), body, kind=how, manager=manager)
    return f"{kind} {json.dumps(body)} by {manager}" if done.is_success else None


class Three:
    """Three namespaces of one program."""

    def __init__(self, server: ApiServer) -> None:
        with contextlib.ExitStack() as made:
            self.clusters = [
                made.enter_context(Cluster(server, f"edited-{name}", prefix=f"{name}-"))
                for name in "abc"
            ]
            self._made = made.pop_all()

    def __enter__(self) -> Three:
        return self

    def __exit__(self, *_: object) -> None:
        self._made.close()

    def program(self) -> Program:
        programs = [cluster.program() for cluster in self.clusters]
        return replace(
            programs[0], resources=tuple(one for each in programs for one in each.resources)
        )

    def live(self) -> LiveObjects:
        return {key: obj for cluster in self.clusters for key, obj in cluster.live().items()}

    def engine(self, live: LiveObjects, *, preview: bool = False) -> EngineResult:
        return self.clusters[0].engine(self.program(), live, preview=preview)

    def settle(self) -> None:
        for cluster in self.clusters:
            cluster.heal_more()
        live = self.live()
        if differences(self.program(), live):
            self.engine(live)
        for cluster in self.clusters:
            cluster.proved()


@pytest.fixture(scope="module")
def three(api_server: ApiServer) -> Iterator[Three]:
    """Three of every object, so that one run of the engine judges three times the edits."""
    with Three(api_server) as made:
        yield made


@pytest.mark.parametrize("seed", range(3))
def test_proved_exactly_when_the_engine_says_same_and_nothing_is_more(
    three: Three, seed: int
) -> None:
    """Random edits: proof and engine name the same resources, and one heal brings all back."""
    three.settle()
    chance = random.Random(seed)
    done = [
        f"{cluster.namespace}: {edit}"
        for cluster in three.clusters
        for _ in range(chance.randint(1, 12))
        if (edit := edit_at_random(cluster, chance))
    ]
    live = three.live()
    found = {d.resource: d.operation for d in differences(three.program(), live)}

    said = {step.resource: step.operation for step in three.engine(live, preview=True).changed}

    assert said == found, "\n".join(done)
    for cluster in three.clusters:
        cluster.heal_more()
    three.engine(three.live())
    for cluster in three.clusters:
        cluster.proved()
