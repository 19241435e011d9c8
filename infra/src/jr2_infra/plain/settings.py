"""What a stack's config asks for: an Instance folder, a context, a namespace, and nothing else.

Source: design §5.1.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jr2.errors import StepFailed

PROJECT: Final = "jr2"
PROJECT_FILE: Final = "Pulumi.yaml"
_KEYS: Final = ("instance", "context", "namespace")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainSettings:
    """What a stack asks for.

    Args:
        instance: the Instance folder, absolute.
        context: a context of the kubeconfig; the current one when it is `None`.
        namespace: the namespace; the Instance's name when it is `None`.
    """

    instance: Path
    context: str | None
    namespace: str | None


def read_settings(config: Mapping[str, str], cwd: Path) -> PlainSettings:
    """Read the config of a stack.

    Args:
        config: each key with its project, such as `jr2:instance`; those of other projects are not
            ours.
        cwd: the folder that the program runs in; a relative `jr2:instance` is relative to the
            folder of `Pulumi.yaml` at or above it.

    Raises:
        StepFailed: a key of ours that is none, an empty value, or no folder.
    """
    ours = {
        key.partition(":")[2]: value
        for key, value in config.items()
        if key.partition(":")[0] == PROJECT
    }
    for name, value in ours.items():
        if name not in _KEYS:
            listed = ", ".join(f"{PROJECT}:{key}" for key in _KEYS)
            raise StepFailed(
                f"the stack config holds {PROJECT}:{name}, and jr2 knows {listed} and nothing else "
                f"— `pulumi config rm {name}`"
            )
        if not value.strip():
            raise StepFailed(f"{PROJECT}:{name} of the stack config is empty")
    if "instance" not in ours:
        raise StepFailed(
            "the stack config names no Instance — `pulumi config set instance <folder>` sets "
            f"{PROJECT}:instance, relative to the folder of {PROJECT_FILE}"
        )
    folder = Path(os.path.realpath(_project_folder(cwd) / os.path.expanduser(ours["instance"])))
    if not folder.is_dir():
        raise StepFailed(f"{PROJECT}:instance of the stack config: {folder} is no folder")
    return PlainSettings(
        instance=folder, context=ours.get("context"), namespace=ours.get("namespace")
    )


def _project_folder(cwd: Path) -> Path:
    for folder in (cwd, *cwd.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder
    return cwd
