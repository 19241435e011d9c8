"""The admission policy on Secrets: what an Orchestrator may write, whatever its Role says.

RBAC cannot say "create a Secret of such a name", so a Role that lets an Orchestrator make the token
of a Sandbox lets it make any Secret: a token of another service account, or a value in the place of
one that a person keeps. This policy says the rest: an Orchestrator writes opaque Secrets named
`ws-<…>-token` that carry the label of a Sandbox, changes no Secret that lacks it, and deletes none.

The policy is shared by the Instances of a cluster and stands with the operator.

Source: design §6.3, ADR-0147.
"""

from __future__ import annotations

from typing import Any, Final

from jr2 import names

from ..closed_list import ADMISSION_BINDING, ADMISSION_POLICY
from .base import shared_labels, wanted

_IS_ORCHESTRATOR: Final = (
    "request.userInfo.username.startsWith('system:serviceaccount:') && "
    f"request.userInfo.username.endsWith(':{names.ORCHESTRATOR}')"
)
_RULES: Final = (
    (
        "request.operation != 'DELETE'",
        "an Orchestrator deletes no Secret",
    ),
    (
        "request.operation == 'DELETE' || object.metadata.name.matches('^ws-.+-token$')",
        "an Orchestrator writes only Secrets named ws-<Sandbox>-token",
    ),
    (
        "request.operation == 'DELETE' || (has(object.type) && object.type == 'Opaque')",
        "an Orchestrator writes only Secrets of the type Opaque",
    ),
    (
        "request.operation == 'DELETE' || (has(object.metadata.labels) && "
        f"'{names.LABEL_SANDBOX}' in object.metadata.labels)",
        f"a Secret that an Orchestrator writes carries the label {names.LABEL_SANDBOX}",
    ),
    (
        "request.operation != 'UPDATE' || (has(oldObject.metadata.labels) && "
        f"'{names.LABEL_SANDBOX}' in oldObject.metadata.labels)",
        f"an Orchestrator changes only a Secret that carries the label {names.LABEL_SANDBOX}",
    ),
)


def secrets_policy() -> tuple[dict[str, Any], ...]:
    """Return the wanted policy and its binding."""
    return (
        wanted(
            ADMISSION_POLICY,
            names.SECRETS_POLICY,
            labels=shared_labels(),
            spec={
                "failurePolicy": "Fail",
                "matchConstraints": {
                    "resourceRules": [
                        {
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "operations": ["CREATE", "UPDATE", "DELETE"],
                            "resources": ["secrets"],
                        }
                    ]
                },
                "matchConditions": [{"name": "orchestrator", "expression": _IS_ORCHESTRATOR}],
                "validations": [
                    {"expression": expression, "message": message, "reason": "Forbidden"}
                    for expression, message in _RULES
                ],
            },
        ),
        wanted(
            ADMISSION_BINDING,
            names.SECRETS_POLICY,
            labels=shared_labels(),
            spec={"policyName": names.SECRETS_POLICY, "validationActions": ["Deny"]},
        ),
    )
