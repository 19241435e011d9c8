"""Publish the Assembly, once the Orchestrator has read the maps that this converge wrote.

The tokens are read from the cluster for the moment of the call. The publish carries the stamp of
the Lease, so that an Orchestrator refuses a run that lost it.

Source: seed 000 (The Assembly), seed 001 (last rules), spec/converge.md §8, design §5.5.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from jr2 import names
from jr2.errors import Refusal, StepFailed
from jr2.wire import Assemblies, PublishRefused

from .. import assembly, closed_list, kubectl
from ..api import Api
from ..graph import already_current_line
from .surroundings import (
    SETTING_HELD_DIGEST,
    SETTING_IMAGES_DIGEST,
    SETTING_PARCEL,
    SETTING_WORKFLOWS,
    Surroundings,
)

MAPS_SECONDS: Final = 180
_LOOK_SECONDS: Final = 0.25
FORWARDS: Final = 3
"""How many forwards one publish may use, when they break."""


def publish_assembly(
    inputs: Mapping[str, str],
    around: Surroundings,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Make the Assembly current.

    Raises:
        Refusal: the Orchestrator refused it, or never read the maps; the one before stays current.
        StepFailed: the Orchestrator cannot be reached.
    """
    wanted = inputs["assembly"]
    instance_token = read_value(around.api, around.namespace, names.KEY_INSTANCE_TOKEN)
    publish_token = read_value(around.api, around.namespace, names.KEY_PUBLISH_TOKEN)
    signing_key = read_value(around.api, around.namespace, names.KEY_SIGNING_KEY)
    said = False

    def once() -> assembly.OrchestratorAnswer | None:
        """Publish through a forward of its own; `None` when it is current already."""
        nonlocal said
        with kubectl.forward(
            around.kubectl, around.kubeconfig, around.namespace, signing_key=signing_key
        ) as url:
            held = _with_fresh_maps(
                lambda: assembly.assemblies(url, instance_token), around, sleep, clock
            )
            if held.current == wanted:
                return None
            if not said:
                around.say(publishing_line(wanted, held.current))
                said = True
            around.check_lease()
            return assembly.publish(
                url,
                publish_token,
                assembly.read_parcel(Path(around.settings[SETTING_PARCEL])),
                assembly=wanted,
                current=held.current,
                lease=around.lease,
                progress=lambda sent, total: around.progress(sent_line(sent, total)),
            )

    answer = _again_when_cut(once, around)
    around.progress(None)
    if answer is None:
        workflows = [name for name in around.settings[SETTING_WORKFLOWS].split(",") if name]
        line = current_line if said else already_current_line
        around.say(line(wanted, workflows))
        return
    if answer.refused is not None:
        raise refused(wanted, answer.status, answer.refused)
    assert answer.published is not None
    around.say(current_line(wanted, answer.published.workflows))


def _again_when_cut(
    once: Callable[[], assembly.OrchestratorAnswer | None], around: Surroundings
) -> assembly.OrchestratorAnswer | None:
    """Publish again through a new forward when one broke: what arrived is not sent again."""
    for left in reversed(range(FORWARDS)):
        try:
            return once()
        except assembly.BrokeOff:
            if not left:
                raise
            around.progress("assembly: the forward broke; the publish goes on through a new one")
    raise AssertionError("the last try returns or raises")


def sent_line(sent: int, total: int) -> str:
    """Return the progress of a publish."""
    return f"assembly: {sent / 2**20:.1f} of {total / 2**20:.1f} MiB sent"


def publishing_line(wanted: str, current: str | None) -> str:
    """Return the line before a publish."""
    over = "no current Assembly" if current is None else f"over {current[: names.SHORT_HASH]}"
    return f"assembly: publishing {wanted[: names.SHORT_HASH]} ({over})"


def current_line(wanted: str, workflows: list[str]) -> str:
    """Return the line after a publish."""
    listed = ", ".join(workflows) or "(none)"
    return f"assembly: {wanted[: names.SHORT_HASH]} is current — workflows: {listed}"


def refused(wanted: str, status: int, answer: PublishRefused) -> Refusal:
    """Return the refusal of an Assembly, with one line for each problem."""
    lines = [
        f"the Orchestrator refused Assembly {wanted[: names.SHORT_HASH]} (HTTP {status}): "
        f"{answer.error} — the previous Assembly is still current",
        *(f"  {problem}" for problem in answer.problems),
    ]
    return Refusal("\n".join(lines))


def stale_maps(held: Assemblies, settings: Mapping[str, str]) -> tuple[str, ...]:
    """Return the maps of which the Orchestrator has not read the text that was just written."""
    stale: list[str] = []
    if held.maps.images != settings[SETTING_IMAGES_DIGEST]:
        stale.append(names.IMAGES_MAP)
    if held.maps.held != settings[SETTING_HELD_DIGEST]:
        stale.append(names.HELD_MAP)
    return tuple(stale)


def never_fresh(maps: tuple[str, ...], seconds: int) -> Refusal:
    """Return the refusal of an Orchestrator that never read the maps."""
    return Refusal(
        f"after {seconds}s the Orchestrator still reads an older {' and '.join(maps)} from its "
        "mount — the kubelet has not refreshed it; nothing was published, and the previous "
        "Assembly is still current. Run `jr2 up` again"
    )


def read_value(api: Api, namespace: str, key: str) -> str:
    """Return one value of the Instance's Secret.

    Raises:
        StepFailed: the Secret or the key is gone.
    """
    secret = api.get(closed_list.SECRET.path(namespace, names.INSTANCE_SECRET))
    data = (secret or {}).get("data") or {}
    if key not in data:
        raise StepFailed(
            f'Secret "{names.INSTANCE_SECRET}" in namespace "{namespace}" holds no {key} any more '
            "— run `jr2 up` again"
        )
    return base64.b64decode(data[key]).decode()


def _with_fresh_maps(
    ask: Callable[[], Assemblies],
    around: Surroundings,
    sleep: Callable[[float], None],
    clock: Callable[[], float],
) -> Assemblies:
    started = clock()
    while True:
        held = ask()
        stale = stale_maps(held, around.settings)
        if not stale:
            around.progress(None)
            return held
        if clock() - started >= MAPS_SECONDS:
            raise never_fresh(stale, MAPS_SECONDS)
        around.progress(f"assembly: waiting until the Orchestrator has read {' and '.join(stale)}")
        sleep(_LOOK_SECONDS)
