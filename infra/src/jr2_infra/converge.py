"""`jr2 up`: the steps in the order of the seeds, from the folder to `converged`.

A refusal of steps 1–7 leaves every object of the cluster as it was, but for the namespace that
step 6 made. What speaks to a cluster is loaded while the Instance's own interpreter reads the
folder, so that a converge with nothing to do is over in about a second.

Source: seed 000 (What jr2 up does), design §5.1 and §8, spec/converge.md §4.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from . import check, kube
from .facts.instance import WorkflowFacts
from .report import Prompter, Reporter
from .rules import Place
from .tooling import FindTooling

_SESSION: Final = "jr2_infra.session"
CONVERGED: Final = "converged — `jr2 run <workflow>` when ready"


_writes = threading.Event()


def begin_to_write() -> None:
    """Remember that this process writes to the cluster from now on."""
    _writes.set()


def has_written() -> bool:
    """Whether an object of the cluster may have changed; a Lease that was taken does not count."""
    return _writes.is_set()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """What a person asked `jr2 up` for.

    Args:
        root: the Instance folder.
        context: the kubectl context; the current one when it is not named.
        namespace: the namespace; the Instance's name when it is not named.
        yes: answer yes to the question of the first contact.
        force: build each Sandbox Image again.
        skip_provider_preflight: do not check the models.
    """

    root: Path
    context: str | None
    namespace: str | None
    yes: bool
    force: bool
    skip_provider_preflight: bool


def up(
    options: UpOptions,
    find_tooling: FindTooling,
    reporter: Reporter,
    prompter: Prompter,
    *,
    before_config: Callable[[], None],
) -> None:
    """Converge; return only for `converged`.

    Args:
        options: what was asked for.
        find_tooling: says where the programs are; asked once, before the first write.
        reporter: where the lines go.
        prompter: asks where an ssh key comes from.
        before_config: fills the environment that the config reads, and says so.

    Raises:
        Jr2Error: the refusal or the error, as it is printed.
    """
    _writes.clear()
    # The walk is another process: what the session needs is loaded beside it.
    loading = threading.Thread(target=_load_session)
    loading.start()
    opened = check.open_instance(options.root, reporter, before_config=before_config)
    place = Place(
        instance=opened.name,
        context=kube.context_name(options.context),
        namespace=options.namespace or opened.name,
    )
    reporter.line(
        f'jr2 up — instance "{place.instance}" → context {place.context} / namespace '
        f"{place.namespace}",
        code="header",
    )
    instance = check.check_machines(opened, reporter)
    reporter.line(agents_line(instance.workflows), code="agents")
    loading.join()
    from . import session

    after = session.converge(
        place,
        instance,
        yes=options.yes,
        force=options.force,
        find_tooling=find_tooling,
        reporter=reporter,
        prompter=prompter,
    )
    reporter.line(CONVERGED, code="converged")
    for line in after:
        reporter.line(line, code="git-ssh")


def agents_line(workflows: Sequence[WorkflowFacts]) -> str:
    """Return the line that names the Agents which the Machines carry."""
    slots = sorted({agent.slot for workflow in workflows for agent in workflow.parts.agents})
    carried = f"carried by {len(workflows)} workflow machine(s)"
    return f"agents: {', '.join(slots) or '(none)'} ({carried})"


def _load_session() -> None:
    # What fails here fails again where it is imported for its use; a command that ends meanwhile
    # makes it fail, and has said its last line already.
    with contextlib.suppress(Exception):
        importlib.import_module(_SESSION)
