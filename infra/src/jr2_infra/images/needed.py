"""Step 8: for which platforms images are needed, which nodes hold Sandboxes, and the way to them.

Everything is said and refused in the order of the seeds: platforms, Sandbox nodes, Sizes, the way
of an image to the nodes, the builder.

Source: seed 003 (Rules), spec/converge.md §4 step 8 and §7.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jr2 import names
from jr2.errors import Jr2Error

from .. import rules
from ..facts.cluster import Contact
from ..facts.instance import InstanceFacts
from ..nodes import placement, platforms, sandboxes
from ..report import Reporter, line_code
from ..rules import KitRefs, Place
from ..tooling import Programs
from .checkout import built_platform
from .sandbox import builder, contexts
from .sandbox.builder import Builder


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What step 8 judges.

    Args:
        place: where.
        instance: what the folder says.
        contact: what the cluster said first, with its nodes unless the config names platforms.
        refs: the Kit images.
        programs: what this machine has.
        server: the address of the API server.
    """

    place: Place
    instance: InstanceFacts
    contact: Contact
    refs: KitRefs
    programs: Programs
    server: str


def decide_images(needs: Needs, reporter: Reporter) -> tuple[str, ...]:
    """Say what images are needed for, and return their platforms.

    Args:
        needs: the facts.
        reporter: gets the lines and the warnings.

    Raises:
        StepFailed: the Kit has no image for the nodes, or an image cannot be built for them or
            brought to them.
    """
    config, instance = needs.instance.config, needs.instance
    placed = placement.of_sandboxes(config.sandbox)
    found = platforms.decide(config.platforms, needs.contact.nodes, placed)
    _say(reporter, found.lines)
    _sandbox_nodes(needs, placed, reporter)
    parts = [workflow.parts for workflow in instance.workflows]
    folders = contexts.contexts(instance.root, parts)
    problem = _no_way(needs, found.platforms, folders)
    if problem is not None:
        raise problem
    _say(reporter, (needs.refs.line,))
    problem = _cannot_build(needs, found.platforms) if folders else None
    if problem is not None:
        raise problem
    _say(reporter, (contexts.line(instance.root, parts, folders),))
    return found.platforms


def _sandbox_nodes(needs: Needs, placed: placement.Placement, reporter: Reporter) -> None:
    """Judge the nodes for Sandboxes; where no Machine makes one, nothing is said of them."""
    sizes = [
        sandboxes.SandboxSize(workflow=workflow.name, memory=one.memory, cpu=one.cpu)
        for workflow in needs.instance.workflows
        for one in workflow.parts.sandboxes
    ]
    if not sizes or needs.instance.config.platforms is not None:
        return
    found = sandboxes.judge(needs.contact.nodes, placed, sizes)
    if found.line is not None:
        _say(reporter, (found.line,))
    for warning in found.warnings:
        reporter.warning(warning, code="sandbox-nodes")


def _no_way(needs: Needs, found: Sequence[str], folders: Sequence[Path]) -> Jr2Error | None:
    """Return why an image that jr2 brings to the nodes cannot get there."""
    registry, programs = needs.instance.config.registry, needs.programs
    if folders:
        problem: Jr2Error | None = builder.check_manifest_list(found, registry)
        if problem is not None:
            return problem
    if not folders and not needs.refs.imported:
        return None
    local = programs.local_import
    problem = rules.check_delivery(
        needs.place,
        server=needs.server,
        local_server=None if local is None else local.server,
        kind={"kind": programs.kind, "docker": programs.docker},
        registry=registry,
    )
    pushed = needs.refs.imported and rules.push_home(needs.place, registry) is not None
    if problem is None and pushed:
        return rules.check_pushed_platforms(found, built_platform())
    return problem


def _cannot_build(needs: Needs, found: Sequence[str]) -> Jr2Error | None:
    """Ask the builder, which takes a moment and so is done only when there is something to build."""
    asked = _builder(needs)
    return None if asked is None else builder.check_emulation(found, asked.platforms())


def _builder(needs: Needs) -> Builder | None:
    """Return what builds Sandbox Images: the BuildKit of the local cluster, or Docker's."""
    local, docker = needs.programs.local_import, needs.programs.docker
    if needs.place.context == names.LOCAL_CONTEXT:
        if local is None or local.buildctl is None or local.buildkit is None:
            return None
        return builder.LocalBuildKit(local.buildctl, local.buildkit)
    return None if docker is None else builder.Buildx(docker)


def _say(reporter: Reporter, lines: Sequence[str]) -> None:
    for line in lines:
        reporter.line(line, code=line_code(line))
