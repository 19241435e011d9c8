"""Deliver a Kit image of a checkout to the nodes.

Source: design §6.1 and §7.
"""

from __future__ import annotations

from collections.abc import Mapping

from jr2.errors import StepFailed

from ..images import delivery
from .surroundings import SETTING_FORCE, Surroundings


def deliver_image(inputs: Mapping[str, str], around: Surroundings) -> None:
    """Deliver the image, unless the nodes have it by now.

    Raises:
        StepFailed: it cannot be delivered.
    """
    way = delivery.delivery_from(around.settings)
    if way is None:
        raise StepFailed(f"this run delivers no image, so {inputs['ref']} goes nowhere")
    around.check_lease()
    if delivery.deliver(inputs["ref"], way, again=SETTING_FORCE in around.settings):
        around.say(f"images: delivered {inputs['ref']} to {way.where}")
