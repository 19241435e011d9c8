"""The objects that every local cluster starts with. Pure: the layout in, objects out.

Rights for the processes that Kubernetes does not know by itself, the Service of the cluster's
DNS, and the StorageClass.

Source: design §7 and local-cluster/.
"""

from __future__ import annotations

from typing import Any, Final

from .. import layout
from ..layout import Layout
from . import certificates, settings

_RBAC: Final = "rbac.authorization.k8s.io/v1"
_READ: Final = ["get", "list", "watch"]


def first_objects(files: Layout) -> list[dict[str, Any]]:
    """Every object, in an order in which the API server takes them."""
    return [*_rights(), *_dns(), *_storage(files)]


def _rights() -> list[dict[str, Any]]:
    return [
        _cluster_binding(
            certificates.ADMIN_GROUP, "cluster-admin", "Group", certificates.ADMIN_GROUP
        ),
        _cluster_binding(
            certificates.KUBELET_CLIENT_USER,
            "system:kubelet-api-admin",
            "User",
            certificates.KUBELET_CLIENT_USER,
        ),
        _cluster_role(
            certificates.COREDNS_USER,
            [
                _rule("", ["endpoints", "services", "pods", "namespaces"], _READ),
                _rule("discovery.k8s.io", ["endpointslices"], _READ),
            ],
        ),
        _cluster_binding(
            certificates.COREDNS_USER, certificates.COREDNS_USER, "User", certificates.COREDNS_USER
        ),
        _cluster_role(
            certificates.ROUTER_USER,
            [
                _rule("", ["namespaces", "pods", "services", "nodes", "endpoints"], _READ),
                _rule("networking.k8s.io", ["networkpolicies"], _READ),
                _rule("discovery.k8s.io", ["endpointslices"], _READ),
            ],
        ),
        _cluster_binding(
            certificates.ROUTER_USER, certificates.ROUTER_USER, "User", certificates.ROUTER_USER
        ),
    ]


def _dns() -> list[dict[str, Any]]:
    """CoreDNS runs on the node: the Service has no selector, and its endpoint is written here."""
    metadata = {"name": "kube-dns", "namespace": "kube-system"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {**metadata, "labels": {"k8s-app": "kube-dns"}},
            "spec": {
                "clusterIP": layout.DNS_SERVICE,
                "ports": [
                    {
                        "name": name,
                        "protocol": protocol,
                        "port": 53,
                        "targetPort": layout.DNS_PORT,
                    }
                    for name, protocol in (("dns", "UDP"), ("dns-tcp", "TCP"))
                ],
            },
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**metadata, "labels": {"kubernetes.io/service-name": "kube-dns"}},
            "addressType": "IPv4",
            "ports": [
                {"name": name, "protocol": protocol, "port": layout.DNS_PORT}
                for name, protocol in (("dns", "UDP"), ("dns-tcp", "TCP"))
            ],
            "endpoints": [{"addresses": [layout.NODE_ADDRESS], "conditions": {"ready": True}}],
        },
    ]


def _storage(files: Layout) -> list[dict[str, Any]]:
    name, namespace = "local-path-provisioner", layout.STORAGE_NAMESPACE
    user = certificates.STORAGE_USER
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": namespace},
            "automountServiceAccountToken": False,
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "local-path-config", "namespace": namespace},
            "data": settings.storage(files),
        },
        _cluster_role(
            user,
            [
                _rule("", ["nodes", "persistentvolumeclaims", "configmaps", "pods"], _READ),
                _rule("", ["persistentvolumes"], [*_READ, "create", "patch", "update", "delete"]),
                _rule("", ["events"], ["create", "patch"]),
                _rule("storage.k8s.io", ["storageclasses"], _READ),
            ],
        ),
        _cluster_binding(user, user, "User", user),
        {
            "apiVersion": _RBAC,
            "kind": "Role",
            "metadata": {"name": name, "namespace": namespace},
            "rules": [
                _rule("", ["pods"], ["create", "patch", "update", "delete"]),
                _rule("", ["pods/log"], ["get"]),
            ],
        },
        {
            "apiVersion": _RBAC,
            "kind": "RoleBinding",
            "metadata": {"name": name, "namespace": namespace},
            "roleRef": _role_ref("Role", name),
            "subjects": [_subject("User", user)],
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {
                "name": layout.STORAGE_CLASS,
                "annotations": {
                    "storageclass.kubernetes.io/is-default-class": "true",
                    # A volume of type `local` gets the group of its pod, as a cloud's would.
                    "defaultVolumeType": "local",
                },
            },
            "provisioner": layout.STORAGE_PROVISIONER,
            "reclaimPolicy": "Delete",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    ]


def _rule(group: str, resources: list[str], verbs: list[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


def _cluster_role(name: str, rules: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "apiVersion": _RBAC,
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": rules,
    }


def _cluster_binding(name: str, role: str, kind: str, subject: str) -> dict[str, Any]:
    return {
        "apiVersion": _RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": _role_ref("ClusterRole", role),
        "subjects": [_subject(kind, subject)],
    }


def _role_ref(kind: str, name: str) -> dict[str, str]:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}


def _subject(kind: str, name: str) -> dict[str, str]:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
