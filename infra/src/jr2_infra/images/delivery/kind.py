"""Load an image into the nodes of a kind cluster: `kind load image-archive`.

`kind load docker-image` asks Docker for the image and hands all of it to the nodes; when Docker
keeps the index of several platforms and the layers of one, containerd answers "content digest …
not found". The archives of our own build hold one platform and everything that they name, so they
are loaded as they are. What a node holds is asked of its containerd, by `docker exec`.

Source: design §7, field case "`kind load` answers content digest … not found", ADR-0124.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from jr2 import names
from jr2.errors import StepFailed

from ... import processes
from . import last_line
from .containerd import Containerd

_BALANCER: Final = "-external-load-balancer"
"""The end of the name of a container of kind that is no node."""


class KindCluster:
    """The nodes of one kind cluster, which are containers of Docker.

    Args:
        kind: the program.
        docker: the program.
        cluster: the name that kind has for the cluster.
    """

    WAY: Final = "kind"

    def __init__(self, kind: Path, docker: Path, cluster: str) -> None:
        self._kind, self._docker, self._cluster = kind, docker, cluster
        self._found: tuple[Containerd, ...] = ()

    @property
    def where(self) -> str:
        """Where the images go."""
        return f"the nodes of {names.KIND_PREFIX}{self._cluster}"

    def held(self, ref: str) -> Mapping[str, str | None]:
        """Return the digest that each node has under a name.

        Raises:
            StepFailed: kind knows no such cluster, or a node does not answer.
        """
        nodes = self._nodes()
        with ThreadPoolExecutor(max_workers=len(nodes)) as pool:
            digests = list(pool.map(lambda node: node.digest(ref), nodes))
        return {node.name: digest for node, digest in zip(nodes, digests, strict=True)}

    def config(self, digest: str) -> str | None:
        """Return the digest of the config of an image that every node holds."""
        return self._nodes()[0].config(digest)

    def load(self, archive: Path, ref: str) -> None:
        """Load an archive into every node.

        Raises:
            StepFailed: kind refuses it.
        """
        loaded = self._run("load", "image-archive", str(archive), "--name", self._cluster)
        if loaded.returncode != 0:
            raise StepFailed(f"`kind load` of {ref} failed: {last_line(loaded.stderr)}")

    def settings(self) -> dict[str, str]:
        """Return what `from_settings` reads back."""
        return {
            "way": self.WAY,
            "kind": str(self._kind),
            "docker": str(self._docker),
            "cluster": self._cluster,
        }

    @classmethod
    def from_settings(cls, settings: Mapping[str, str]) -> KindCluster:
        """Return the way of a run that told its providers."""
        return cls(Path(settings["kind"]), Path(settings["docker"]), settings["cluster"])

    def _nodes(self) -> tuple[Containerd, ...]:
        if not self._found:
            listed = self._run("get", "nodes", "--name", self._cluster)
            if listed.returncode != 0:
                raise StepFailed(
                    f"kind cannot list {self.where}: {last_line(listed.stderr)} — is Docker running?"
                )
            nodes = [name for name in listed.stdout.split() if not name.endswith(_BALANCER)]
            if not nodes:
                raise StepFailed(
                    f'kind knows no cluster "{self._cluster}" on this machine, so no image reaches '
                    f"context {names.KIND_PREFIX}{self._cluster} — `kind get clusters` lists them"
                )
            self._found = tuple(
                Containerd(name, [self._docker, "exec", name, "ctr"]) for name in nodes
            )
        return self._found

    def _run(self, *arguments: str) -> processes.Finished:
        return processes.run([self._kind, *arguments])
