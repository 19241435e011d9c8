"""The Instance Effector: the pod that runs the Effects which read no file of a Worktree.

It holds the Effect secrets that those Effects name, and the key that it shares with the
Orchestrator; nothing else of the Instance. No Agent executes anything in it.

Source: spec/converge.md §5.8, spec/runtime.md §4, ADR-0159.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jr2 import names, signed
from jr2.config import SecretKeyRef

from ..closed_list import DEPLOYMENT, NETWORK_POLICY, SECRET, SERVICE
from .base import RESTRICTED, TMP_PATH, encoded, instance_labels, live_probe, ready_probe, wanted

_VALUES = "values"
_SELECTOR = {names.LABEL_APP: names.INSTANCE_EFFECTOR}


def secret(instance: str, namespace: str, *, key: str) -> dict[str, Any]:
    """Return the wanted Secret with the key that the Effector shares with the Orchestrator.

    Args:
        instance: the Instance.
        namespace: its namespace.
        key: of this placement, as `signed.effector_key` gives it.
    """
    return wanted(
        SECRET,
        names.INSTANCE_EFFECTOR,
        namespace=namespace,
        labels=instance_labels(instance),
        type="Opaque",
        data=encoded({names.FILE_SIGNING_KEY: key}),
    )


def key_of(signing_key: str) -> str:
    """Return the key of this placement.

    Args:
        signing_key: the Instance's, as its Secret holds it.
    """
    return signed.effector_key(signed.read_key(signing_key), names.INSTANCE_EFFECTOR)


def policy(instance: str, namespace: str) -> dict[str, Any]:
    """Return the wanted NetworkPolicy: the Orchestrator comes in, and nobody else."""
    orchestrator = {names.LABEL_APP: names.ORCHESTRATOR, names.LABEL_INSTANCE: instance}
    return wanted(
        NETWORK_POLICY,
        names.INSTANCE_EFFECTOR_INGRESS,
        namespace=namespace,
        labels=instance_labels(instance),
        spec={
            "podSelector": {"matchLabels": dict(_SELECTOR)},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": {"matchLabels": orchestrator}}]}],
        },
    )


def service(instance: str, namespace: str) -> dict[str, Any]:
    """Return the wanted Service."""
    return wanted(
        SERVICE,
        names.INSTANCE_EFFECTOR,
        namespace=namespace,
        labels=instance_labels(instance),
        spec={
            "type": "ClusterIP",
            "selector": dict(_SELECTOR),
            "ports": [
                {
                    "name": "http",
                    "port": names.EFFECTOR_PORT,
                    "targetPort": names.EFFECTOR_PORT,
                    "protocol": "TCP",
                }
            ],
        },
    )


def deployment(
    instance: str,
    namespace: str,
    *,
    image: str,
    kit_version: str,
    priority_class: str,
    values_digest: str,
    literal: Sequence[str],
    referenced: Mapping[str, SecretKeyRef],
) -> dict[str, Any]:
    """Return the wanted Deployment.

    Args:
        instance: the Instance.
        namespace: its namespace.
        image: the Kit image of the Harness, which holds the Effector too.
        kit_version: what the Deployment says it is.
        priority_class: the class of control pods.
        values_digest: of the values that the Effector reads once, at its start.
        literal: the names of the Effect secrets whose values the config gives.
        referenced: by name, the Effect secrets that a Secret of the user's holds.
    """
    labels = instance_labels(instance)
    return wanted(
        DEPLOYMENT,
        names.INSTANCE_EFFECTOR,
        namespace=namespace,
        labels={**labels, names.LABEL_VERSION: kit_version},
        spec={
            "replicas": 1,
            # Two of them would keep two journals of what was done.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": dict(_SELECTOR)},
            "template": {
                "metadata": {
                    "labels": {**labels, **_SELECTOR},
                    "annotations": {names.ANNOTATION_VALUES_DIGEST: values_digest},
                },
                "spec": {
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "priorityClassName": priority_class,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": names.EFFECTOR_UID,
                        "runAsGroup": names.EFFECTOR_UID,
                        "fsGroup": names.EFFECTOR_UID,
                        "fsGroupChangePolicy": "OnRootMismatch",
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [_effector(image)],
                    "volumes": [
                        _values_volume(literal, referenced),
                        {"name": "tmp", "emptyDir": {"sizeLimit": "256Mi"}},
                    ],
                },
            },
        },
    )


def _values_volume(
    literal: Sequence[str], referenced: Mapping[str, SecretKeyRef]
) -> dict[str, Any]:
    sources = [_source(names.INSTANCE_EFFECTOR, names.FILE_SIGNING_KEY, names.FILE_SIGNING_KEY)]
    sources += [_source(names.EFFECT_SECRETS, name, f"secrets/{name}") for name in literal]
    sources += [
        _source(ref.name, ref.key, f"secrets/{name}") for name, ref in sorted(referenced.items())
    ]
    return {"name": _VALUES, "projected": {"defaultMode": 0o440, "sources": sources}}


def _source(secret_name: str, key: str, path: str) -> dict[str, Any]:
    return {"secret": {"name": secret_name, "items": [{"key": key, "path": path}]}}


def _effector(image: str) -> dict[str, Any]:
    return {
        "name": names.CONTAINER_EFFECTOR,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": [names.TREE_INIT, "--", names.LAUNCHER_EFFECTOR],
        "ports": [{"name": "http", "containerPort": names.EFFECTOR_PORT, "protocol": "TCP"}],
        "readinessProbe": ready_probe(names.EFFECTOR_PORT),
        "livenessProbe": live_probe(names.EFFECTOR_PORT),
        "resources": {
            "requests": {"cpu": "50m", "memory": "128Mi"},
            "limits": {"memory": "128Mi"},
        },
        "securityContext": dict(RESTRICTED),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": _VALUES, "mountPath": names.EFFECTOR_VALUES_PATH, "readOnly": True},
            {"name": "tmp", "mountPath": TMP_PATH},
        ],
    }
