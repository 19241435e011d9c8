"""Each kind and each field that jr2 applies, changed by another manager on a real API server.

Edits are dry runs: the server answers the object that it would store, with its `managedFields`, and
stores nothing, so each edit meets the converged object.

Source: design §5.2 (Derived state, Nothing more).
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Container, Iterator, Mapping
from typing import Any

import httpx2
import pytest

from jr2_infra import closed_list
from jr2_infra.api import Api
from jr2_infra.derived import differences, key_of, live_objects, nothing_more
from jr2_infra.derived.fields import Path, live_path
from jr2_infra.derived.more.server_defaults import KINDS
from jr2_infra.derived.more.walk import MERGE_KEYS
from jr2_infra.resources import Component, KubernetesResource, Program
from tests.apiserver.derived.conftest import apply_all, wanted_objects, world_of
from tests.apiserver.server import ApiServer

OTHER = "some-other-tool"
NAME = "fields"


class Applied:
    """The objects of an Instance on a server, each as it is wanted and as it lives."""

    def __init__(self, server: ApiServer, http: httpx2.Client) -> None:
        self.server = server
        self._http = http
        self.wanted = {key_of(obj): obj for obj in wanted_objects(world_of(server, NAME))}
        apply_all(server, list(self.wanted.values()))
        api = Api(http)
        self.live = {key: api.get(path_of(obj)) for key, obj in self.wanted.items()}

    def edited(self, obj: Mapping[str, Any], body: Any, how: str) -> dict[str, Any] | None:
        """Return what the server would store; `None` when it refuses the edit."""
        answer = self._http.patch(
            path_of(obj),
            params={"fieldManager": OTHER, "dryRun": "All"},
            content=json.dumps(body),
            headers={"Content-Type": f"application/{how}+json"},
        )
        if answer.is_success:
            found: dict[str, Any] = answer.json()
            return found
        assert answer.status_code in (400, 409, 422), answer.text
        return None


def path_of(obj: Mapping[str, Any]) -> str:
    metadata = obj["metadata"]
    return closed_list.kind_of(obj["kind"]).path(metadata.get("namespace"), metadata["name"])


@pytest.fixture(scope="module")
def applied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Applied]:
    server = ApiServer(tmp_path_factory.mktemp("fields"))
    try:
        server.start()
        with server.kube_context().http() as http:
            yield Applied(server, http)
    finally:
        server.stop()


def found_in(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> list[str]:
    """Return the paths that the proof names and the things that are more."""
    program = Program(
        project="jr2",
        stack="demo.0123456789ab",
        components=(Component(name="part", type="Part"),),
        resources=(KubernetesResource(name="it", object=wanted, component="part"),),
    )
    paths = [
        change.path or difference.operation
        for difference in differences(program, live_objects([live]))
        for change in difference.fields
    ]
    return paths + [str(more) for more in nothing_more(wanted, live)]


def leaves(value: Any, at: Path = ()) -> Iterator[Path]:
    """Give where each scalar stands, and each empty mapping or list."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from leaves(inner, (*at, name))
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from leaves(inner, (*at, index))
    else:
        yield at


IDENTITY: tuple[Path, ...] = (
    ("apiVersion",),
    ("kind",),
    ("metadata", "name"),
    ("metadata", "namespace"),
)
FIXED: Mapping[str, tuple[Path, ...]] = {
    "ClusterRoleBinding": (("roleRef",),),
    "CustomResourceDefinition": (("spec", "group"), ("spec", "scope"), ("spec", "names", "plural")),
    "DaemonSet": (("spec", "selector"),),
    "Deployment": (("spec", "selector"),),
    "PersistentVolumeClaim": (("spec",),),
    "PriorityClass": (("value",), ("preemptionPolicy",)),
    "RoleBinding": (("roleRef",),),
    "Secret": (("type",),),
    "StatefulSet": (
        ("spec", "selector"),
        ("spec", "serviceName"),
        ("spec", "volumeClaimTemplates"),
    ),
}
"""Fields that no manager can change, so the server refuses each edit of them."""


BOUND = re.compile(
    # Mounts name a volume, and the selector names labels: neither changes alone.
    r"volumes\.\d+\.name$|volumeMounts\.\d+\.name$|template\.metadata\.labels\.[^.]+$"
    # Versions that are stored, and schemas, have rules of their own.
    r"|CustomResourceDefinition .*: spec\.(names\.kind|versions\.\d+\.(name|storage|schema\.))"
)
"""Fields of which no edit that stands alone is taken."""


def is_below(path: Path, tops: tuple[Path, ...]) -> bool:
    return any(path[: len(top)] == top for top in tops)


def other_values(value: Any) -> Iterator[Any]:
    """Give values that another manager might write instead."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
        yield max(value - 1, 1)
    elif isinstance(value, str):
        yield from _other_words(value)
    elif isinstance(value, dict):
        yield {"other": "x"}
    elif isinstance(value, list):
        yield ["other"]


def _other_words(value: str) -> Iterator[str]:
    enums = (
        ("TCP", "UDP"),
        ("IfNotPresent", "Always"),
        ("Recreate", "RollingUpdate"),
        ("File", "FallbackToLogsOnError"),
        ("RuntimeDefault", "Unconfined"),
        ("ClusterIP", "NodePort"),
        ("Ingress", "Egress"),
        ("ServiceAccount", "User"),
        ("Exists", "DoesNotExist"),
        ("ReadWriteOnce", "ReadOnlyMany"),
        ("Fail", "Ignore"),
        ("string", "integer"),
        ("metadata.name", "metadata.uid"),
        ("metadata.namespace", "metadata.name"),
        ("date", "string"),
        ("limits.memory", "limits.cpu"),
    )
    yield from (two for one, two in enums if one == value)
    yield from (one for one, two in enums if two == value)
    yield "77Mi" if value.endswith(("Mi", "Gi")) else f"{value}x"
    yield "77m"
    yield "other"
    yield "eA=="


def test_what_was_applied_is_proved(applied: Applied) -> None:
    assert len(applied.wanted) > 20
    for key, wanted in applied.wanted.items():
        live = applied.live[key]
        assert live is not None
        assert found_in(wanted, live) == [], key


def test_each_kind_that_is_applied_is_compared(applied: Applied) -> None:
    theirs = {"Namespace", "PersistentVolumeClaim"}

    assert {key.kind for key in applied.wanted} <= KINDS.keys() | theirs
    assert not theirs & KINDS.keys()


def test_each_field_that_another_manager_changes_or_removes_is_named(applied: Applied) -> None:
    """Whatever the server stores differently is found; what it refuses cannot happen."""
    missed: list[str] = []
    refused: list[str] = []
    edits = 0
    for key, wanted in applied.wanted.items():
        live = applied.live[key]
        assert live is not None
        for path in leaves(wanted):
            if is_below(path, (*IDENTITY, *FIXED.get(key.kind, ()))):
                continue
            there = live_path(live, wanted, path)
            done = list(_edits(applied, wanted, live, there))
            edits += len(done)
            if not done:
                refused.append(f"{key.kind} {key.name}: {_text(path)}")
            missed += [
                f"{key.kind} {key.name}: {_text(path)} {what}"
                for what, answer in done
                if _said(answer) != _said(live) and not found_in(wanted, answer)
            ]

    assert missed == []
    assert edits > 300
    assert [one for one in refused if not BOUND.search(one)] == []


HANDLER = {"exec": {"command": ["evil"]}}
SAMPLES: Mapping[str, Any] = {
    "add": ["NET_ADMIN"],
    "args": ["evil"],
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "finalizers": ["evil.example/hold"],
    "httpHeaders": [{"name": "X", "value": "y"}],
    "items": [{"key": "a", "path": "a"}],
    "os": {"name": "linux"},
    "overhead": {"cpu": "1"},
    "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "evil", "uid": "evil"}],
    "preemptionPolicy": "Never",
    "resourceClaims": [{"name": "gpu", "resourceClaimName": "evil"}],
    "schedulingGroup": {"podGroupName": "evil"},
    "scheme": "HTTPS",
    "seLinuxChangePolicy": "Recursive",
    "windowsOptions": {"runAsUserName": "evil"},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "evil", "operator": "Exists"}]}]
            }
        }
    },
    "annotations": {"evil.example/inject": "true"},
    "appArmorProfile": {"type": "Unconfined"},
    "auditAnnotations": [{"key": "evil", "valueExpression": "'x'"}],
    "binaryData": {"evil": "eA=="},
    "categories": ["all"],
    "claims": [{"name": "evil"}],
    "conversion": {
        "strategy": "Webhook",
        "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://evil.example/convert"},
        },
    },
    "dnsConfig": {"nameservers": ["192.0.2.1"]},
    "dnsPolicy": "Default",
    "egress": [{}],
    "env": [{"name": "EVIL", "value": "x"}],
    "envFrom": [{"configMapRef": {"name": "evil"}}],
    "externalIPs": ["192.0.2.1"],
    "fsGroup": 0,
    "hostAliases": [{"ip": "192.0.2.1", "hostnames": ["evil"]}],
    "hostname": "evil",
    "imagePullPolicy": "Never",
    "imagePullSecrets": [{"name": "evil"}],
    "initContainers": [{"name": "evil", "image": "evil:1"}],
    "internalTrafficPolicy": "Local",
    "ipFamilyPolicy": "PreferDualStack",
    "lifecycle": {"postStart": HANDLER},
    "livenessProbe": HANDLER,
    "loadBalancerSourceRanges": ["192.0.2.0/24"],
    "mountPropagation": "HostToContainer",
    "matchExpressions": [{"key": "evil", "operator": "Exists"}],
    "matchLabels": {"evil": "x"},
    "nodeSelector": {"evil": "x"},
    "ports": [{"containerPort": 99}],
    "priorityClassName": "system-node-critical",
    "procMount": "Unmasked",
    "progressDeadlineSeconds": 700,
    "readinessGates": [{"conditionType": "evil.example/never"}],
    "readinessProbe": HANDLER,
    "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}],
    "resources": {"limits": {"memory": "1Gi"}},
    "runAsGroup": 0,
    "runAsUser": 0,
    "schedulerName": "evil",
    "seLinuxOptions": {"level": "s0:c1,c2"},
    "seccompProfile": {"type": "Unconfined"},
    "securityContext": {"privileged": True},
    "selector": {"evil": "x"},
    "sessionAffinity": "ClientIP",
    "shortNames": ["evil"],
    "startupProbe": HANDLER,
    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
    "supplementalGroups": [0],
    "supplementalGroupsPolicy": "Strict",
    "sysctls": [{"name": "net.ipv4.ip_forward", "value": "1"}],
    "terminationMessagePolicy": "FallbackToLogsOnError",
    "tolerations": [{"operator": "Exists"}],
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "x"}},
        }
    ],
    "trafficDistribution": "PreferClose",
    "fsGroupChangePolicy": "OnRootMismatch",
    "appProtocol": "http",
    "volumeDevices": [{"name": "evil", "devicePath": "/dev/evil"}],
    "workingDir": "/evil",
}
"""What another manager writes into a field that nobody wants, where a plain word is refused."""
BY_OWNER = {"ipFamilyPolicy", "matchExpressions", "matchLabels"}
"""Fields that the cluster may set itself, and parts of what is owned as a whole: of these only the
owner says that somebody wrote them."""


class _Everything:
    """Holds any name."""

    def __contains__(self, name: object) -> bool:
        return True


CANNOT: Mapping[str, str] = {
    "activeDeadlineSeconds": "of jobs only",
    "claims": "names a claim of the pod",
    "fieldRef": "one source for a variable",
    "localhostProfile": "of another type only",
    "managedFields": "kept by the server",
    "procMount": "needs a user namespace",
    "recursiveReadOnly": "needs a read-only mount",
    "restartPolicy": "always, in a template",
    "restartPolicyRules": "needs another restart policy",
    "schedulingGroup": "behind a gate that is off",
    "schedulingGates": "never part of a template",
    "serviceAccount": "follows serviceAccountName",
    "subPathExpr": "beside another path",
    "successThreshold": "one, of a liveness probe",
    "volumeDevices": "needs a claim of blocks",
    "apiVersion": "one version",
    "ephemeralContainers": "never part of a template",
    "fileKeyRef": "needs a variable without a value",
    "hostIP": "the pod is not on the host's network",
    "healthCheckNodePort": "of a load balancer only",
    "allocateLoadBalancerNodePorts": "of a load balancer only",
    "externalTrafficPolicy": "of a load balancer or node port only",
    "loadBalancerSourceRanges": "of a load balancer only",
    "loadBalancerClass": "of a load balancer only",
    "sessionAffinityConfig": "with another affinity only",
    "secrets": "theirs: no pod gets one by it",
    "stringData": "written and never stored",
    "preserveUnknownFields": "of an older version of the API",
    "deletionTimestamp": "of an object that is deleted only",
    "clusterIP": "fixed once it is given",
    "clusterIPs": "fixed once it is given",
    "ipFamilies": "fixed once it is given",
}


_HANDLERS = ("exec", "grpc", "httpGet", "tcpSocket")
ONE_OF: Mapping[str, Container[str]] = {
    "volumes": _Everything(),
    "env": ("value", "valueFrom"),
    "valueFrom": _Everything(),
    "strategy": ("rollingUpdate",),
    "startupProbe": _HANDLERS,
    "readinessProbe": _HANDLERS,
    "livenessProbe": _HANDLERS,
}
"""Fields of which the API takes one and no second: `tests/apiserver/engine` swaps each kind."""


def schema_places(
    definitions: Mapping[str, Any], name: str, wanted: Any, live: Any, at: Path
) -> Iterator[tuple[Path, str, Mapping[str, Any]]]:
    """Give each field that the server knows below a place, and that is not wanted there."""
    for field, schema in definitions[name].get("properties", {}).items():
        if field not in wanted:
            yield at, field, schema
            continue
        inner = schema.get("items", schema).get("$ref", "").removeprefix("#/definitions/")
        if not inner or "properties" not in definitions.get(inner, {}):
            continue
        if isinstance(wanted[field], dict):
            yield from schema_places(definitions, inner, wanted[field], live[field], (*at, field))
        elif isinstance(wanted[field], list) and field in MERGE_KEYS:
            for item in wanted[field]:
                index = [one["name"] for one in live[field]].index(item["name"])
                yield from schema_places(
                    definitions, inner, item, live[field][index], (*at, field, index)
                )


@pytest.mark.parametrize(
    ("kind", "definition", "least"),
    [
        ("Deployment", "io.k8s.api.apps.v1.Deployment", 150),
        ("Service", "io.k8s.api.core.v1.Service", 8),
        ("NetworkPolicy", "io.k8s.api.networking.v1.NetworkPolicy", 1),
        ("PriorityClass", "io.k8s.api.scheduling.v1.PriorityClass", 1),
        ("ServiceAccount", "io.k8s.api.core.v1.ServiceAccount", 1),
        ("ConfigMap", "io.k8s.api.core.v1.ConfigMap", 2),
        ("Secret", "io.k8s.api.core.v1.Secret", 1),
        (
            "CustomResourceDefinition",
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
            3,
        ),
    ],
)
def test_each_field_of_the_server_that_nobody_wants_is_named_when_somebody_sets_it(
    applied: Applied, kind: str, definition: str, least: int
) -> None:
    """The fields come from the server's own document, so that none is forgotten."""
    definitions = applied.server.get("/openapi/v2")["definitions"]
    missed: list[str] = []
    unowned: list[str] = []
    refused: set[str] = set()
    taken: set[str] = set()
    named = 0
    for key, wanted in applied.wanted.items():
        live = applied.live[key]
        assert live is not None
        if key.kind != kind:
            continue
        for at, field, schema in schema_places(definitions, definition, wanted, live, ()):
            if at[:1] == ("metadata",) or field == "status" or (not at and field == "metadata"):
                continue
            if is_below(at, FIXED.get(kind, ())):
                continue
            if field in ONE_OF.get(_struct(at), ()):
                continue
            text = f"{key.name}: {_text((*at, field))}"
            answers = [
                answer
                for sample in samples(field, schema)
                if (answer := applied.edited(wanted, _added(at, field, sample), "json-patch"))
                and _said(answer) != _said(live)
            ]
            (taken if answers or field in CANNOT else refused).add(field)
            for answer in answers:
                named += 1
                if not found_in(wanted, answer):
                    missed.append(text)
                forgotten = copy.deepcopy(answer)
                forgotten["metadata"]["managedFields"] = live["metadata"]["managedFields"]
                if field not in BY_OWNER and not found_in(wanted, forgotten):
                    unowned.append(text)

    assert missed == []
    assert unowned == [], "what somebody wrote is more, also when nobody is said to own it"
    assert refused - taken == set()
    assert named >= least


def _struct(at: Path) -> str:
    """Return the name under which a struct stands, also as an item of a list."""
    return next((step for step in reversed(at) if isinstance(step, str)), "")


def samples(field: str, schema: Mapping[str, Any]) -> list[Any]:
    """Return what another manager may write into a field."""
    if field in SAMPLES:
        return [SAMPLES[field]]
    if schema.get("type") == "boolean":
        return [True, False]
    if schema.get("type") == "integer":
        return [0, 5]
    return ["other"]


def _added(at: Path, field: str, sample: Any) -> list[dict[str, Any]]:
    pointer = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in at)
    return [{"op": "add", "path": f"{pointer}/{field}", "value": sample}]


def _edits(
    applied: Applied, wanted: Mapping[str, Any], live: Mapping[str, Any], there: Path
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give what the server would store after a change and after a removal of one field."""
    pointer = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in there)
    value = _at(live, there)
    for other in other_values(value):
        changed = applied.edited(
            wanted, [{"op": "replace", "path": pointer, "value": other}], "json-patch"
        )
        if changed is not None:
            yield f"changed to {other!r}", changed
            break
    removed = applied.edited(wanted, [{"op": "remove", "path": pointer}], "json-patch")
    if removed is not None:
        yield "removed", removed


def _said(obj: Mapping[str, Any]) -> Any:
    """Return what an object says, without what each write moves."""
    found = copy.deepcopy(dict(obj))
    for name in ("managedFields", "resourceVersion", "generation"):
        found["metadata"].pop(name, None)
    found.pop("status", None)
    return found


def _at(obj: Any, path: Path) -> Any:
    for step in path:
        obj = obj[step]
    return obj


def _text(path: Path) -> str:
    return ".".join(map(str, path))
