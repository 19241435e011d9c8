"""`jr2 down`: remove an Instance from its cluster, and with `--all` what the Instances share.

Sandboxes go first, since their teardown needs the Orchestrator's namespace; then the objects of the
closed list, each by its uid, so that nothing made again meanwhile is hit; the namespace last. What
holds a namespace is named and never forced: no finalizer is edited.

Source: spec/converge.md §2.5 (down), design §5.2, field case 3.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx2

from jr2 import names
from jr2.errors import Aborted, Refusal, StepFailed

from . import check, kube, rules
from .api import Api, ApiError, words
from .closed_list import (
    CLUSTER_OBJECTS,
    INSTANCE_OBJECTS,
    NAMESPACE,
    REPO,
    SANDBOX,
    SYSTEM_OBJECTS,
    Kind,
)
from .facts import cluster as cluster_facts
from .facts import holding
from .lease import DOWN, ConvergeLease
from .leases import held_leases
from .report import Reporter
from .rules import Place
from .session import reach

GONE_SECONDS: Final = 180.0
_LOOK_SECONDS: Final = 0.25


def down(
    *,
    root: Path,
    context: str | None,
    namespace: str | None,
    all_: bool,
    yes: bool,
    force: bool,
    reporter: Reporter,
) -> None:
    """Remove the Instance.

    Args:
        root: the Instance folder.
        context: the kubectl context; the current one when it is not named.
        namespace: the namespace; the Instance's name when it is not named.
        all_: remove what the Instances of the cluster share, too.
        yes: do not ask.
        force: with `all_`, also when other Instances need it.
        reporter: where the lines go.

    Raises:
        Refusal: the namespace is another Instance's, or other Instances need what is shared.
        StepFailed: the Instance is not there, or something holds it.
        Aborted: a person said no.
    """
    opened = check.open_instance(root, reporter, agents=False)
    place = Place(
        instance=opened.name,
        context=kube.context_name(context),
        namespace=namespace or opened.name,
    )
    with reach(place).http() as http:
        try:
            remove(http, place, all_=all_, yes=yes, force=force, reporter=reporter)
        except ApiError as error:
            raise StepFailed(f"the API server refused: {error.message}") from error
        except httpx2.HTTPError as error:
            raise StepFailed(f"the API server stopped answering ({words(error)})") from error
    reporter.line("removed", code="removed")


def remove(
    http: httpx2.Client, place: Place, *, all_: bool, yes: bool, force: bool, reporter: Reporter
) -> None:
    """Remove an Instance from a cluster.

    Args:
        http: the API server.
        place: the Instance, and where it is.
        all_: remove what the Instances of the cluster share, too.
        yes: do not ask.
        force: with `all_`, also when other Instances need it.
        reporter: where the lines go.

    Raises:
        Jr2Error: as `down`.
        ApiError: the API server refused.
        httpx2.HTTPError: the connection broke.
    """
    api = Api(http)
    contact = cluster_facts.read_contact(api, place.context, place.namespace, with_nodes=False)
    found = contact.namespace
    if found is None or rules.check_owner(place, found) is None:
        raise StepFailed(
            f'not deployed here — instance "{place.instance}" is not in context {place.context} / '
            f"namespace {place.namespace}"
        )
    if all_ and not force:
        check_others(place, cluster_facts.other_instances(api, place.namespace))
    if not yes and not reporter.confirm(question(place, all_=all_)):
        raise Aborted(rules.ABORTED)
    with held_leases(http, reporter, verb=DOWN) as leases:
        own = None if _is_going(found) else leases.hold(place.namespace)
        system = api.get(NAMESPACE.path(name=names.SYSTEM_NAMESPACE)) if all_ else None
        # A namespace that goes already takes no Lease, and nobody writes in it any more.
        shared = leases.hold_shared() if all_ and not _is_going(system or {}) else None
        if all_ and not force:
            # Another Instance may have come while the Lease was taken.
            check_others(place, cluster_facts.other_instances(api, place.namespace))
        if own is not None:
            for kind in (SANDBOX, REPO):
                delete_all(api, kind, place.namespace)
            _delete(
                api, ((kind, name, place.namespace) for kind, name in reversed(INSTANCE_OBJECTS))
            )
            own.goes_with_its_namespace()
        reporter.line(f"namespace: deleting {place.namespace}", code="namespace")
        _delete(api, [(NAMESPACE, place.namespace, None)])
        wait_until_gone(api, place, reporter)
        if all_:
            _remove_shared(api, place, shared, reporter)


def _remove_shared(api: Api, place: Place, lease: ConvergeLease | None, reporter: Reporter) -> None:
    """Remove what the Instances share, `jr2-system` last, with the Lease that lies in it."""
    reporter.line("operator: removing it, its CRDs and the priority classes", code="operator")
    _delete(
        api,
        [
            *((kind, name, names.SYSTEM_NAMESPACE) for kind, name in reversed(SYSTEM_OBJECTS)),
            *((kind, name, None) for kind, name in reversed(CLUSTER_OBJECTS) if kind != NAMESPACE),
        ],
    )
    if lease is not None:
        lease.goes_with_its_namespace()
    _delete(api, [(NAMESPACE, names.SYSTEM_NAMESPACE, None)])
    wait_until_gone(
        api,
        Place(instance=place.instance, context=place.context, namespace=names.SYSTEM_NAMESPACE),
        reporter,
    )


def _is_going(namespace: Mapping[str, Any]) -> bool:
    return (namespace.get("status") or {}).get("phase") == "Terminating"


def question(place: Place, *, all_: bool) -> str:
    """Return what a person is asked."""
    also = " and the operator, which every instance of this cluster uses" if all_ else ""
    return (
        f'remove instance "{place.instance}" from context {place.context} (delete namespace '
        f'"{place.namespace}" with its runs{also})?'
    )


def check_others(place: Place, others: Sequence[tuple[str, str]]) -> None:
    """Refuse to take away what other Instances use.

    Args:
        place: where.
        others: name and namespace of the other Instances.

    Raises:
        Refusal: there is one.
    """
    if others:
        listed = ", ".join(f'"{name}" (namespace {namespace})' for name, namespace in others)
        raise Refusal(
            f"other instances on {place.context} use the operator: {listed} — --all would stop "
            "their Sandboxes; with --force it removes the operator all the same. Nothing was "
            "removed."
        )


def delete_all(
    api: Api,
    kind: Kind,
    namespace: str,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Delete every object of a kind and wait until they are gone.

    Raises:
        StepFailed: one of them is held; it is named with its finalizers.
    """
    for obj in api.objects(kind, namespace):
        metadata = obj["metadata"]
        api.delete(kind.path(namespace, metadata["name"]), uid=metadata["uid"])
    until = clock() + GONE_SECONDS
    while left := api.objects(kind, namespace):
        if clock() > until:
            raise StepFailed(
                "\n".join(
                    [
                        f'namespace "{namespace}" still holds:',
                        *(f"  {holding.held_by(kind.kind, obj)}" for obj in left),
                        f"  see: kubectl -n {namespace} get {kind.plural} -o yaml",
                    ]
                )
            )
        sleep(_LOOK_SECONDS)


def wait_until_gone(
    api: Api,
    place: Place,
    reporter: Reporter,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Wait until a namespace is gone.

    Raises:
        StepFailed: it is held; the text says by what.
    """
    until = clock() + GONE_SECONDS
    path = NAMESPACE.path(name=place.namespace)
    while (found := api.get(path)) is not None:
        if clock() > until:
            raise StepFailed(rules.terminating_text(place, found, holding.what_holds(api, found)))
        reporter.progress(f"namespace {place.namespace} is being deleted")
        sleep(_LOOK_SECONDS)
    reporter.progress(None)


def _delete(api: Api, objects: Iterable[tuple[Kind, str, str | None]]) -> None:
    for kind, name, namespace in objects:
        path = kind.path(namespace, name)
        found = api.get(path)
        if found is not None:
            api.delete(path, uid=found["metadata"]["uid"])
