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

from ..closed_list import DEPLOYMENT, SECRET
from . import network, pods
from .base import encoded, instance_labels, wanted

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
    return network.from_orchestrator(
        instance, namespace, names.INSTANCE_EFFECTOR_INGRESS, {"matchLabels": dict(_SELECTOR)}
    )


def service(instance: str, namespace: str) -> dict[str, Any]:
    """Return the wanted Service."""
    return network.service(instance, namespace, names.INSTANCE_EFFECTOR, port=names.EFFECTOR_PORT)


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
    uid = names.EFFECTOR_UID
    return pods.workload(
        DEPLOYMENT,
        names.INSTANCE_EFFECTOR,
        namespace=namespace,
        labels=instance_labels(instance),
        kit_version=kit_version,
        replicas=1,
        # Two of them would keep two journals of what was done.
        strategy={"type": "Recreate"},
        selector=_SELECTOR,
        pod_annotations={names.ANNOTATION_VALUES_DIGEST: values_digest},
        pod=pods.pod(
            priority_class=priority_class,
            security=pods.security(uid, uid, volumes=uid),
            containers=[_effector(image)],
            volumes=[_values_volume(literal, referenced), pods.empty_dir("tmp", "256Mi")],
        ),
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
    return pods.container(
        names.CONTAINER_EFFECTOR,
        image,
        [names.TREE_INIT, "--", names.LAUNCHER_EFFECTOR],
        ports=[pods.port("http", names.EFFECTOR_PORT)],
        readinessProbe=pods.ready_probe(names.EFFECTOR_PORT),
        livenessProbe=pods.live_probe(names.EFFECTOR_PORT),
        cpu="50m",
        memory="128Mi",
        mounts=[{"name": _VALUES, "mountPath": names.EFFECTOR_VALUES_PATH, "readOnly": True}],
    )
