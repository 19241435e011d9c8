"""Who may connect to the pods in which an Agent works: the Orchestrator, and nobody else.

Source: spec/converge.md §5.5.
"""

from __future__ import annotations

from typing import Any

from jr2 import names

from ..closed_list import NETWORK_POLICY
from .base import instance_labels, wanted


def policies(instance: str, namespace: str) -> tuple[dict[str, Any], ...]:
    """Return the wanted NetworkPolicies; they stand before the first pod that they protect."""
    orchestrator = {names.LABEL_APP: names.ORCHESTRATOR, names.LABEL_INSTANCE: instance}
    selectors: tuple[tuple[str, dict[str, Any]], ...] = (
        (
            names.SANDBOX_INGRESS,
            {"matchExpressions": [{"key": names.LABEL_SANDBOX_NAME, "operator": "Exists"}]},
        ),
        (
            names.INSTANCE_HARNESS_INGRESS,
            {"matchLabels": {names.LABEL_APP: names.INSTANCE_HARNESS}},
        ),
    )
    return tuple(
        wanted(
            NETWORK_POLICY,
            name,
            namespace=namespace,
            labels=instance_labels(instance),
            spec={
                "podSelector": selector,
                "policyTypes": ["Ingress"],
                "ingress": [{"from": [{"podSelector": {"matchLabels": orchestrator}}]}],
            },
        )
        for name, selector in selectors
    )
