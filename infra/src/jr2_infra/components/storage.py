"""The claims of an Instance, which outlive the pods that use them.

Source: spec/converge.md §5.2 and §5.7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from jr2 import names

from .. import immutable
from ..closed_list import CLAIM
from ..derived import LiveObjects, ObjectKey
from .base import instance_labels, wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim of an Instance.

    Args:
        name: its name.
        size: what a new one asks for; a claim that was made larger keeps its size.
        holds: what is lost with it, as a refusal says it.
    """

    name: str
    size: str
    holds: str


STATE: Final = Claim(
    name=names.STATE_CLAIM, size=names.STATE_CLAIM_SIZE, holds="the runs of this Instance"
)
CONVERSATIONS: Final = Claim(
    name=names.CONVERSATIONS_CLAIM,
    size=names.CONVERSATIONS_CLAIM_SIZE,
    holds="the conversations of this Instance's Agents",
)


def claim(which: Claim, instance: str, namespace: str, live: LiveObjects) -> dict[str, Any]:
    """Return a wanted claim; a converge never deletes one.

    It names no storage class: the cluster gives its default one, and whatever class a claim got
    stays, so that `immutable` has none to compare.

    Args:
        which: the claim.
        instance: the Instance.
        namespace: its namespace.
        live: the live objects.

    Raises:
        Refusal: the live claim has fixed fields that are not the wanted ones.
    """
    found = live.get(ObjectKey(CLAIM.api_version, CLAIM.kind, namespace, which.name))
    made = wanted(
        CLAIM,
        which.name,
        namespace=namespace,
        labels=instance_labels(instance),
        spec={
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": immutable.claim_size(which.size, found)}},
        },
    )
    immutable.check_claim(made, found, holds=which.holds)
    return made
