"""The programs that the Converge starts, found on this machine.

A program on PATH is asked for its version, which takes a while. So all are asked at once and in the
background, while the Instance folder is checked; what is missing is said when it is needed.

Source: design §7.
"""

from __future__ import annotations

import functools
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Final, TypeVar

from jr2 import errors
from jr2_infra.tooling import FindPrograms, FindTooling, Programs, Tooling

_NAMES: Final = ("pulumi", "pulumi-resource-kubernetes", "kubectl")

_T = TypeVar("_T")


def look_for_programs() -> FindPrograms:
    """Look for what a converge needs beside an engine that somebody else started.

    Returns:
        What waits for all of it. It raises a `StepFailed` when kubectl is missing.
    """
    from . import local_cluster, tools
    from .tools import catalogue, lookup

    local_import = _in_background(local_cluster.local_import)
    asked = _in_background(functools.partial(lookup.find, catalogue.BY_NAME["kubectl"]))

    def find() -> Programs:
        found = asked.result()
        if found.path is None:
            raise errors.StepFailed(tools.missing_text([found]))
        return Programs(
            kubectl=found.path,
            local_import=local_import.result(),
            kind=_on_path("kind"),
            docker=_on_path("docker"),
        )

    return find


def look_for_tooling() -> FindTooling:
    """Look for the engine, its plugin and kubectl, and the local cluster when one runs.

    Returns:
        What waits for all of them. It raises a `StepFailed` that names each missing program and
        `jr2 tools install`.
    """
    from . import local_cluster, tools
    from .tools import catalogue, lookup

    local_import = _in_background(local_cluster.local_import)
    asked = [
        _in_background(functools.partial(lookup.find, catalogue.BY_NAME[name])) for name in _NAMES
    ]

    def find() -> Tooling:
        found = [item.result() for item in asked]
        missing = [item for item in found if item.path is None]
        if missing:
            raise errors.StepFailed(tools.missing_text(missing))
        pulumi, plugin, kubectl = (item.path for item in found if item.path is not None)
        return Tooling(
            pulumi=pulumi,
            kubernetes_plugin=plugin,
            kubectl=kubectl,
            local_import=local_import.result(),
            kind=_on_path("kind"),
            docker=_on_path("docker"),
        )

    return find


def _on_path(name: str) -> Path | None:
    """Find a program that jr2 uses only where a person has it already."""
    found = shutil.which(name)
    return Path(found) if found else None


def _in_background(function: Callable[[], _T]) -> Future[_T]:
    """Call a function in a thread that a command which ends early does not wait for."""
    future: Future[_T] = Future()

    def call() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    return future
