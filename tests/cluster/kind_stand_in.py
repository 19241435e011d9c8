"""Stand-ins for `kind` and `docker` on a machine that has neither.

The context is called `kind-jr2` and points at the local cluster. What the stand-ins are asked is
written down; what kind would load into a node is imported into the node of the local cluster, and
what Docker would run in a node is run beside it. So `jr2 up` really converges, and the arguments
and their order are those that the real programs would get.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

from jr2_cli import tools
from jr2_cli.local_cluster import layout

from .conftest import BIN, Instance

KIND_CONTEXT = "kind-jr2"
NODE = "jr2-control-plane"
HEAD = """\
#!{python}
import json, os, pathlib, sys
here = pathlib.Path(__file__).parent
with (here / "calls").open("a") as file:
    file.write(json.dumps([pathlib.Path(__file__).name, *sys.argv[1:]]) + "\\n")
ctr = ["{ctr}", "--address", "{socket}"]
"""
KIND = f"""
if sys.argv[1:] == ["get", "nodes", "--name", "jr2"]:
    print("{NODE}")
elif sys.argv[1:3] == ["load", "image-archive"] and sys.argv[4:] == ["--name", "jr2"]:
    os.execv(ctr[0], [*ctr, "--namespace", "k8s.io", "images", "import", sys.argv[3]])
else:
    sys.exit(f"kind does not know {{sys.argv[1:]}}")
"""
DOCKER = f"""
if sys.argv[1:4] == ["exec", "{NODE}", "ctr"]:
    os.execv(ctr[0], [*ctr, *sys.argv[4:]])
sys.exit(f"docker does not know {{sys.argv[1:]}}")
"""


class Kind:
    """The stand-ins, a kubeconfig with their context, and what they were asked.

    Args:
        folder: where they are put.
        instance: asks for the kubeconfig of the local cluster.
    """

    def __init__(self, folder: Path, instance: Instance) -> None:
        merged: dict[str, Any] = yaml.safe_load(
            instance.kubectl("config", "view", "--raw", "--minify")
        )
        for context in merged["contexts"]:
            context["name"] = KIND_CONTEXT
        merged["current-context"] = KIND_CONTEXT
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(yaml.safe_dump(merged))
        self.folder = folder
        self._record = folder / "calls"
        ctr = tools.require("ctr")
        socket = layout.Layout().containerd_socket
        for name, body in (("kind", KIND), ("docker", DOCKER)):
            program = folder / name
            program.write_text(HEAD.format(python=sys.executable, ctr=ctr, socket=socket) + body)
            program.chmod(0o755)
        self.environment = {
            "PATH": f"{folder}:{BIN}:/usr/local/bin:/usr/bin:/bin",
            "KUBECONFIG": str(self.kubeconfig),
        }

    def calls(self) -> list[list[str]]:
        """Return what was asked since the last time."""
        if not self._record.exists():
            return []
        found = [json.loads(line) for line in self._record.read_text().splitlines()]
        self._record.unlink()
        return found
