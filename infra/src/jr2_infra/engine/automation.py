"""The Automation API with our own engine process and no further calls of the engine.

The library runs five programs around one `up`: for its version, to select the stack, and for
outputs and history that nobody reads here. Each takes a third of a second.

This module imports Pulumi; it is imported where the engine runs and nowhere else.

Source: libraries.md §2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pulumi import automation
from semver import VersionInfo

from ..resources import Program
from .environment import RunPaths
from .minded import Minded, Started

ENGINE_VERSION = "3.274.1"


class EngineFailed(Exception):
    """The engine ended with an error; its events say which."""

    def __init__(self, code: int, stderr: str) -> None:
        super().__init__(f"the engine ended with {code}")
        self.code = code
        self.stderr = stderr


class _Command(automation.PulumiCommand):  # type: ignore[misc]
    """Starts the engine under a minder, with exactly the environment that was written down."""

    def __init__(self, engine: Path, env: Mapping[str, str], started: Started) -> None:
        # The base class would run the engine once for its version, which the tools have checked.
        self.command = str(engine)
        self.version = VersionInfo.parse(ENGINE_VERSION)
        self._env = dict(env)
        self._started = started

    def run(
        self,
        args: list[str],
        cwd: str,
        additional_env: Mapping[str, str],
        on_output: Callable[[str], Any] | None = None,
        on_error: Callable[[str], Any] | None = None,
    ) -> Any:
        # What the library adds: the flag by which the engine lets events be read.
        minded = Minded(
            [self.command, "--non-interactive", *args],
            cwd=Path(cwd),
            env={**self._env, **additional_env},
        )
        try:
            self._started(minded.session, minded.start)
            code, stdout, stderr = minded.wait(on_output, on_error)
        finally:
            minded.end()
        if code != 0:
            raise EngineFailed(code, stderr)
        return automation._cmd.CommandResult(stdout=stdout, stderr=stderr, code=code)


class _Stack(automation.Stack):  # type: ignore[misc]
    """A stack that exists already, since we wrote it, and whose outputs nobody reads."""

    def __init__(self, name: str, workspace: Any) -> None:
        self.name = name
        self.workspace = workspace

    def outputs(self) -> dict[str, Any]:
        return {}

    def info(self, show_secrets: bool = True) -> Any:
        return automation.UpdateSummary("update", datetime.now(UTC), "", {}, {}, "succeeded")


def run(
    program: Program,
    declare: Callable[[], None],
    *,
    paths: RunPaths,
    engine: Path,
    env: Mapping[str, str],
    preview: bool,
    on_event: Callable[[Any], None],
    started: Started,
) -> None:
    """Run the engine once over an inline program.

    Raises:
        EngineFailed: it ended with an error.
    """
    workspace = automation.LocalWorkspace(
        work_dir=str(paths.project),
        pulumi_home=str(paths.home),
        program=declare,
        pulumi_command=_Command(engine, env, started),
    )
    stack = _Stack(program.stack, workspace)
    if preview:
        stack.preview(on_event=on_event, color="never")
    else:
        stack.up(on_event=on_event, color="never", suppress_outputs=True, suppress_progress=True)
