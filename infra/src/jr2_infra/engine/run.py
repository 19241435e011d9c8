"""One run of the engine over a program and the cluster as it was read.

Source: design §5.1–5.4.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from jr2.errors import StepFailed

from .. import process_table
from ..derived import Sealer, checkpoint, settled
from ..derived.live import LiveObject, LiveObjects
from ..report import Reporter
from ..resources import Program
from ..tooling import Tooling
from . import run_file
from .environment import RunPaths, environment, write_files
from .events import EngineEvents, StepOutcome
from .failure import read_failure
from .folder import run_folder
from .minded import Started


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineResult:
    """What the engine did, or would do.

    Args:
        steps: the outcome of each resource, in the order in which the engine came to them.
    """

    steps: tuple[StepOutcome, ...]

    @property
    def changed(self) -> tuple[StepOutcome, ...]:
        """The resources that are not `same`."""
        return tuple(step for step in self.steps if step.operation != "same")


def run_engine(
    program: Program,
    live: LiveObjects,
    *,
    tooling: Tooling,
    kubeconfig_text: str,
    run_settings: Mapping[str, str],
    reporter: Reporter,
    preview: bool = False,
    surplus: Sequence[LiveObject] = (),
    started: Callable[[int, str, str], None] | None = None,
    folder_root: Path | None = None,
) -> EngineResult:
    """Run the engine; when this returns, or raises, nothing that it started still runs.

    Args:
        program: what is wanted.
        live: what the cluster holds; the checkpoint is derived from it.
        tooling: where the engine and its plugin are.
        kubeconfig_text: a kubeconfig with one context and its data inlined.
        run_settings: what the dynamic providers are told besides kubeconfig, kubectl and the
            command's own process.
        reporter: where the lines of the program and of its providers go.
        preview: compute only; nothing is changed.
        surplus: live objects of the closed list that the program no longer holds.
        started: is told session, start and mark of the engine's processes as soon as they exist.
        folder_root: where the run's folder is made; in memory when it is not given.

    Raises:
        Jr2Error: what a dynamic provider said.
        StepFailed: what the engine said, on one line.
    """
    wanted = settled(program, live)
    with run_folder(folder_root) as folder, ThreadPoolExecutor(1) as pool:
        # The key takes a third of a second, and so does the import of Pulumi.
        making = pool.submit(Sealer)
        from . import automation

        sealer = making.result()
        paths = RunPaths(folder=folder)
        write_files(
            paths,
            wanted,
            checkpoint(wanted, live, sealer, surplus),
            sealer,
            tooling,
            kubeconfig_text,
        )
        run_file.write_run_file(
            paths.run_file,
            {
                **run_settings,
                run_file.KUBECONFIG: str(paths.kubeconfig),
                run_file.KUBECTL: str(tooling.kubectl),
                run_file.WRAPPER_PID: str(os.getpid()),
                run_file.WRAPPER_START: process_table.start_of(os.getpid()) or "",
            },
        )
        events = EngineEvents(wanted, reporter)
        try:
            automation.run(
                wanted,
                lambda: _declare(wanted),
                paths=paths,
                engine=tooling.pulumi,
                env=environment(paths, sealer),
                preview=preview,
                on_event=events,
                started=_told(started, str(paths.run_file)),
            )
        except automation.EngineFailed as failed:
            raise (
                read_failure(paths.failure)
                or StepFailed(events.error() or _last_words(failed.code, failed.stderr))
            ) from None
        finally:
            reporter.progress(None)
        return EngineResult(steps=tuple(events.steps.values()))


def _declare(program: Program) -> None:
    from ..program import declare

    declare(program)


def _told(started: Callable[[int, str, str], None] | None, mark: str) -> Started:
    def tell(session: int, start: str) -> None:
        if started is not None:
            started(session, start, mark)

    return tell


def _last_words(code: int, stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return f"the Pulumi engine failed: {lines[-1] if lines else f'it ended with {code}'}"
