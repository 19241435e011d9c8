"""What `jr2 version` says: of the command, the Instance's Kit, and what the cluster runs.

Pure: values in, rows and JSON out. Every part but the command's own may be missing, since each is
probed as well as it can be.

Source: seed 002, spec/converge.md §2.5 (version rows, version --json, skew).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from jr2 import names
from jr2_infra import versions as order

Skew = Literal["same", "behind", "ahead", "unknown"]
"""Where what is deployed stands against the Kit of this command."""

_SKEW_ROWS: dict[Skew, str] = {
    "behind": "deployed predates this kit — `jr2 up` converges it",
    "ahead": (
        "deployed is newer than this kit — `jr2 up` would roll the orchestrator back; the operator "
        "is never downgraded"
    ),
}
_LABEL_WIDTH = len("orchestrator: ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """The Kit of an Instance, against this command.

    Args:
        version: that of the copy which the Instance imports; `None` when it imports none.
        path: that copy.
        against_version: the version of the copy that this command runs against.
        against_path: that copy.
        agrees: both are one copy, of this command's version.
        pinned: the exact version that pyproject.toml pins.
    """

    version: str | None
    path: str | None
    against_version: str
    against_path: str
    agrees: bool
    pinned: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """The Instance that the command stands in.

    Args:
        name: its name; the folder's when the config does not load.
        root: its folder.
        kit: its Kit.
        checkout: the checkout that its Kit is, for an editable one.
        registry: where the images of an installed Kit come from.
        config_error: why its config does not load.
    """

    name: str
    root: str
    kit: Kit
    checkout: str | None
    registry: str
    config_error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Orchestrator:
    """The Orchestrator that is deployed, as far as it could be asked.

    Args:
        version: its Kit version.
        hash: the current Assembly.
        image: the image that its Deployment names.
        error: why it could not be asked.
    """

    version: str | None = None
    hash: str | None = None
    image: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """The operator of the cluster.

    Args:
        version: the Kit version that put it there.
        image: the image that its Deployment names.
    """

    version: str | None
    image: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """What was found at the target of the options.

    Args:
        url: the address, when one was given.
        context: the context, when a cluster was asked.
        namespace: the namespace, when a cluster was asked.
        orchestrator: the Orchestrator there.
        operator: the operator of the cluster, when there is one.
    """

    url: str | None = None
    context: str | None = None
    namespace: str | None = None
    orchestrator: Orchestrator
    operator: Operator | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that `jr2 version` found.

    Args:
        version: the version of this command.
        path: its package.
        python: the version of the interpreter that runs it.
        handed_off_from: `<version> <path>` of the global command, after a Handoff.
        instance: the Instance, when the command stands in one.
        deployed: what is deployed, when it was asked for.
    """

    version: str
    path: str
    python: str
    handed_off_from: str | None = None
    instance: Instance | None = None
    deployed: Deployed | None = None

    @property
    def skew(self) -> Skew:
        """Where what is deployed stands against the Kit of this command."""
        if self.deployed is None:
            return "unknown"
        operator = self.deployed.operator
        found = self.deployed.orchestrator.version or (operator.version if operator else None)
        return compare(found, self.version)


def compare(deployed: str | None, kit: str) -> Skew:
    """Say where a deployed version stands against a Kit version."""
    if deployed is None:
        return "unknown"
    if order.is_newer(deployed, kit):
        return "ahead"
    return "behind" if order.is_newer(kit, deployed) else "same"


def rows(report: Report) -> str:
    """Write the report for a person, one row for each thing that there is to say."""
    found = [("cli", f"{report.version} {report.path}")]
    if report.handed_off_from is not None:
        found.append(("global", report.handed_off_from))
    instance = report.instance
    if instance is not None:
        found.append(("kit", _kit_row(instance.kit)))
        source = (
            f"installed kit → {instance.registry}"
            if instance.checkout is None
            else f"kit of the checkout {instance.checkout}"
        )
        found.append(("instance", f"{instance.name} {instance.root} ({source})"))
        if instance.config_error is not None:
            found.append(("config", instance.config_error))
    found.append(("python", report.python))
    lines = [_row(label, text) for label, text in found]
    if report.deployed is not None:
        lines += ["", *(_row(label, text) for label, text in _deployed_rows(report.deployed))]
        verdict = _SKEW_ROWS.get(report.skew)
        if verdict is not None:
            lines.append(_row("skew", verdict))
    return "\n".join(lines)


def as_json(report: Report) -> dict[str, Any]:
    """Write the report as one object; what is not known has no key."""
    return _known(
        {
            "cli": {"version": report.version, "path": report.path},
            "global": report.handed_off_from,
            "python": report.python,
            "instance": None if report.instance is None else _instance_json(report.instance),
            "kit": None if report.instance is None else _kit_json(report.instance.kit),
            "deployed": None if report.deployed is None else _deployed_json(report.deployed),
            "skew": report.skew,
        }
    )


def _row(label: str, text: str) -> str:
    first, *more = text.splitlines() or [""]
    indent = " " * _LABEL_WIDTH
    return "\n".join(
        [f"{f'{label}:'.ljust(_LABEL_WIDTH)}{first}", *(f"{indent}{line}" for line in more)]
    )


def _kit_row(kit: Kit) -> str:
    if kit.version is None:
        said = "not installed"
    elif kit.agrees:
        said = f"{kit.version} {kit.path} ok"
    else:
        said = (
            f"{kit.version} {kit.path} MISMATCH — this jr2 ({names.KIT_VERSION}) runs against "
            f"{kit.against_version} ({kit.against_path})"
        )
    if kit.pinned is not None and kit.pinned != kit.version:
        said += f"; pyproject.toml pins {kit.pinned} — reinstall"
    return said


def _deployed_rows(deployed: Deployed) -> list[tuple[str, str]]:
    orchestrator = deployed.orchestrator
    parts = []
    if orchestrator.version is not None:
        parts.append(
            f"assembly {orchestrator.hash[: names.SHORT_HASH]}"
            if orchestrator.hash
            else "no assembly"
        )
    if orchestrator.image is not None:
        parts.append(orchestrator.image)
    elif orchestrator.version is not None:
        parts.append(f"jr2 {orchestrator.version}")
    if orchestrator.error is not None:
        parts.append(f"({orchestrator.error})" if parts else orchestrator.error)
    found = [("orchestrator", " ".join(parts))]
    operator = deployed.operator
    if operator is not None:
        said = [part for part in (operator.version, operator.image) if part]
        found.append(("operator", " ".join(said) or "not deployed"))
    return found


def _instance_json(instance: Instance) -> dict[str, Any]:
    return _known(
        {
            "name": instance.name,
            "root": instance.root,
            "mode": "installed" if instance.checkout is None else "checkout",
            "kitCheckout": instance.checkout,
            "kitRegistry": instance.registry if instance.checkout is None else None,
            "configError": instance.config_error,
        }
    )


def _kit_json(kit: Kit) -> dict[str, Any]:
    verdict = "unresolved" if kit.version is None else "ok" if kit.agrees else "mismatch"
    against = {"version": kit.against_version, "path": kit.against_path}
    return _known(
        {
            "version": kit.version,
            "path": kit.path,
            "pinned": kit.pinned,
            "check": verdict,
            "against": None if kit.agrees else against,
        }
    )


def _deployed_json(deployed: Deployed) -> dict[str, Any]:
    orchestrator, operator = deployed.orchestrator, deployed.operator
    return _known(
        {
            "url": deployed.url,
            "context": deployed.context,
            "namespace": deployed.namespace,
            "orchestrator": _known(
                {
                    "version": orchestrator.version,
                    "hash": orchestrator.hash,
                    "image": orchestrator.image,
                    "error": orchestrator.error,
                }
            ),
            "operator": None
            if operator is None
            else _known({"version": operator.version, "image": operator.image}),
        }
    )


def _known(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
