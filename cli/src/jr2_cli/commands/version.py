"""`jr2 version`: the command, the Instance's Kit, and what the cluster runs.

Every probe does what it can: what cannot be found out becomes a word in its row, and the exit code
is 0 in any case.

Source: seed 002, spec/converge.md §2.5.
"""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from jr2 import errors, names, repo_identity

from .. import handoff, instance_folder, output, versions
from ..target import ClusterTarget, Link, Target


def version(
    *,
    local: Annotated[bool, Parameter(negative="")] = False,
    json: Annotated[bool, Parameter(negative="")] = False,
    target: Target = Target(),  # noqa: B008 (frozen)
) -> int:
    """Show the versions of the command, of the Instance's Kit, and of what the cluster runs.

    The exit code is 0 in any case.

    Args:
        local: ask no cluster.
        json: show one JSON object.
        target: the options that name an Orchestrator.
    """
    root = instance_folder.find(Path.cwd())
    instance = None if root is None else _instance(root)
    report = versions.Report(
        version=names.KIT_VERSION,
        path=str(Path(handoff.__file__).resolve().parent),
        python=platform.python_version(),
        handed_off_from=handoff.origin(),
        instance=instance,
        deployed=None if local else _deployed(instance, target),
    )
    out = output.current()
    if json:
        out.result(versions.as_json(report))
    else:
        out.text(versions.rows(report))
    return 0


def _instance(root: Path) -> versions.Instance:
    from jr2_infra.facts import instance as facts
    from jr2_infra.facts import kit as kits

    config_error = None
    try:
        found = kits.read_kit(root)
    except errors.Jr2Error as error:
        # Nobody knows then what is pinned; which Kit is there stays worth saying.
        found, config_error = kits.read_kit(root, pinned=False), str(error)
    kit = versions.Kit(
        version=found.resolved.version if found.resolved else None,
        path=str(found.resolved.path) if found.resolved else None,
        against_version=found.running.version,
        against_path=str(found.running.path),
        agrees=found.agrees,
        pinned=found.kit_pin,
    )
    checkout = kits.find_checkout(found.resolved.path) if found.resolved else None
    name, registry = root.name, names.KIT_HOME
    # A config is imported together with the Kit, so one of another Kit says nothing more.
    if found.agrees:
        try:
            config = facts.read_config(root)
            name = config.name or root.name
            registry = config.kit_registry or names.KIT_HOME
        except errors.Jr2Error as error:
            config_error = str(error)
    return versions.Instance(
        name=name,
        root=str(root),
        kit=kit,
        checkout=None if checkout is None else str(checkout),
        registry=registry,
        config_error=config_error,
    )


def _deployed(instance: versions.Instance | None, target: Target) -> versions.Deployed | None:
    if target.url:
        link = Link(url=target.url.rstrip("/"), token=None)
        return versions.Deployed(
            url=repo_identity.shown(target.url), orchestrator=_asked(link, image=None)
        )
    # Unlike the other verbs, this one refuses no Instance of another Kit version.
    namespace = target.namespace or (None if instance is None else instance.name)
    if namespace is None:
        return None
    from jr2_infra import kube

    try:
        context = kube.load_context(target.context)
    except errors.Jr2Error as error:
        return versions.Deployed(orchestrator=versions.Orchestrator(error=str(error)))
    return _in_cluster(ClusterTarget(context=context, namespace=namespace))


def _in_cluster(cluster: ClusterTarget) -> versions.Deployed:
    context, namespace = cluster.context.name, cluster.namespace
    try:
        orchestrator = cluster.get(_deployment(namespace, names.ORCHESTRATOR))
        operator = cluster.get(_deployment(names.SYSTEM_NAMESPACE, names.OPERATOR))
    except errors.Jr2Error as error:
        asked = versions.Orchestrator(error=str(error))
        return versions.Deployed(context=context, namespace=namespace, orchestrator=asked)
    if orchestrator is None:
        asked = versions.Orchestrator(error="not deployed")
    else:
        link = Link(url=None, token=None, cluster=cluster)
        asked = _asked(link, image=_image(orchestrator))
    labels = ((operator or {}).get("metadata") or {}).get("labels") or {}
    return versions.Deployed(
        context=context,
        namespace=namespace,
        orchestrator=asked,
        operator=versions.Operator(
            version=labels.get(names.LABEL_VERSION),
            image=None if operator is None else _image(operator),
        ),
    )


def _asked(link: Link, *, image: str | None) -> versions.Orchestrator:
    try:
        health = link.client.health()
    except errors.Jr2Error as error:
        return versions.Orchestrator(image=image, error=str(error).splitlines()[0])
    finally:
        link.drop()
    return versions.Orchestrator(version=health.version, hash=health.hash, image=image)


def _deployment(namespace: str, name: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"


def _image(deployment: dict[str, Any]) -> str | None:
    containers = deployment["spec"]["template"]["spec"]["containers"]
    return str(containers[0]["image"]) if containers else None
