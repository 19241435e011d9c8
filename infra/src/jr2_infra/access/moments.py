"""The two moments at which a converge asks for its rights: before the namespace, and before the Lease.

Source: design §6.3.
"""

from __future__ import annotations

from .. import rules
from ..api import Api
from ..facts import cluster as cluster_facts
from ..facts.instance import InstanceFacts
from ..rules import Place
from . import grants
from .review import check_rights


def before_namespace(api: Api, place: Place, instance: InstanceFacts, *, absent: bool) -> None:
    """Refuse a first contact that may not write all that it will.

    What the Instances share is written by the first converge to a cluster, and by one of another
    Kit version; any other finds it as it should be.

    Args:
        api: the API server.
        place: where.
        instance: what the folder says.
        absent: the namespace is not there yet.

    Raises:
        Refusal: each right that is missing.
    """
    deployed = cluster_facts.operator_version(api)
    needs = grants.converge(
        place.namespace,
        shared=instance.config.operator.manage and deployed != instance.kit_version,
        makes_namespace=absent,
    )
    check_rights(api, place, needs, done=rules.NOTHING_APPLIED)


def before_lease(api: Api, place: Place, *, shared: bool, made_namespace: bool) -> None:
    """Refuse a plan that writes what one may not write.

    Args:
        api: the API server.
        place: where.
        shared: it writes what the Instances share.
        made_namespace: this run applied the namespace.

    Raises:
        Refusal: each right that is missing.
    """
    done = rules.NAMESPACE_APPLIED if made_namespace else rules.NOTHING_APPLIED
    check_rights(api, place, grants.converge(place.namespace, shared=shared), done=done)
