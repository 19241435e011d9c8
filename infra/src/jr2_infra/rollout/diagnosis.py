"""Explain the evidence of a failed rollout, when its cause is known.

Five causes are known. A diagnosis speaks of the evidence above it and of nothing else; with no
cause known there is none.

Source: seed 001 (the table of diagnoses), spec/converge.md §6.5.
"""

from __future__ import annotations

import re
from typing import Final

from jr2 import names

from . import events, pods
from .evidence import Evidence, PodEvidence
from .workload import Workload

_OTHER_PLATFORM: Final = re.compile(r"exec format error", re.IGNORECASE)
_MISSING_KEY: Final = re.compile(
    r"couldn't find key (?P<key>\S+) in (?P<kind>Secret|ConfigMap) \S*?/?(?P<name>[^/\s]+)$",
    re.MULTILINE,
)
_VOLUME: Final = re.compile(r"volume \"(?P<volume>[^\"]+)\"")


def diagnose(evidence: Evidence) -> str | None:
    """Return the diagnosis of the first pod that has one, its first line beginning `diagnosis:`."""
    for item in evidence.shown:
        found = _of_pod(item, evidence.workload)
        if found:
            return found
    return None


def resolved(ref: str) -> str:
    """Return the full address that a node pulls a ref from."""
    first, slash, _ = ref.partition("/")
    if slash and (("." in first) or (":" in first) or first == "localhost"):
        return ref
    return f"docker.io/{ref}" if slash else f"docker.io/library/{ref}"


def _of_pod(item: PodEvidence, workload: Workload) -> str | None:
    name = pods.name_of(item.pod)
    containers = list(pods.containers(item.pod))
    for container in containers:
        if _OTHER_PLATFORM.search(_words_of(container, item)):
            return _other_platform(name, item, container)
    for container in containers:
        if container.reason in pods.PULL_REASONS:
            return _not_pulled(container.image)
    for container in containers:
        if container.is_crash_loop:
            return _starts_and_exits(name, container, item, workload)
    for container in containers:
        if container.reason in pods.CONFIG_REASONS:
            return _no_configuration(container, workload)
    return _no_volume(item.failed_mount, workload) if item.failed_mount else None


def _words_of(container: pods.ContainerState, item: PodEvidence) -> str:
    """Return what is known to be said by, or about, one container."""
    words = [container.message, container.last_message]
    if item.log and item.log.container == container.name:
        words += item.log.lines
    return "\n".join(words)


def _other_platform(name: str, item: PodEvidence, container: pods.ContainerState) -> str:
    node = item.architecture or "unknown"
    return (
        f"diagnosis: {name} carries an image built for another platform than its node's ({node}).\n"
        f"  the image is {container.image}\n"
        "  `jr2 up --force` builds it again for the platforms of this cluster; `platforms` in "
        "jr2_config.py names them."
    )


def _not_pulled(image: str) -> str:
    address = resolved(image)
    if image.startswith(f"{names.CHECKOUT_HOME}/"):
        hint = (
            "it is an image of this checkout, which reaches a node by import and never by a pull: "
            "`jr2 up` imports what the node lacks."
        )
    elif address != image:
        hint = (
            "the name has no registry, so only a delivery puts it on a node: `jr2 up --force` "
            "builds and delivers it again."
        )
    else:
        hint = (
            "check the push landed there and that this cluster may pull from it (credentials, "
            "network, mirror)."
        )
    return f"diagnosis: the kubelet could not pull {image}.\n  it resolves to {address}\n  {hint}"


def _starts_and_exits(
    name: str, container: pods.ContainerState, item: PodEvidence, workload: Workload
) -> str:
    which = "init container" if container.init else "container"
    exited = container.last_exit if container.exit_code is None else container.exit_code
    code = f" with {exited}" if exited is not None else ""
    if item.log and item.log.lines and item.log.container == container.name:
        hint = "the log lines above are its last words."
    elif container.last_message:
        hint = "the message of the container above says why."
    else:
        hint = (
            "it left no log line; once it has started again: "
            f"kubectl -n {workload.namespace} logs {name} -c {container.name} --previous"
        )
    return (
        f"diagnosis: {name} starts and exits: its {which} {container.name} ended{code}.\n  {hint}"
    )


def _no_configuration(container: pods.ContainerState, workload: Workload) -> str:
    missing = events.missing_object(container.message)
    if missing and missing[1]:
        kind, name, _ = missing
        return (
            f'diagnosis: the pod\'s env references {kind} "{name}", which is not in '
            f"namespace {workload.namespace}.\n  make it, then run `jr2 up` again."
        )
    key = _MISSING_KEY.search(container.message)
    if key:
        return (
            f'diagnosis: the pod\'s env references {key["kind"]} "{key["name"]}", which has no key '
            f"{key['key']} in namespace {workload.namespace}.\n"
            "  add it, then run `jr2 up` again."
        )
    return (
        "diagnosis: the container's configuration cannot be built: the message of container "
        f"{container.name} above says why."
    )


def _no_volume(text: str, workload: Workload) -> str:
    """Explain a volume that names what is not there; `text` is what the kubelet says of it."""
    kind, name, key = events.missing_object(text) or ("", "", "")
    found = _VOLUME.search(text)
    volume = f'its volume "{found["volume"]}"' if found else "a volume"
    where = f"namespace {workload.namespace}"
    if name:
        what, fix = f'needs {kind} "{name}", which is not in {where}', "make it"
    else:
        what, fix = f"needs the key {key} of a {kind}, which has no such key in {where}", "add it"
    return (
        f"diagnosis: the container's configuration cannot be built: {volume} {what}.\n"
        f"  {fix}, then run `jr2 up` again."
    )
