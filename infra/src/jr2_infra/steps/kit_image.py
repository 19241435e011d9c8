"""Put a Kit image of a checkout on the node of the local cluster.

Source: design §6.1 and §7.
"""

from __future__ import annotations

from collections.abc import Mapping

from jr2.errors import StepFailed

from ..images import deliver
from .surroundings import Surroundings


def import_image(inputs: Mapping[str, str], around: Surroundings) -> None:
    """Import the image, unless the node has it by now.

    Raises:
        StepFailed: it cannot be imported.
    """
    local_import = around.local_import()
    if local_import is None:
        raise StepFailed(f"no local cluster runs on this machine, so {inputs['ref']} goes nowhere")
    around.check_lease()
    deliver.import_archive(inputs["ref"], local_import)
    around.say(f"images: imported {inputs['ref']}")
