"""Name what others changed, before it is healed.

A field that jr2 applied and that another manager owns now was changed by hand, or by another
program; so was an object that is gone while the rest of its part stands, and everything that
`nothing_more` finds. What the Instance or the Kit changed is no drift and is not named here. A
value is never shown: it may be a secret.

Source: design §5.2 (Nothing more), seed 000 (the pods prove that the cluster is correct).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from jr2 import names

from .closed_list import DEPLOYMENT, SERVICE, SERVICE_ACCOUNT, comes_and_goes
from .derived.live import LiveObjects, ObjectKey
from .derived.more import More
from .derived.proof import Difference
from .parts import WORKLOADS, PartName

_ORCHESTRATOR = (DEPLOYMENT.kind, names.ORCHESTRATOR)
_OPERATOR = (DEPLOYMENT.kind, names.OPERATOR)
_PART_OF: Final[Mapping[str, PartName]] = {
    names.REPO_CACHE: "repo cache",
    names.INSTANCE_HARNESS: "instance harness",
    names.INSTANCE_HARNESS_PODS: "instance harness",
    names.CONVERSATIONS_CLAIM: "instance harness",
    names.INSTANCE_EFFECTOR: "instance effector",
    names.INSTANCE_EFFECTOR_INGRESS: "instance effector",
}
"""The part that comes and goes with the objects of a name; its first coming is no drift."""
_FIRST_OF_A_PART = frozenset({SERVICE_ACCOUNT.kind, SERVICE.kind})
"""What is made before the pods of a part, under the same name."""


def drift_lines(
    found: Iterable[Difference], more: Sequence[More], live: LiveObjects, *, namespace: str
) -> tuple[str, ...]:
    """Return one line for each thing that somebody else changed.

    Args:
        found: what differs from the plan.
        more: what is more than the plan.
        live: the objects of the cluster; they tell a part that stood from one that is new.
        namespace: the Instance's namespace.
    """
    lines: list[str] = []
    for difference in drifted(found, live, namespace=namespace):
        key = difference.key
        assert key is not None, "only an object drifts"
        if difference.operation == "create":
            if comes_and_goes(key):
                continue
            lines.append(f"drift: {_named(key)} is gone — made again{_renewed(key)}")
        else:
            lines += [
                f"drift: {_named(key)}: {change.path} was changed by "
                f"{', '.join(change.by)} — set back"
                for change in difference.fields
                if change.by
            ]
    lines += [f"drift: {_named(item.key)}: {item} — taken away" for item in more]
    return tuple(lines)


def drifted(
    found: Iterable[Difference], live: LiveObjects, *, namespace: str
) -> tuple[Difference, ...]:
    """Return the differences of objects that somebody else changed or removed.

    Args:
        found: what differs from the plan.
        live: the objects of the cluster; they tell a part that stood from one that is new.
        namespace: the Instance's namespace.
    """
    stood = {(key.kind, key.name) for key in live}
    result: list[Difference] = []
    for difference in found:
        key = difference.key
        if key is None:
            continue
        part = _workload_of(key, namespace)
        if difference.operation == "create":
            gone = key not in live
            stands = part in stood or ((key.kind, key.name) == part and _part_stood(key, live))
            changed = gone and stands
        else:
            changed = difference.operation == "update" and any(f.by for f in difference.fields)
        if changed:
            result.append(difference)
    return tuple(result)


def _workload_of(key: ObjectKey, namespace: str) -> tuple[str, str]:
    """Return kind and name of what runs the pods of an object's part."""
    if key.namespace != namespace:
        return _OPERATOR
    part = _PART_OF.get(key.name)
    return _ORCHESTRATOR if part is None else WORKLOADS[part]


def _part_stood(key: ObjectKey, live: LiveObjects) -> bool:
    """Say whether a missing workload stood before: what was made before it is still there."""
    return any(
        other.kind in _FIRST_OF_A_PART
        and other.name == key.name
        and other.namespace == key.namespace
        for other in live
    )


def _renewed(key: ObjectKey) -> str:
    return ", with new values" if key.name == names.INSTANCE_SECRET else ""


def _named(key: ObjectKey) -> str:
    where = f" in {key.namespace}" if key.namespace else ""
    return f"{key.kind} {key.name}{where}"
