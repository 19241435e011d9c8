"""Push an image to the registry that the config names; the nodes pull it from there.

Source: design §7, spec/converge.md §7.4, ADR-0112.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ... import inherited, oci


class Pushed:
    """The registry of the config.

    Args:
        home: host and path, as the names of the images start.
    """

    WAY: Final = "registry"

    def __init__(self, home: str) -> None:
        self._home = home

    @property
    def where(self) -> str:
        """Where the images go."""
        return self._home

    def held(self, ref: str) -> Mapping[str, str | None]:
        """Return the digest that the registry has under a name.

        Raises:
            StepFailed: the registry does not say.
        """
        with oci.Client(inherited.environment()) as client:
            found = client.resolve(oci.parse_reference(ref))
        return {self._home: None if found is None else found.digest}

    def config(self, _digest: str) -> str | None:
        """Return `None`: a pod names an image that was pulled by the digest of its manifest."""
        return None

    def load(self, archive: Path, ref: str) -> None:
        """Push an archive under a name.

        Raises:
            StepFailed: the registry does not take it.
        """
        with oci.Client(inherited.environment()) as client:
            client.push(oci.Layout(archive), oci.parse_reference(ref))

    def settings(self) -> dict[str, str]:
        """Return what `from_settings` reads back."""
        return {"way": self.WAY, "home": self._home}

    @classmethod
    def from_settings(cls, settings: Mapping[str, str]) -> Pushed:
        """Return the way of a run that told its providers."""
        return cls(settings["home"])
