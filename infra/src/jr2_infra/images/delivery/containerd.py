"""What a node's containerd holds, asked through `ctr`, however that is reached."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from jr2 import names
from jr2.errors import StepFailed

from ... import processes
from . import last_line


class Containerd:
    """The images of one node.

    Args:
        name: the node, as the subject of a sentence.
        ctr: the program and the arguments that reach the node's containerd.
    """

    def __init__(self, name: str, ctr: Sequence[str | Path]) -> None:
        self.name = name
        self._ctr = (*ctr, "--namespace", names.CONTAINERD_NAMESPACE)

    def digest(self, ref: str) -> str | None:
        """Return the digest of the manifest under a name, or `None`.

        Raises:
            StepFailed: containerd does not answer.
        """
        listed = self._run("images", "list", f"name=={ref}")
        if listed.returncode != 0:
            raise StepFailed(f"cannot list the images of {self.name}: {last_line(listed.stderr)}")
        for line in listed.stdout.splitlines():
            words = line.split()
            if words[:1] == [ref]:
                return next((word for word in words if word.startswith("sha256:")), None)
        return None

    def config(self, digest: str) -> str | None:
        """Return the digest of the config that a manifest names; `None` when it cannot be read."""
        try:
            found = json.loads(self._run("content", "get", digest).stdout)
            return str(found["config"]["digest"])
        except (ValueError, KeyError, TypeError):
            return None

    def import_archive(self, archive: Path, ref: str) -> None:
        """Import an archive of this machine.

        Raises:
            StepFailed: containerd refuses it.
        """
        imported = self._run("images", "import", str(archive))
        if imported.returncode != 0:
            raise StepFailed(f"cannot import {ref} into {self.name}: {last_line(imported.stderr)}")

    def _run(self, *arguments: str) -> processes.Finished:
        return processes.run([*self._ctr, *arguments])
