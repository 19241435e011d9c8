"""One run of the program under an engine that somebody else started.

A preview reads and declares. A run that applies takes the Lease first, as `jr2 up` does, plans once
more under it, and writes what its steps need into a folder of its own. The engine ends the program
when everything was applied and deleted; only then are Lease and folder given back. When something
failed, other steps may still be under way, so the Lease is left to lapse: the next run sees in five
seconds that nobody renews it.

Source: design §5.1–5.4, ADR-0123.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import json
import os
import signal
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pulumi
from pulumi.runtime import config as stack_config

from jr2.errors import Jr2Error

from .. import assembly, check, kube, private, process_table
from ..engine import folder, run_file
from ..facts import instance as instance_facts
from ..git import unanswered
from ..graph import PUBLISH
from ..leases import Leases, held_leases
from ..program import KubernetesProvider, declare
from ..rules import Place
from ..seen import plan_under
from ..session import Session, reach
from ..steps.surroundings import SETTING_OBJECTS
from ..tooling import FindPrograms
from . import steps
from .settings import PlainSettings, read_settings
from .words import PulumiReporter, stop

if TYPE_CHECKING:
    from ..resources import Program

FillEnvironment = Callable[[Path, PulumiReporter], None]
"""Fills the environment that the config of an Instance folder reads, and says so."""

_open: Final[list[_Held]] = []
"""What is held until the engine ends the program."""


class _Held:
    """What one run holds: its Leases and its folders.

    Args:
        stack: gives all of it back.
    """

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self.stack = stack
        self.leases: Leases | None = None
        self.settle: Callable[[], None] | None = None

    def end(self, *, well: bool) -> None:
        """Give all of it back, but for the Leases of a run that failed."""
        if well and self.settle is not None:
            # The next run does it as well: the objects carry their marks.
            with contextlib.suppress(Jr2Error):
                self.settle()
        if self.leases is not None and not well:
            self.leases.lapse()
        self.stack.close()


def main(find_programs: FindPrograms, fill_environment: FillEnvironment) -> None:
    """Declare the Converge of the Instance that the stack's config names.

    Args:
        find_programs: says where the programs are.
        fill_environment: is called before the config is read.
    """
    with contextlib.ExitStack() as stack:
        held = _Held(stack)
        try:
            program, provider = _plan(held, find_programs, fill_environment)
        except Jr2Error as error:
            # Nothing was handed to the engine yet.
            held.end(well=True)
            stop(error)
        held.stack = stack.pop_all()
    _open.append(held)
    task = asyncio.current_task()
    assert task is not None, "Pulumi runs a program inside a task of its own"
    task.add_done_callback(_over)
    # An engine that is gone ends the process before the task is done.
    atexit.register(_end, well=False)
    declare(program, kubernetes=provider)


def _over(task: asyncio.Task[Any]) -> None:
    """Give back what the run held, once the engine is done with the program."""
    # An engine that is cancelled interrupts the program also when it is about to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end(well=not task.cancelled() and task.exception() is None)


def _end(*, well: bool) -> None:
    while _open:
        _open.pop().end(well=well)


def _plan(
    run: _Held, find_programs: FindPrograms, fill_environment: FillEnvironment
) -> tuple[Program, KubernetesProvider]:
    held = run.stack
    reporter, applies = PulumiReporter(), not pulumi.runtime.is_dry_run()
    settings = read_settings(_config(), Path.cwd())
    place, instance = _open_instance(settings, reporter, fill_environment, applies=applies)
    staged = assembly.stage(instance)
    context = reach(place)
    http = held.enter_context(context.http())
    session = Session(
        place,
        instance,
        yes=False,
        force=False,
        context=context,
        http=http,
        find_tooling=find_programs,
        reporter=reporter,
        writes=applies,
    )
    seen = session.look(staged)
    if seen.plan.missing_keys:
        # Pulumi has no menu, and a key that it made would stand in its state.
        raise unanswered(seen.plan.missing_keys[0], place.namespace)
    plan, nonce = seen.plan, steps.PREVIEW
    if applies:
        session.check_rights(plan)
        leases = run.leases = held.enter_context(held_leases(http, reporter))
        own = leases.hold(place.namespace)
        if steps.holds_shared(plan.program, place.namespace):
            # Any difference from the remembered state is applied, whatever the live objects say.
            leases.hold_shared()
        plan = plan_under(leases, plan, lambda: session.look_again(seen))
        run.settle = functools.partial(session.settle, plan, session.write_down(plan))
        parcels = held.enter_context(folder.run_folder(Path(tempfile.gettempdir())))
        parcel = parcels / "assembly"
        if any(item.resource == PUBLISH for item in plan.differences):
            assembly.write_parcel(seen.staged.parts, parcel)
        own_folder = held.enter_context(folder.run_folder())
        nonce = folder.random_of(own_folder)
        objects = own_folder / "objects.json"
        private.write_file(
            objects, json.dumps(steps.healed_objects(plan.program, plan.drifted)).encode()
        )
        told = session.run_settings(plan, leases, own.stamp.header(), seen.staged, parcel)
        told[SETTING_OBJECTS] = str(objects)
        _write_run(own_folder, context, told, session.kubectl)
    session.say(plan)
    for text in plan.drift:
        reporter.warning(text)
    provider = KubernetesProvider(context=place.context, cluster=seen.contact.cluster_uid)
    return steps.with_runs(steps.with_healing(plan.program, plan.drifted), nonce), provider


def _open_instance(
    settings: PlainSettings,
    reporter: PulumiReporter,
    fill_environment: FillEnvironment,
    *,
    applies: bool,
) -> tuple[Place, instance_facts.InstanceFacts]:
    """Do steps 1 to 3; the block of `AGENTS.md` is written when the run applies."""
    root = instance_facts.find_root(settings.instance)
    opened = check.open_instance(
        root, reporter, agents=applies, before_config=lambda: fill_environment(root, reporter)
    )
    place = Place(
        instance=opened.name,
        context=kube.context_name(settings.context),
        namespace=settings.namespace or opened.name,
    )
    reporter.line(
        f'pulumi — instance "{place.instance}" → context {place.context} / namespace '
        f"{place.namespace}"
    )
    return place, check.check_machines(opened, reporter)


def _write_run(
    path: Path, context: kube.KubeContext, settings: Mapping[str, str], kubectl: Path
) -> None:
    kubeconfig = path / "kubeconfig"
    private.write_file(kubeconfig, context.kubeconfig_text().encode())
    run_file.write_run_file(
        path / run_file.FILE_NAME,
        {
            **settings,
            run_file.KUBECONFIG: str(kubeconfig),
            run_file.KUBECTL: str(kubectl),
            run_file.WRAPPER_PID: str(os.getpid()),
            run_file.WRAPPER_START: process_table.start_of(os.getpid()) or "",
        },
    )


def _config() -> Mapping[str, str]:
    """Return the whole config of the stack; `pulumi.Config` gives only keys that one asks for."""
    found: dict[str, str] = stack_config.CONFIG.get()
    return found or stack_config.get_config_env()
