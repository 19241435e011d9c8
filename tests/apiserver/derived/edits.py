"""Edits that another manager may make of an object: of what is wanted, and of what is not.

The values are such that an API server takes most of them; it says itself which it refuses.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

from jr2_infra import closed_list
from jr2_infra.derived.fields import Path
from jr2_infra.derived.more.walk import MERGE_KEYS


def path_of(obj: Mapping[str, Any]) -> str:
    metadata = obj["metadata"]
    return closed_list.kind_of(obj["kind"]).path(metadata.get("namespace"), metadata["name"])


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
        ("boolean", "string"),
        ("object", "array"),
        ("map", "atomic"),
        ("metadata.name", "metadata.uid"),
        ("metadata.namespace", "metadata.name"),
        ("date", "string"),
        ("limits.memory", "limits.cpu"),
    )
    yield from (two for one, two in enums if one == value)
    yield from (one for one, two in enums if two == value)
    if value in _NO_FREE_WORD:
        return
    yield "77Mi" if value.endswith(("Mi", "Gi")) else f"{value}x"
    yield "77m"
    yield "other"
    yield "eA=="


_NO_FREE_WORD = frozenset({"string", "integer", "boolean", "object", "array", "map", "atomic"})
"""Types of schemas: the API knows no others."""


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
    "data": {"evil": "eA=="},
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


class _Everything:
    """Holds any name."""

    def __contains__(self, name: object) -> bool:
        return True


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


def struct_at(at: Path) -> str:
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


def added(at: Path, field: str, sample: Any) -> list[dict[str, Any]]:
    return [{"op": "add", "path": pointer((*at, field)), "value": sample}]


def value_at(obj: Any, path: Path) -> Any:
    for step in path:
        obj = obj[step]
    return obj


def pointer(path: Path) -> str:
    """Return a path as JSON patches spell it."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
