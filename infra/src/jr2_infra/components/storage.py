"""The claims of an Instance, which outlive the pods that use them.

Source: spec/converge.md §5.2 and §5.7.
"""

from __future__ import annotations

from typing import Any

from .. import immutable
from ..closed_list import CLAIM
from ..derived import LiveObjects, ObjectKey
from .base import instance_labels, wanted


def claim(
    instance: str, namespace: str, name: str, *, size: str, holds: str, live: LiveObjects
) -> dict[str, Any]:
    """Return a wanted claim; a converge never deletes one.

    It names no storage class: the cluster gives its default one, and whatever class a claim got
    stays, so that `immutable` has none to compare.

    Args:
        instance: the Instance.
        namespace: its namespace.
        name: of the claim.
        size: what a new one asks for; a claim that was made larger keeps its size.
        holds: what is lost with it, as a refusal says it.
        live: the live objects.

    Raises:
        Refusal: the live claim has fixed fields that are not the wanted ones.
    """
    found = live.get(ObjectKey(CLAIM.api_version, CLAIM.kind, namespace, name))
    made = wanted(
        CLAIM,
        name,
        namespace=namespace,
        labels=instance_labels(instance),
        spec={
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": immutable.claim_size(size, found)}},
        },
    )
    immutable.check_claim(made, found, holds=holds)
    return made
