"""The grants as objects that an administrator applies: Roles, ClusterRoles and their bindings.

Source: design §6.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from jr2 import names

from .grants import Grant, Place

_API: Final = "rbac.authorization.k8s.io/v1"


def manifests(
    name: str, grants: Sequence[Grant], *, namespace: str, subject: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the Roles of some grants and the bindings to one subject.

    Args:
        name: of each object.
        grants: what is granted.
        namespace: of the Instance.
        subject: who gets it, as a binding names it.
    """
    found: list[dict[str, Any]] = []
    for place in dict.fromkeys(grant.place for grant in grants):
        rules = [
            rule.as_object() for grant in grants if grant.place == place for rule in grant.rules
        ]
        found += _pair(name, place, rules, namespace, subject)
    return found


def _pair(
    name: str,
    place: Place,
    rules: list[dict[str, Any]],
    namespace: str,
    subject: Mapping[str, str],
) -> list[dict[str, Any]]:
    of_cluster = place == "cluster"
    where = names.SYSTEM_NAMESPACE if place == "system" else namespace
    kind = "ClusterRole" if of_cluster else "Role"
    metadata = {"name": name} if of_cluster else {"name": name, "namespace": where}
    role = {"apiVersion": _API, "kind": kind, "metadata": metadata, "rules": rules}
    binding = {
        "apiVersion": _API,
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [dict(subject)],
    }
    return [role, binding]
