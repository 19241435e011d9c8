"""Ask the API server whether a converge may do all that it will do, before its first write.

Each right is one SelfSubjectAccessReview, all of them at once: a few milliseconds. An API server
that does not answer them stops nothing; then the first write that it refuses says so.

Source: design §6.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jr2 import names
from jr2.errors import Refusal

from ..api import Api, ApiError
from .grants import Grant

if TYPE_CHECKING:
    from ..rules import Place

_AT_ONCE: Final = 12
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """One thing that one may do.

    Args:
        verb: such as `patch`.
        group: the API group; empty for the core.
        resource: its plural.
        subresource: such as `log`; empty for the resource itself.
        namespace: where; `None` for the whole cluster.
        name: the one object; empty for each.
    """

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str | None = None
    name: str = ""

    def __str__(self) -> str:
        kind = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        kind += f".{self.group}" if self.group else ""
        named = f' "{self.name}"' if self.name else ""
        where = f' in namespace "{self.namespace}"' if self.namespace else ""
        return f"{self.verb} {kind}{named}{where}"

    def attributes(self) -> dict[str, str]:
        """Return it as a review names it."""
        found = {
            "verb": self.verb,
            "group": self.group,
            "resource": self.resource,
            "subresource": self.subresource,
            "namespace": self.namespace or "",
            "name": self.name,
        }
        return {name: value for name, value in found.items() if value}


def rights_of(grants: Sequence[Grant], *, namespace: str) -> tuple[Right, ...]:
    """Return each right of some grants, once.

    Args:
        grants: the grants.
        namespace: of the Instance.
    """
    return tuple(dict.fromkeys(_rights(grants, namespace)))


def check_rights(api: Api, place: Place, grants: Sequence[Grant], *, done: str) -> None:
    """Refuse a converge that would end at a write which the API server forbids.

    Args:
        api: the API server.
        place: where.
        grants: what is needed.
        done: what was written already, as a sentence.

    Raises:
        Refusal: rights are missing; each is named.
    """
    wanted = rights_of(grants, namespace=place.namespace)
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        allowed = list(pool.map(lambda right: _is_allowed(api, right), wanted))
    missing = [right for right, is_allowed in zip(wanted, allowed, strict=True) if not is_allowed]
    if missing:
        listed = "\n".join(f"  {right}" for right in missing)
        raise Refusal(
            f"you lack {len(missing)} right(s) on {place.context} that this converge needs — "
            f"docs/rights.md has the Roles. {done}\n{listed}"
        )


def _rights(grants: Sequence[Grant], namespace: str) -> Iterator[Right]:
    places = {"cluster": None, "instance": namespace, "system": names.SYSTEM_NAMESPACE}
    for grant in grants:
        for rule in grant.rules:
            for group in rule.groups:
                for resource in rule.resources:
                    plural, _, sub = resource.partition("/")
                    for verb in rule.verbs:
                        for name in rule.resource_names or ("",):
                            yield Right(
                                verb=verb,
                                group=group,
                                resource=plural,
                                subresource=sub,
                                namespace=places[grant.place],
                                name=name,
                            )


def _is_allowed(api: Api, right: Right) -> bool:
    review: dict[str, Any] = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": right.attributes()},
    }
    try:
        answer = api.create(_REVIEWS, review)
    except ApiError:
        return True
    return bool((answer.get("status") or {}).get("allowed"))
