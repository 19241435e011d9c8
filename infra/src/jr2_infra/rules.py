"""The rules that the cluster must meet before anything is applied, in the order of the steps.

Each function takes facts and says one of three things: go on, what to ask a person, or the
refusal. None of them reads or writes.

Source: seed 001 (Rules), spec/converge.md §4 steps 5–8 and §6.1; design §5.1 and §7.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jr2 import names
from jr2.errors import Jr2Error, Refusal, StepFailed

from . import versions

_RESERVED: Final = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
LABEL_POD_SECURITY: Final = "pod-security.kubernetes.io/enforce"
NOTHING_APPLIED: Final = "Nothing was applied."
NAMESPACE_APPLIED: Final = "The namespace was applied; nothing else was."
ABORTED: Final = "aborted — nothing was changed"
NOTHING_TO_BUILD: Final = (
    "images: nothing to build again with --force — this instance has no Sandbox Image, and a Kit "
    "image is named by the hash of its content"
)
DELIVERED_AGAIN: Final = (
    "images: --force delivers the Kit images of the checkout again — this instance has no Sandbox "
    "Image to build"
)


class Ownership(enum.Enum):
    """What a namespace says about who owns it."""

    OURS = "ours"
    ABSENT = "absent"
    UNLABELLED = "unlabelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an Instance converges.

    Args:
        instance: its name.
        context: the kubectl context.
        namespace: its namespace.
    """

    instance: str
    context: str
    namespace: str


def check_version(place: Place, version: str) -> None:
    """Refuse a cluster that is too old.

    Args:
        place: where.
        version: what the API server says, such as `v1.36.3`.

    Raises:
        Refusal: the version is earlier than the minimum.
    """
    release = versions.kubernetes_release(version)
    if release is not None and release >= names.MINIMUM_KUBERNETES:
        return
    minimum = ".".join(str(part) for part in names.MINIMUM_KUBERNETES)
    raise Refusal(
        f"{place.context} runs Kubernetes {version.removeprefix('v')}; jr2 needs Kubernetes "
        f"{minimum} or newer (every Sandbox mounts jr2's runtime as an image volume, ADR-0037). "
        "Nothing was applied."
    )


def ownership(
    place: Place, namespace: Mapping[str, Any] | None, held: Sequence[str] = ()
) -> Ownership:
    """Say who owns the namespace.

    Args:
        place: where.
        namespace: the Namespace as the API gave it, or `None` when there is none.
        held: what holds it, when it is being deleted.

    Raises:
        Refusal: it belongs to another Instance, is no place for one, or is being deleted.
    """
    if namespace is None:
        check_not_reserved(place)
        return Ownership.ABSENT
    owner = check_owner(place, namespace)
    check_not_reserved(place)
    if is_terminating(namespace):
        raise Refusal(terminating_text(place, namespace, held) + "\nNothing was applied.")
    return Ownership.UNLABELLED if owner is None else Ownership.OURS


def check_owner(place: Place, namespace: Mapping[str, Any]) -> str | None:
    """Return the Instance that a namespace names; `None` when it names none.

    Raises:
        Refusal: it belongs to another Instance.
    """
    owner: str | None = (namespace["metadata"].get("labels") or {}).get(names.LABEL_INSTANCE)
    if owner is not None and owner != place.instance:
        raise Refusal(
            f'namespace "{place.namespace}" on {place.context} belongs to another instance '
            f'("{owner}")\n  pick a different namespace (-n) or context (--context)'
        )
    return owner


def check_not_reserved(place: Place) -> None:
    """Refuse a namespace that is Kubernetes' own, or the operator's.

    `jr2 down` deletes the namespace of an Instance with all that is in it, and a cluster does not
    live without these.

    Raises:
        Refusal: it is one of them.
    """
    if place.namespace in _RESERVED or place.namespace == names.SYSTEM_NAMESPACE:
        whose = "the operator's" if place.namespace == names.SYSTEM_NAMESPACE else "Kubernetes' own"
        raise Refusal(
            f'namespace "{place.namespace}" is {whose}, and an Instance has one of its own, which '
            f"`jr2 down` deletes — pick a different namespace (-n). {NOTHING_APPLIED}"
        )


def is_terminating(namespace: Mapping[str, Any]) -> bool:
    """Say whether a namespace is being deleted."""
    return (namespace.get("status") or {}).get("phase") == "Terminating"


def terminating_text(place: Place, namespace: Mapping[str, Any], held: Sequence[str] = ()) -> str:
    """Return what is said of a namespace that is being deleted: what still holds it, and where."""
    going = f'namespace "{place.namespace}" on {place.context} is being deleted'
    lines = [f"{going}, and is held:"]
    for condition in (namespace.get("status") or {}).get("conditions") or []:
        if condition.get("status") == "True":
            lines.append(f"  {condition.get('type')}: {condition.get('message')}")
    if len(lines) == 1:
        lines = [f"{going} — run this again once it is gone"]
    lines += [f"  {line}" for line in held]
    lines.append(f"  see: kubectl get namespace {place.namespace} -o yaml")
    return "\n".join(lines)


def check_namespace_stays(
    place: Place, namespace: Mapping[str, Any] | None, held: Sequence[str] = ()
) -> None:
    """Fail a converge whose namespace was deleted while it ran.

    Args:
        place: where.
        namespace: the Namespace as the API gave it after the last write, or `None` when it is gone.
        held: what holds it, when it is being deleted.

    Raises:
        StepFailed: it is gone or being deleted, and with it what was applied.
    """
    if namespace is None:
        raise StepFailed(
            f'namespace "{place.namespace}" on {place.context} was deleted while `jr2 up` ran — '
            "run `jr2 up` again"
        )
    if namespace["metadata"].get("deletionTimestamp"):
        raise StepFailed(terminating_text(place, namespace, held))


def first_contact(place: Place, owned: Ownership) -> str | None:
    """Return the question before a namespace is used for the first time; `None` when it is ours."""
    if owned is Ownership.OURS:
        return None
    action = (
        f'create namespace "{place.namespace}"'
        if owned is Ownership.ABSENT
        else f'adopt existing namespace "{place.namespace}"'
    )
    return (
        f'first contact: deploy instance "{place.instance}" to context {place.context} ({action})?'
    )


def check_pod_security(
    place: Place, namespace: Mapping[str, Any] | None, *, repo_cache: bool
) -> None:
    """Refuse a namespace that lets no pod mount a folder of the node, where one must.

    Args:
        place: where.
        namespace: the Namespace as the API gave it, or `None` when there is none.
        repo_cache: a Machine of the Instance has a Sandbox.

    Raises:
        Refusal: it enforces a standard that the Repo cache does not meet.
    """
    labels = ((namespace or {}).get("metadata") or {}).get("labels") or {}
    level = labels.get(LABEL_POD_SECURITY, "privileged")
    if repo_cache and level != "privileged":
        raise Refusal(
            f'namespace "{place.namespace}" on {place.context} enforces the Pod Security Standard '
            f'"{level}", and the Repo cache and each Sandbox mount a folder of the node, which it '
            f"forbids — set its label {LABEL_POD_SECURITY} to privileged, or pick a different "
            "namespace (-n). Nothing was applied."
        )


def drops_pod_resources(place: Place, version: str) -> Refusal:
    """Return the refusal of a cluster that does not keep pod-level resources."""
    return Refusal(
        f"{place.context} (Kubernetes {version.removeprefix('v')}) drops pod-level resources — the "
        "PodLevelResources feature gate is off, and a Workspace's Size cannot hold (ADR-0060). "
        "Enable the gate on the API server and kubelets. The namespace was created; nothing else "
        "was applied."
    )


def unconfirmed_pod_resources(place: Place, error: str) -> str:
    """Return the warning of a probe that gave no answer."""
    return f"warning: could not confirm pod-level resources on {place.context}: {error}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KitRefs:
    """The Kit images of this converge.

    Args:
        orchestrator: the ref of the Orchestrator's image.
        operator: the ref of the operator's image.
        harness: the ref of the Harness image; `None` where no part needs it.
        line: what is said about them.
        imported: whether `jr2 up` delivers them itself.
    """

    orchestrator: str
    operator: str
    harness: str | None
    line: str
    imported: bool


def released_images(kit_version: str, kit_registry: str | None) -> KitRefs:
    """Return the images that the nodes pull.

    Args:
        kit_version: the Kit version of the Instance.
        kit_registry: the mirror that the config names.
    """
    home = (kit_registry or names.KIT_HOME).rstrip("/")
    return KitRefs(
        orchestrator=f"{home}/{names.IMAGE_ORCHESTRATOR}:{kit_version}",
        operator=f"{home}/{names.IMAGE_OPERATOR}:{kit_version}",
        harness=f"{home}/{names.IMAGE_HARNESS}:{kit_version}",
        line=(
            f"images: installed kit — the published v{kit_version} Harness, operator and "
            f"Orchestrator, pulled from {home}{' (kit_registry)' if kit_registry else ''}"
        ),
        imported=False,
    )


def push_home(place: Place, registry: str | None) -> str | None:
    """Return the registry that images are pushed to; `None` where nodes get them by an import.

    Args:
        place: where.
        registry: `registry` of the config.
    """
    if place.context == names.LOCAL_CONTEXT or place.context.startswith(names.KIND_PREFIX):
        return None
    return None if registry is None else registry.rstrip("/")


def checkout_refs(
    place: Place,
    *,
    orchestrator: str,
    operator: str,
    checkout: str,
    harness: str | None = None,
    home: str | None = None,
) -> KitRefs:
    """Return the images of a checkout, which `jr2 up` delivers itself.

    Args:
        place: where.
        orchestrator: the name of the Orchestrator's image in the checkout.
        operator: the name of the operator's.
        harness: the name of the Harness's, where a part of the Instance needs it.
        checkout: the folder.
        home: the registry that they are pushed to; `None` imports them.
    """
    way = f"imported into the nodes of {place.context}" if home is None else f"pushed to {home}"

    def named(ref: str) -> str:
        return ref if home is None else f"{home}/{ref.rpartition('/')[2]}"

    return KitRefs(
        orchestrator=named(orchestrator),
        operator=named(operator),
        harness=None if harness is None else named(harness),
        line=(
            f"images: checkout kit — the {'' if harness is None else 'Harness, '}operator and "
            f"Orchestrator of {checkout}, {way}"
        ),
        imported=True,
    )


def check_pushed_platforms(needed: Sequence[str], built: str) -> Jr2Error | None:
    """Return why the images of a checkout do not run on the nodes, or `None`.

    Args:
        needed: the platforms of the nodes, or those that the config names.
        built: the platform of this machine, for which the checkout builds.
    """
    other = [item for item in needed if item != built]
    if not other:
        return None
    return StepFailed(
        f"the Kit images of this checkout are built for {built} alone, and this cluster needs "
        f"{', '.join(other)} — use a released version of jr2, or set `platforms` in "
        f'{names.CONFIG_FILE} to ["{built}"] when every pod of jr2 runs on such nodes'
    )


def check_delivery(
    place: Place,
    *,
    server: str,
    local_server: str | None,
    kind: Mapping[str, object | None],
    registry: str | None,
) -> Jr2Error | None:
    """Return why images cannot be delivered to a cluster, or `None`.

    Args:
        place: where.
        server: the address of the context's API server.
        local_server: the address of the local cluster that runs, or `None`.
        kind: the programs that reach a kind cluster, each with its place or `None`.
        registry: `registry` of the config.
    """
    if place.context == names.LOCAL_CONTEXT and local_server == server:
        return None
    if place.context == names.LOCAL_CONTEXT:
        return StepFailed(
            f"context {place.context} points at {server}, and that is not the local cluster of "
            "this machine — `jr2 cluster status` shows its address, and `jr2 cluster start` "
            "starts it"
        )
    if place.context.startswith(names.KIND_PREFIX):
        missing = [name for name, found in kind.items() if found is None]
        if not missing:
            return None
        return StepFailed(
            f"context {place.context} is a kind cluster, and images reach its nodes by `kind load` "
            f"and `docker exec`: {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} "
            "not on PATH"
        )
    if registry is None:
        return StepFailed(
            f"context {place.context} is not a kind cluster and no `registry` is configured — set "
            f"`registry` in {names.CONFIG_FILE} (from env) so the image can be pushed (ADR-0019)"
        )
    return None


def not_built(ref: str, checkout: str) -> StepFailed:
    """Return the error of Kit images that were not built yet."""
    return StepFailed(
        f"the Kit images of this checkout are not built ({ref}) — run "
        f"{checkout}/scripts/build-kit-images, then re-run `jr2 up`"
    )
