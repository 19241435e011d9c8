"""Bring a Kit image of a checkout to where the nodes of a cluster have it.

How that is done depends on the cluster: an import into the one node of the local cluster,
`kind load` into the nodes of a kind cluster, or a push to the registry from which the nodes of any
other cluster pull. The rules are the same for each way. An image is
there when every place holds the name with the digest of the archive. A name is never brought over
another image of that name: the tag is a hash of the content, so two digests under one tag mean
that one of them is not what its name says. After a load every place is asked again.

Source: design §6.1 and §7, field case "`kind load` … checks the tag is on each node".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from jr2.errors import StepFailed

from ..build.oci import archived_digest
from ..checkout import archive_path

SETTING: str = "delivery"
"""Where a run tells its providers how it delivers."""


class Delivery(Protocol):
    """One way to bring images to a cluster."""

    @property
    def where(self) -> str:
        """Where the images go, as the object of a sentence."""

    def held(self, ref: str) -> Mapping[str, str | None]:
        """Return the digest that each place has under a name; `None` where it has none.

        Raises:
            StepFailed: a place does not answer.
        """

    def config(self, digest: str) -> str | None:
        """Return the digest of the config of an image that is held; `None` when nobody says."""

    def load(self, archive: Path, ref: str) -> None:
        """Bring an archive to every place.

        Raises:
            StepFailed: it cannot be brought there.
        """

    def settings(self) -> dict[str, str]:
        """Return what `delivery_from` reads back."""


def delivery_from(settings: Mapping[str, str]) -> Delivery | None:
    """Return the way of a run that told its providers; `None` when it delivers nothing.

    Args:
        settings: the settings of the run.
    """
    from .kind import KindCluster
    from .local import LocalNode
    from .registry import Pushed

    if SETTING not in settings:
        return None
    said: dict[str, str] = json.loads(settings[SETTING])
    ways: Mapping[str, type[KindCluster] | type[LocalNode] | type[Pushed]] = {
        KindCluster.WAY: KindCluster,
        LocalNode.WAY: LocalNode,
        Pushed.WAY: Pushed,
    }
    return ways[said.pop("way")].from_settings(said)


def delivery_settings(delivery: Delivery | None) -> dict[str, str]:
    """Return the settings that `delivery_from` reads back.

    Args:
        delivery: how this run delivers, if it does.
    """
    return {} if delivery is None else {SETTING: json.dumps(delivery.settings())}


def held_everywhere(held: Mapping[str, str | None]) -> str | None:
    """Return the one digest that all places have under a name; `None` when they do not agree."""
    digests = set(held.values())
    return digests.pop() if len(digests) == 1 else None


def deliver(ref: str, delivery: Delivery, *, again: bool = False) -> bool:
    """Bring the archive of a reference to every place, unless all have it.

    Args:
        ref: the whole name of a Kit image.
        delivery: the way.
        again: bring it there although all have it.

    Returns:
        Whether anything was brought.

    Raises:
        StepFailed: the archive is missing, a place holds another image under this name, or the
            image is not there afterwards.
    """
    archive = archive_path(ref)
    if not archive.is_file():
        raise StepFailed(f"there is no archive of {ref} at {archive}")
    wanted = archived_digest(archive)
    held = delivery.held(ref)
    for place, digest in held.items():
        if digest not in (None, wanted):
            raise StepFailed(
                f"{place} holds {digest} under {ref}, and the archive is {wanted}: a tag is never "
                f"brought over another image — remove {archive} and build it again, or remove the "
                f"image from {place}"
            )
    if held_everywhere(held) == wanted and not again:
        return False
    delivery.load(archive, ref)
    for place, digest in delivery.held(ref).items():
        if digest != wanted:
            raise StepFailed(
                f"brought {ref} to {delivery.where}, and {place} holds {digest or 'nothing'} "
                "under it"
            )
    return True


def last_line(text: str) -> str:
    """Return the last line that a program said, for an error."""
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else "it said nothing"
