"""The environment and the files with which the engine runs: all of them ours, none of the user's.

Everything lies in the run's own folder: backend, home folder with the plugins, project and stack
settings. Nothing is downloaded, nothing of a Pulumi account is read, and the plugin of Kubernetes
is configured by environment alone.

Source: design §5.2 and §5.3, libraries.md §2.2.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from .. import inherited
from ..derived.sealing import Sealer
from ..derived.urns import KUBERNETES_VERSION
from ..resources import Program
from ..tooling import Tooling
from .failure import ENV_FAILURE_FILE
from .run_file import ENV_RUN_FILE, FILE_NAME

_FOREIGN: Final = ("PULUMI_", "PYTHON", "JR2_")
"""Variables of ours that the engine must not inherit: they would change what it does."""

_DYNAMIC_PLUGIN: Final = "pulumi-resource-pulumi-python"
_DYNAMIC_VERSION: Final = "3.272.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPaths:
    """Where the parts of one run lie.

    Args:
        folder: the run's own folder.
    """

    folder: Path

    @property
    def home(self) -> Path:
        """The engine's home folder, with its plugins."""
        return self.folder / "home"

    @property
    def project(self) -> Path:
        """The folder that the engine runs in, with project and stack settings."""
        return self.folder / "project"

    @property
    def state(self) -> Path:
        """The folder of the file backend."""
        return self.folder / "state"

    @property
    def temporary(self) -> Path:
        """Where the engine and its plugins put what they need for a moment."""
        return self.folder / "tmp"

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig with one context."""
        return self.folder / "kubeconfig"

    @property
    def run_file(self) -> Path:
        """What the dynamic providers are told."""
        return self.folder / FILE_NAME

    @property
    def failure(self) -> Path:
        """Where a dynamic provider writes its error."""
        return self.folder / "failure.json"


def write_files(
    paths: RunPaths,
    program: Program,
    checkpoint: Mapping[str, Any],
    sealer: Sealer,
    tooling: Tooling,
    kubeconfig_text: str,
) -> None:
    """Write everything that the engine reads before it is started."""
    stacks = paths.state / ".pulumi" / "stacks" / program.project
    kubernetes = paths.home / "plugins" / f"resource-kubernetes-v{KUBERNETES_VERSION}"
    dynamic = paths.home / "plugins" / f"resource-pulumi-python-v{_DYNAMIC_VERSION}"
    for folder in (stacks, kubernetes, dynamic, paths.project, paths.temporary):
        folder.mkdir(parents=True, mode=0o700)
    (kubernetes / "pulumi-resource-kubernetes").symlink_to(tooling.kubernetes_plugin.resolve())
    # Among the plugins the engine finds it silently; on PATH it would print a warning each time.
    script = dynamic / _DYNAMIC_PLUGIN
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -u -m pulumi.dynamic "$@"\n')
    script.chmod(0o700)
    _write(paths.state / ".pulumi" / "meta.yaml", "version: 1\n")
    _write(stacks / f"{program.stack}.json", json.dumps(checkpoint, ensure_ascii=False))
    _write(
        paths.project / "Pulumi.yaml",
        yaml.safe_dump({"name": program.project, "runtime": "python"}),
    )
    _write(
        paths.project / f"Pulumi.{program.stack}.yaml",
        yaml.safe_dump({"encryptionsalt": sealer.salt}),
    )
    _write(paths.kubeconfig, kubeconfig_text)


def environment(
    paths: RunPaths, sealer: Sealer, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the whole environment of the engine and its plugins.

    What a person exports stays, since an `exec` user of the kubeconfig may need it; what `.env`
    filled does not.
    """
    ours = inherited.environment(environ)
    kept = {name: value for name, value in ours.items() if not name.startswith(_FOREIGN)}
    return {
        **kept,
        "KUBECONFIG": str(paths.kubeconfig),
        "TMPDIR": str(paths.temporary),
        "PULUMI_HOME": str(paths.home),
        "PULUMI_BACKEND_URL": f"file://{paths.state}",
        "PULUMI_CONFIG_PASSPHRASE": sealer.passphrase,
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_DISABLE_CHECKPOINT_BACKUPS": "true",
        "PULUMI_IGNORE_AMBIENT_PLUGINS": "true",
        "PULUMI_PYTHON_CMD": sys.executable,
        "PULUMI_AUTOMATION_API": "true",
        "PULUMI_K8S_ENABLE_SERVER_SIDE_APPLY": "true",
        "PULUMI_K8S_ENABLE_CONFIGMAP_MUTABLE": "true",
        "PULUMI_K8S_ENABLE_SECRET_MUTABLE": "true",
        "PULUMI_K8S_UPSERT_EXISTING_OBJECTS": "true",
        "PULUMI_K8S_SUPPRESS_DEPRECATION_WARNINGS": "true",
        ENV_RUN_FILE: str(paths.run_file),
        ENV_FAILURE_FILE: str(paths.failure),
    }


def _write(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
