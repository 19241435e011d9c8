"""Plain Pulumi as its user has it: an engine, a home, a backend and a stack in the checkout.

The engine is the one of jr2's tools, and its home and backend are a person's own: a folder each.
The language host is the official one where there is one on PATH, else the stand-in of the tests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from jr2_cli import tools
from jr2_infra.derived.urns import KUBERNETES_VERSION

from .conftest import BIN, CHECKOUT

STAND_IN = CHECKOUT / "tests" / "programs" / "pulumi-language-python"
LANGUAGE_HOST = "pulumi-language-python"


class Stack:
    """A stack of its own in the checkout, with a file backend, and the commands of its user.

    Args:
        name: the stack.
        folder: holds its state, and the home of its user's Pulumi.
        kubeconfig: the user's; that of the tests when it is not given.
    """

    def __init__(self, name: str, folder: Path, kubeconfig: str = "") -> None:
        self.name = name
        self.state = folder / "state"
        self.state.mkdir()
        self.settings = CHECKOUT / f"Pulumi.{name}.yaml"
        self.kubeconfig = kubeconfig or os.environ.get(
            "KUBECONFIG", str(Path.home() / ".kube" / "config")
        )
        plugins, self._bin = folder / "home" / "plugins", folder / "bin"
        self._bin.mkdir()
        if shutil.which(LANGUAGE_HOST) is None:
            host = self._bin / LANGUAGE_HOST
            host.write_text(f"#!{sys.executable}\n" + STAND_IN.read_text().partition("\n")[2])
            host.chmod(0o755)
        kubernetes = plugins / f"resource-kubernetes-v{KUBERNETES_VERSION}"
        dynamic = plugins / "resource-pulumi-python-v3.272.0"
        for plugin in (kubernetes, dynamic):
            plugin.mkdir(parents=True)
        name_ = "pulumi-resource-kubernetes"
        (kubernetes / name_).symlink_to(tools.require(name_).resolve())
        script = dynamic / "pulumi-resource-pulumi-python"
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -u -m pulumi.dynamic "$@"\n')
        script.chmod(0o755)
        self._home = folder / "home"
        self("stack", "init", name)

    def environment(self, **more: str) -> dict[str, str]:
        path = f"{self._bin}:{tools.require('pulumi').parent}:{BIN}:{os.environ['PATH']}"
        kept = {key: os.environ[key] for key in ("HOME", "XDG_CACHE_HOME") if key in os.environ}
        return {
            **kept,
            "PATH": path,
            "KUBECONFIG": self.kubeconfig,
            "PULUMI_BACKEND_URL": f"file://{self.state}",
            "PULUMI_CONFIG_PASSPHRASE": "a person's own",
            "PULUMI_HOME": str(self._home),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            **more,
        }

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [
                str(tools.require("pulumi")), "-C", str(CHECKOUT), "--non-interactive",
                "--color=never", *arguments,
            ],
            env=self.environment(**environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )  # fmt: skip

    def __call__(self, *arguments: str, code: int = 0, **environment: str) -> str:
        """Run `pulumi` to its end, expect its exit code, and return what it said."""
        child = self.start(*arguments, **environment)
        said, _ = child.communicate(timeout=400)
        assert child.returncode == code, f"pulumi {' '.join(arguments)}\n{said}"
        return said

    def set(self, **config: str) -> None:
        for key, value in config.items():
            self("config", "set", key, value, "--stack", self.name)

    def up(self, code: int = 0, **environment: str) -> str:
        return self("up", "--yes", "--skip-preview", "--stack", self.name, code=code, **environment)

    def preview(self, code: int = 0) -> str:
        return self("preview", "--stack", self.name, code=code)

    def export(self) -> str:
        return self("stack", "export", "--stack", self.name)

    def resources(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.export())["deployment"].get("resources", [])
        return found

    def remove(self) -> None:
        self("stack", "rm", "--yes", "--force", "--stack", self.name)
