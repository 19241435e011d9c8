"""Take away what another manager added, or delete an object that cannot be what it must be.

In a plain run a third thing: apply an object again that somebody changed or removed, since the
engine compares with a state that does not know it. The object itself is in the run's folder, so
that no value of it stands in an input.

A patch holds for the one resourceVersion that was seen. The status of a workload moves that version
without touching what was judged: while the generation stands, the patch is tried again with the
version of the moment. Any other change ends the step, and the next run judges anew.

Source: design §5.2 (Nothing more) and §5.3 (Immutable fields).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from jr2.errors import StepFailed

from .. import closed_list
from ..api import Api, ApiError
from .surroundings import SETTING_OBJECTS, Surroundings

_TRIES: Final = 10
_GONE_SECONDS: Final = 60.0


def take_away(
    inputs: Mapping[str, str],
    around: Surroundings,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Heal one object.

    Raises:
        StepFailed: the object changed since it was judged, or the API server refused.
    """
    try:
        if "applies" in inputs:
            _apply(inputs["applies"], around)
        elif inputs["patch"]:
            _patch(inputs, around)
        else:
            around.check_lease()
            _delete(inputs, around.api, sleep, clock)
    except ApiError as error:
        raise StepFailed(f"cannot heal {inputs['object']}: {error.message}") from error


def _apply(resource: str, around: Surroundings) -> None:
    objects: dict[str, Any] = json.loads(
        Path(around.settings[SETTING_OBJECTS]).read_text(encoding="utf-8")
    )
    wanted = objects[resource]
    around.check_lease()
    around.api.apply(closed_list.kind_of(wanted["kind"]), wanted)


def _patch(inputs: Mapping[str, str], around: Surroundings) -> None:
    api = around.api
    operations: list[dict[str, Any]] = json.loads(inputs["patch"])
    for _ in range(_TRIES):
        # Each try is a write of its own.
        around.check_lease()
        try:
            api.json_patch(inputs["path"], operations)
            return
        except ApiError as error:
            if error.status not in (409, 422):
                raise
            live = api.get(inputs["path"])
            if live is None:
                return
            version = live["metadata"]["resourceVersion"]
            generation = str(live["metadata"].get("generation", ""))
            if (
                not generation
                or generation != inputs["generation"]
                or version == operations[0]["value"]
            ):
                raise _changed(inputs) from error
            operations = [{**operations[0], "value": version}, *operations[1:]]
    raise _changed(inputs)


def _delete(
    inputs: Mapping[str, str],
    api: Api,
    sleep: Callable[[float], None],
    clock: Callable[[], float],
) -> None:
    api.delete(inputs["path"], uid=inputs["uid"])
    until = clock() + _GONE_SECONDS
    while True:
        live = api.get(inputs["path"])
        if live is None or live["metadata"].get("uid") != inputs["uid"]:
            return
        if clock() > until:
            raise StepFailed(
                f"{inputs['object']} was deleted and is still there after {_GONE_SECONDS:.0f}s"
            )
        sleep(0.2)


def _changed(inputs: Mapping[str, str]) -> StepFailed:
    return StepFailed(
        f"{inputs['object']} was changed while it was being healed — run `jr2 up` again"
    )
