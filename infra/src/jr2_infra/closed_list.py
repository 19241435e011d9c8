"""The closed list: every kind and name of object that the Converge can make.

The cluster is the state. What jr2 may find, compare, heal or delete is what stands here, and
nothing else, whatever labels an object carries. Objects of the Instance live in its namespace and
are governed as soon as they stand on the list; objects that the Instances of a cluster share are
governed by a converge only while its program holds them, since another Instance may need them.

Source: design §5.2 (The cluster is the state), spec/converge.md §5.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from jr2 import names

from .derived.live import LiveObjects, ObjectKey


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of the API: how an object names it and where its objects are read.

    Args:
        api_version: such as `apps/v1`.
        kind: such as `Deployment`.
        plural: the word in its path.
        namespaced: whether its objects live in a namespace.
    """

    api_version: str
    kind: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        """Return the path of the kind's list, or of one object."""
        root = "api" if "/" not in self.api_version else "apis"
        parts = [root, self.api_version]
        if namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name is not None:
            parts.append(name)
        return "/" + "/".join(parts)


NAMESPACE: Final = Kind("v1", "Namespace", "namespaces", namespaced=False)
NODE: Final = Kind("v1", "Node", "nodes", namespaced=False)
POD: Final = Kind("v1", "Pod", "pods")
EVENT: Final = Kind("v1", "Event", "events")
CONFIG_MAP: Final = Kind("v1", "ConfigMap", "configmaps")
SECRET: Final = Kind("v1", "Secret", "secrets")
SERVICE: Final = Kind("v1", "Service", "services")
SERVICE_ACCOUNT: Final = Kind("v1", "ServiceAccount", "serviceaccounts")
CLAIM: Final = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
DEPLOYMENT: Final = Kind("apps/v1", "Deployment", "deployments")
DAEMON_SET: Final = Kind("apps/v1", "DaemonSet", "daemonsets")
STATEFUL_SET: Final = Kind("apps/v1", "StatefulSet", "statefulsets")
CONTROLLER_REVISION: Final = Kind("apps/v1", "ControllerRevision", "controllerrevisions")
REPLICA_SET: Final = Kind("apps/v1", "ReplicaSet", "replicasets")
ROLE: Final = Kind("rbac.authorization.k8s.io/v1", "Role", "roles")
ROLE_BINDING: Final = Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
CLUSTER_ROLE: Final = Kind(
    "rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False
)
CLUSTER_ROLE_BINDING: Final = Kind(
    "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)
NETWORK_POLICY: Final = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
PRIORITY_CLASS: Final = Kind(
    "scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", namespaced=False
)
ADMISSION_POLICY: Final = Kind(
    "admissionregistration.k8s.io/v1",
    "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies",
    namespaced=False,
)
ADMISSION_BINDING: Final = Kind(
    "admissionregistration.k8s.io/v1",
    "ValidatingAdmissionPolicyBinding",
    "validatingadmissionpolicybindings",
    namespaced=False,
)
CRD: Final = Kind(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
)
SANDBOX: Final = Kind(f"{names.API_GROUP}/{names.API_VERSION}", "Sandbox", "sandboxes")
REPO: Final = Kind(f"{names.API_GROUP}/{names.API_VERSION}", "Repo", "repos")

INSTANCE_OBJECTS: Final[tuple[tuple[Kind, str], ...]] = (
    (SECRET, names.INSTANCE_SECRET),
    (SECRET, names.ORCHESTRATOR),
    (SECRET, names.HARNESS_ENV_SECRET),
    (SECRET, names.HELD_SECRETS),
    (SECRET, names.HELD_TLS),
    (SECRET, names.HELD_CA),
    (SECRET, names.EFFECT_SECRETS),
    (CONFIG_MAP, names.CA_MAP),
    (CONFIG_MAP, names.IMAGES_MAP),
    (CONFIG_MAP, names.HELD_MAP),
    (CONFIG_MAP, names.HARNESS_MAP),
    (CLAIM, names.STATE_CLAIM),
    (SERVICE_ACCOUNT, names.ORCHESTRATOR),
    (ROLE, names.ORCHESTRATOR),
    (ROLE_BINDING, names.ORCHESTRATOR),
    (SERVICE, names.ORCHESTRATOR),
    (DEPLOYMENT, names.ORCHESTRATOR),
    (NETWORK_POLICY, names.SANDBOX_INGRESS),
    (NETWORK_POLICY, names.INSTANCE_HARNESS_INGRESS),
    (NETWORK_POLICY, names.ORCHESTRATOR_INGRESS),
    (SERVICE_ACCOUNT, names.REPO_CACHE),
    (ROLE, names.REPO_CACHE),
    (ROLE_BINDING, names.REPO_CACHE),
    (DAEMON_SET, names.REPO_CACHE),
    (CLAIM, names.CONVERSATIONS_CLAIM),
    (SERVICE, names.INSTANCE_HARNESS),
    (SERVICE, names.INSTANCE_HARNESS_PODS),
    (STATEFUL_SET, names.INSTANCE_HARNESS),
    (SECRET, names.INSTANCE_EFFECTOR),
    (NETWORK_POLICY, names.INSTANCE_EFFECTOR_INGRESS),
    (SERVICE, names.INSTANCE_EFFECTOR),
    (DEPLOYMENT, names.INSTANCE_EFFECTOR),
)
"""Everything with a fixed name that the Converge can make in the namespace of an Instance."""

INSTANCE_PATTERNS: Final[tuple[tuple[Kind, re.Pattern[str]], ...]] = (
    (SECRET, re.compile(re.escape(names.GIT_SECRET_PREFIX) + "[0-9a-f]{8}")),
)
"""The names that follow from the config: the Secret of a token for git."""

OPTIONAL_OBJECTS: Final[frozenset[tuple[Kind, str]]] = frozenset(
    {
        (SECRET, names.HELD_SECRETS),
        (SECRET, names.HELD_TLS),
        (SECRET, names.HELD_CA),
        (SECRET, names.EFFECT_SECRETS),
        (CONFIG_MAP, names.CA_MAP),
    }
)
"""Objects with a fixed name that an Instance has only while its config or its Machines want them."""

SYSTEM_OBJECTS: Final[tuple[tuple[Kind, str], ...]] = (
    (SERVICE_ACCOUNT, names.OPERATOR),
    (DEPLOYMENT, names.OPERATOR),
)
"""Everything that the Converge can make in `jr2-system`."""

CLUSTER_OBJECTS: Final[tuple[tuple[Kind, str], ...]] = (
    (NAMESPACE, names.SYSTEM_NAMESPACE),
    (CRD, names.SANDBOXES_CRD),
    (CRD, names.REPOS_CRD),
    (ADMISSION_POLICY, names.SECRETS_POLICY),
    (ADMISSION_BINDING, names.SECRETS_POLICY),
    (CLUSTER_ROLE, names.OPERATOR_ROLE),
    (CLUSTER_ROLE_BINDING, names.OPERATOR_ROLE_BINDING),
    (PRIORITY_CLASS, names.PRIORITY_CONTROL),
    (PRIORITY_CLASS, names.PRIORITY_SANDBOX),
)
"""Everything outside namespaces that the Instances of a cluster share."""


def instance_kinds() -> tuple[Kind, ...]:
    """Return the kinds that are read in the namespace of an Instance, each once."""
    return tuple(dict.fromkeys(kind for kind, _ in INSTANCE_OBJECTS))


def system_kinds() -> tuple[Kind, ...]:
    """Return the kinds that are read in `jr2-system`, each once."""
    return tuple(dict.fromkeys(kind for kind, _ in SYSTEM_OBJECTS))


def is_instance_object(kind: Kind, name: str) -> bool:
    """Say whether the Converge can make an object of this name in the namespace of an Instance."""
    return (kind, name) in INSTANCE_OBJECTS or _follows(kind, name)


def is_listed(key: ObjectKey) -> bool:
    """Say whether a namespaced object is one that the Converge can make for an Instance."""
    kind = _instance_kind(key)
    return kind is not None and is_instance_object(kind, key.name)


def is_system_object(kind: Kind, name: str) -> bool:
    """Say whether the Converge can make an object of this name in `jr2-system`."""
    return (kind, name) in SYSTEM_OBJECTS


def comes_and_goes(key: ObjectKey) -> bool:
    """Say whether an Instance has an object only while its config or its Machines want it.

    Nothing tells one that is new from one that somebody removed.
    """
    kind = _instance_kind(key)
    return kind is not None and ((kind, key.name) in OPTIONAL_OBJECTS or _follows(kind, key.name))


def _follows(kind: Kind, name: str) -> bool:
    return any(kind == own and pattern.fullmatch(name) for own, pattern in INSTANCE_PATTERNS)


def _instance_kind(key: ObjectKey) -> Kind | None:
    named = (key.api_version, key.kind)
    return next((one for one in instance_kinds() if (one.api_version, one.kind) == named), None)


def kind_of(name: str) -> Kind:
    """Return the kind of the list that objects name so, such as `Deployment`."""
    listed = (kind for kind, _ in (*INSTANCE_OBJECTS, *SYSTEM_OBJECTS, *CLUSTER_OBJECTS))
    return next(kind for kind in (*listed, DAEMON_SET, STATEFUL_SET) if kind.kind == name)


def governed(live: LiveObjects, *, namespace: str, declared: Collection[ObjectKey]) -> LiveObjects:
    """Return the live objects that one converge may compare, heal or delete.

    Args:
        live: what the cluster holds.
        namespace: the Instance's namespace.
        declared: the objects of the program. A shared object that it leaves out is left alone, and
            so are namespaces and claims, which a converge never deletes.
    """
    return {
        key: obj
        for key, obj in live.items()
        if key in declared
        or (key.namespace == namespace and key.kind != CLAIM.kind and is_listed(key))
    }
