"""Import an image into the one node of the local cluster, without a registry.

Source: design §7.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from .containerd import Containerd

_NODE: Final = "the local cluster"


class LocalNode:
    """The node of the local cluster of this machine.

    Args:
        ctr: the client of containerd.
        socket: the absolute path of containerd's socket.
    """

    WAY: Final = "local"

    def __init__(self, ctr: Path, socket: Path) -> None:
        self._ctr, self._socket = ctr, socket
        self._node = Containerd(_NODE, [ctr, "--address", str(socket)])

    @property
    def where(self) -> str:
        """Where the images go."""
        return _NODE

    def held(self, ref: str) -> Mapping[str, str | None]:
        """Return the digest under a name.

        Raises:
            StepFailed: containerd does not answer.
        """
        return {_NODE: self._node.digest(ref)}

    def config(self, digest: str) -> str | None:
        """Return the digest of the config of an image that is held."""
        return self._node.config(digest)

    def load(self, archive: Path, ref: str) -> None:
        """Import an archive.

        Raises:
            StepFailed: containerd refuses it.
        """
        self._node.import_archive(archive, ref)

    def settings(self) -> dict[str, str]:
        """Return what `from_settings` reads back."""
        return {"way": self.WAY, "ctr": str(self._ctr), "socket": str(self._socket)}

    @classmethod
    def from_settings(cls, settings: Mapping[str, str]) -> LocalNode:
        """Return the way of a run that told its providers."""
        return cls(Path(settings["ctr"]), Path(settings["socket"]))
