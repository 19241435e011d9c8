"""The Repo cache of an Instance: one agent on each node where its Sandboxes may run.

It is the one pod of jr2 that runs as uid 0 and sees a folder of the node: the clones that the pods
of Sandboxes mount read-only. It has no capability, and its token reads the Repos of its own
namespace alone.

Source: spec/converge.md §5.6, design §6.3, ADR-0158.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jr2 import names, rbac
from jr2.config import Sandbox

from ..closed_list import DAEMON_SET
from . import pods, service_account
from .base import instance_labels

_CACHE = "cache"
_HOME = "home"
_HOME_PATH = "/home/jr2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where the Sandboxes of an Instance may run, as a pod says it.

    Args:
        node_selector: labels that a node must have.
        tolerations: taints that a pod may be placed beside.
    """

    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, Any]] = ()

    @staticmethod
    def of(sandbox: Sandbox) -> Placement:
        """Return the placement that a config asks for."""
        words = {"toleration_seconds": "tolerationSeconds"}
        return Placement(
            node_selector=dict(sandbox.node_selector),
            tolerations=tuple(
                {
                    words.get(name, name): value
                    for name, value in toleration.model_dump(exclude_none=True).items()
                }
                for toleration in sandbox.tolerations
            ),
        )

    def of_pod(self) -> dict[str, Any]:
        """Return the fields of a pod; none for what the config leaves open."""
        fields: dict[str, Any] = {}
        if self.node_selector:
            fields["nodeSelector"] = dict(self.node_selector)
        if self.tolerations:
            fields["tolerations"] = [dict(one) for one in self.tolerations]
        return fields


def store_path(namespace: str) -> str:
    """Return the folder of a node that holds the clones of an Instance."""
    return f"{names.REPO_STORE}/{namespace}/{names.REPO_STORE_FOLDER}"


def rights(instance: str, namespace: str) -> tuple[dict[str, Any], ...]:
    """Return ServiceAccount, Role and RoleBinding: the verbs that the Repo cache uses."""
    return service_account.rights(instance, namespace, names.REPO_CACHE, rbac.REPO_CACHE_RULES)


def daemon_set(
    instance: str,
    namespace: str,
    *,
    image: str,
    kit_version: str,
    placement: Placement,
    priority_class: str,
) -> dict[str, Any]:
    """Return the wanted DaemonSet.

    Args:
        instance: the Instance.
        namespace: its namespace.
        image: the Kit image of the operator, which holds the agent too.
        kit_version: what the DaemonSet says it is.
        placement: where Sandboxes may run.
        priority_class: the class of control pods.
    """
    store = {"path": store_path(namespace), "type": "DirectoryOrCreate"}
    return pods.workload(
        DAEMON_SET,
        names.REPO_CACHE,
        namespace=namespace,
        labels=instance_labels(instance),
        kit_version=kit_version,
        selector={names.LABEL_APP: names.REPO_CACHE},
        updateStrategy={"type": "RollingUpdate"},
        pod=pods.pod(
            service_account=names.REPO_CACHE,
            token=True,
            priority_class=priority_class,
            security=pods.SECCOMP,
            **placement.of_pod(),
            containers=[_agent(image)],
            volumes=[
                {"name": _CACHE, "hostPath": store},
                pods.empty_dir(_HOME, "64Mi"),
                pods.empty_dir("tmp", "256Mi"),
            ],
        ),
    )


def _agent(image: str) -> dict[str, Any]:
    return pods.container(
        names.CONTAINER_REPO_CACHE,
        image,
        [names.LAUNCHER_REPO_CACHE],
        env=[
            pods.from_field(names.ENV_NODE_NAME, "spec.nodeName"),
            pods.from_field(names.ENV_NAMESPACE, "metadata.namespace"),
            {"name": "HOME", "value": _HOME_PATH},
        ],
        ports=[pods.port("health", names.REPO_CACHE_HEALTH_PORT)],
        **pods.watcher_probes(names.REPO_CACHE_HEALTH_PORT),
        cpu="50m",
        memory="128Mi",
        limit="1Gi",
        user={"runAsUser": 0, "runAsGroup": 0},
        mounts=[
            {"name": _CACHE, "mountPath": names.REPO_CACHE_PATH},
            {"name": _HOME, "mountPath": _HOME_PATH},
        ],
    )
