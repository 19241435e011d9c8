"""The first steps of a converge, which need no cluster: `jr2 check` is these and nothing else.

Two functions, so that `jr2 up` can print its header between them: `open_instance` finds out that
the Instance has the command's Kit, writes the block of `AGENTS.md` and reads the config;
`check_machines` typechecks the folder and judges what its Workflows are. One child process reads
both, since each start of a Python costs a tenth of what a converge may take. Both raise the first thing
that is wrong, in the order of the seeds.

Source: seed 000 (What jr2 up does, steps 1–3), spec/authoring.md §5, design §3, §3.1 and §5.1.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jr2 import names, quantity
from jr2.config import Config
from jr2.errors import Refusal, Usage
from jr2.walk import Problem

from . import agents_block, charts, machine_rules
from .facts import instance as facts
from .facts import kit
from .facts.instance import InstanceFacts, ReadInstance
from .git import rules as git_rules
from .report import Reporter
from .secrets import rules as secret_rules
from .secrets import trust
from .typecheck import typecheck


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenInstance:
    """An Instance whose Kit and config are right; nothing is said of its Workflows yet.

    Args:
        root: the folder's absolute path.
        name: the Instance's name.
        config: its config.
        read: what its Workflows are, as far as they loaded.
        kit_version: the version of its Kit, which is the command's.
        checkout: the root of jr2's repository when its Kit is an editable checkout.
    """

    root: Path
    name: str
    config: Config
    read: ReadInstance
    kit_version: str
    checkout: Path | None


def _nothing() -> None:
    pass


def open_instance(
    root: Path,
    reporter: Reporter,
    *,
    agents: bool = True,
    before_config: Callable[[], None] = _nothing,
) -> OpenInstance:
    """Check the Kit version, bring the block of `AGENTS.md` up to date, and read the config.

    Args:
        root: the Instance folder (`facts.instance.find_root`).
        reporter: gets the line or the warning of `AGENTS.md`, and shows what takes long.
        agents: write the block; `jr2 check` does not.
        before_config: fills the environment that the config reads, and says so.

    Raises:
        StepFailed: another Kit version, a config that does not load or has a wrong shape, or a
            name that no Instance can have.
    """
    found = facts.check_kit_version(root)
    package = found.running.path
    if agents:
        line, warning = agents_block.update(root, package, found.running.version)
        if line is not None:
            reporter.line(line, code="agents-block")
        if warning is not None:
            reporter.warning(warning, code="agents-block")
    before_config()
    read = facts.read_instance(root, reporter=reporter)
    return OpenInstance(
        root=root,
        name=facts.instance_name(root, read.config),
        config=read.config,
        read=read,
        kit_version=found.running.version,
        checkout=kit.find_checkout(package),
    )


def check_machines(opened: OpenInstance, reporter: Reporter) -> InstanceFacts:
    """Typecheck the Instance, load its Workflows, and refuse what they get wrong.

    Args:
        opened: what `open_instance` gave.
        reporter: gets the `typecheck:` line and the warnings of config and Machines.

    Raises:
        StepFailed: a checker that is not there, or a Workflow that does not load.
        Refusal: the folder does not typecheck, a Machine breaks a rule, or no images exist for this
            Kit.
    """
    for warning in config_warnings(opened.config):
        reporter.warning(f"warning: {warning}", code="config")
    typecheck(opened.root, reporter)
    found = opened.read.problems or machine_rules.problems(
        opened.read.workflows, opened.config.git.credentials, os.environ
    )
    if found:
        raise facts.problems_error(found)
    for workflow in opened.read.workflows:
        for warning in workflow.warnings:
            reporter.warning(f"warning: {warning}", code="machine")
    wrong = charts.refusals(opened.root, _drawings(opened.read))
    if wrong:
        raise facts.problems_error([Problem(prefix="refusing: ", message=one) for one in wrong])
    parts = [workflow.parts for workflow in opened.read.workflows]
    for warning in secret_rules.warnings(opened.config, parts):
        reporter.warning(f"warning: {warning}", code="config")
    insecure = secret_rules.refusal(opened.config, parts, opened.root)
    if insecure is not None:
        raise insecure
    ca_bundle = trust.read_bundle(opened.root, opened.config.harness.ca_bundle)
    refusal = unreleased(opened)
    if refusal is not None:
        raise Refusal(refusal)
    return InstanceFacts(
        root=opened.root,
        name=opened.name,
        config=opened.config,
        workflows=opened.read.workflows,
        interpreter=opened.root / kit.INTERPRETER,
        kit_version=opened.kit_version,
        checkout=opened.checkout,
        ca_bundle=ca_bundle,
    )


def check(
    root: Path, reporter: Reporter, *, before_config: Callable[[], None] = _nothing
) -> InstanceFacts:
    """Do all that `jr2 check` does, and return what it found.

    Args:
        root: the Instance folder.
        reporter: where the lines go.
        before_config: as `open_instance` takes it.

    Raises:
        Jr2Error: the first refusal or error, as `jr2 up` gives it.
    """
    opened = open_instance(root, reporter, agents=False, before_config=before_config)
    return check_machines(opened, reporter)


def write_charts(
    root: Path,
    workflows: Sequence[str],
    reporter: Reporter,
    *,
    before_config: Callable[[], None] = _nothing,
) -> None:
    """Do all that `jr2 chart` does.

    Args:
        root: the Instance folder.
        workflows: whose Charts are written; without one, those of all Workflows.
        reporter: gets a line for each.
        before_config: as `open_instance` takes it.

    Raises:
        Usage: a Workflow that the folder does not have.
        Jr2Error: the first refusal or error, as `jr2 check` gives it; nothing is written then.
    """
    opened = open_instance(root, reporter, agents=False, before_config=before_config)
    unloaded = [one for one in opened.read.problems if one.rule in ("loads", "door")]
    if unloaded:
        raise facts.problems_error(unloaded)
    drawings = _drawings(opened.read)
    for name in workflows:
        if name not in drawings:
            has = ", ".join(drawings) or "no Workflow"
            raise Usage(f'there is no workflow "{name}" (this folder has {has})')
    charts.write(root, {name: drawings[name] for name in workflows or drawings}, reporter)


def _drawings(read: ReadInstance) -> dict[str, str]:
    return {workflow.name: workflow.drawing for workflow in read.workflows}


def unreleased(opened: OpenInstance) -> str | None:
    """Return the refusal of a Kit that no images are released for, or `None`.

    A checkout builds its own Kit images, and a mirror may hold what somebody put there.
    """
    if ".dev" not in opened.kit_version or opened.checkout or opened.config.kit_registry:
        return None
    return (
        f"this jr2 is {opened.kit_version}, a version between releases: {names.KIT_HOME} holds no "
        "Kit images for it — install a released version, use an editable install of a checkout, "
        f"which builds its own, or set kit_registry in {opened.root / names.CONFIG_FILE} to a "
        "mirror that holds them (ADR-0044)"
    )


def config_warnings(config: Config) -> list[str]:
    """Return what is legal in the config and still not what was meant."""
    size = config.sandbox.resources
    said = quantity.part_of_a_byte(size.memory) if size is not None and size.memory else None
    sizes = [] if said is None else [f"sandbox.resources.memory {said}"]
    return [*sizes, *git_rules.warnings(config.git.credentials)]
