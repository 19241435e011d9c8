"""What a step's answer means for the store: decided here, without a clock or a connection.

The answer comes from a process that runs user code, so it is measured before it is believed. A
step whose answer is too large, or holds what cannot be stored, ends its run with the reason.
"""

from __future__ import annotations

import json
import math
from datetime import timedelta
from typing import Any, Final, NamedTuple

from jr2 import host_wire, names

from ..store.rows import Live, Run, Settled, Task, Timer
from ..store.runs import NOTHING, Changes
from .looking import look

_encode: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_LONGEST_KEY: Final = 512
_MOST_COMMANDS: Final = 10_000
_LONGEST_DELAY: Final = timedelta.max.total_seconds()
"""What an author can say; a due time after it is a number that the store holds."""
_STATUS: Final[dict[str, Live | Settled]] = {
    "active": "live",
    "done": "done",
    "error": "error",
    "cancelled": "cancelled",
}


class Unfit(Exception):
    """The answer of a step cannot be stored; the text says why."""


class Transition(NamedTuple):
    """A run after one step, what else changed, and what its author emitted."""

    run: Run
    changes: Changes
    emitted: tuple[str, ...] = ()
    """Each the JSON text of one event."""

    @property
    def is_plain(self) -> bool:
        """Whether it asks for nothing: the run goes on, and only those who watch it are told."""
        return self.changes is NOTHING and self.run.status == "live" and not self.emitted


def to_json(value: Any) -> str:
    """Return compact JSON in ASCII.

    Raises:
        Unfit: the value holds a number that JSON does not have.
    """
    try:
        return _encode(value)
    except ValueError as bad:
        raise Unfit("it holds a number that is not finite") from bad


def after_step(run: Run, reply: host_wire.Stepped, body: bytes, now: int) -> Transition:
    """Return the run after a step that its Assembly process made.

    Args:
        run: the run before the step; `seq` counts from it.
        reply: what the process answered.
        body: of the answer: what is shown of the run, then the snapshot, which is never parsed.
        now: milliseconds since the epoch; timers are due relative to it.
    """
    try:
        return _after_step(run, reply, body, now)
    except Unfit as unfit:
        return fault(run, f"the step of the Machine was not kept: {unfit}")


def _after_step(run: Run, reply: host_wire.Stepped, body: bytes, now: int) -> Transition:
    shown, snapshot = body[: reply.view], body[reply.view :]
    if len(snapshot) > names.MAX_SNAPSHOT:
        raise Unfit(f"its snapshot has {len(snapshot)} bytes; the limit is {names.MAX_SNAPSHOT}")
    if len(shown) > names.MAX_SNAPSHOT:
        raise Unfit(f"what it shows has {len(shown)} bytes; the limit is {names.MAX_SNAPSHOT}")
    try:
        view, status, gates = look(shown)
    except ValueError as bad:
        raise Unfit(f"what it shows is not what a run shows: {bad}") from bad
    # By place: names would take a third longer, and each step makes one.
    after = Run(
        run.id,
        run.instance_id,
        run.workflow,
        run.assembly,
        run.shape,
        _STATUS[status],
        None,
        run.seq + 1,
        view,
        snapshot,
        gates,
    )
    if not reply.commands:
        return Transition(after, NOTHING)
    return _obey(run, after, reply, now)


def _obey(run: Run, after: Run, reply: host_wire.Stepped, now: int) -> Transition:
    """Return the transition with what the commands of a step start, stop, arm and tell."""
    if len(reply.commands) > _MOST_COMMANDS:
        raise Unfit(f"it gave {len(reply.commands)} commands; the limit is {_MOST_COMMANDS}")
    started: dict[str, Task] = {}
    stopped: list[str] = []
    armed: dict[str, Timer] = {}
    disarmed: list[str] = []
    emitted: list[str] = []
    for command in reply.commands:
        match command:
            case host_wire.StartTurn() | host_wire.RunEffect() | host_wire.StartSandbox():
                # The run ends as it stood before the step, so nothing of it is started or armed.
                return fault(run, not_yet(command))
            case host_wire.StartTask():
                started[_key(command.key)] = _task(run, command)
            case host_wire.StopTask():
                if started.pop(command.key, None) is None:
                    stopped.append(command.key)
            case host_wire.ArmTimer():
                armed[_key(command.key)] = _timer(run, command, now)
            case host_wire.DisarmTimer():
                if armed.pop(command.key, None) is None:
                    disarmed.append(command.key)
            case host_wire.Emit():
                emitted.append(_measured(_emitted(command), "an emitted event"))
    return Transition(
        run=after,
        changes=Changes(
            started=tuple(started.values()),
            stopped=tuple(stopped),
            armed=tuple(armed.values()),
            disarmed=tuple(disarmed),
        ),
        emitted=tuple(emitted),
    )


def not_yet(command: host_wire.StartTurn | host_wire.RunEffect | host_wire.StartSandbox) -> str:
    """Return why a run cannot go on: the pods for what it starts do not exist yet."""
    what = {
        "start_turn": (f'Agent "{command.slot}"', "Turns"),
        "run_effect": (f'Effect "{command.slot}"', "Effects"),
        "start_sandbox": ("Workspace", "Sandboxes"),
    }
    part, runs = what[command.kind]
    state = command.key.rpartition("/")[2].partition("#")[0]
    return f'{part} in state "{state}": this version of jr2 runs no {runs} yet'


def _key(key: str) -> str:
    if not 0 < len(key) <= _LONGEST_KEY:
        raise Unfit("the key of a command is empty or too long")
    try:
        key.encode()
    except UnicodeError as bad:
        raise Unfit("the key of a command is no text") from bad
    return key


def _measured(text: str, what: str) -> str:
    if len(text) > names.MAX_EVENT:
        raise Unfit(f"{what} has {len(text)} bytes; the limit is {names.MAX_EVENT}")
    return text


def _emitted(command: host_wire.Emit) -> str:
    payload = command.payload
    fields = payload if isinstance(payload, dict) else {} if payload is None else {"value": payload}
    return to_json({**fields, "type": command.type})


def _task(run: Run, command: host_wire.StartTask) -> Task:
    return Task(
        run=run.id,
        workflow=run.workflow,
        assembly=run.assembly,
        key=command.key,
        machine=tuple(command.machine),
        slot=command.slot,
        input=_measured(to_json(command.input), f"the input of the task {command.slot!r}"),
    )


def _timer(run: Run, command: host_wire.ArmTimer, now: int) -> Timer:
    if not math.isfinite(command.delay) or not 0 <= command.delay <= _LONGEST_DELAY:
        raise Unfit("the delay of a timer is not between zero and what a timedelta can hold")
    return Timer(run=run.id, key=command.key, due_at=now + math.ceil(command.delay * 1000))


def fault(run: Run, reason: str) -> Transition:
    """Return the run ended by an error, where it stood."""
    view = {**run.shown(), "status": "error", "fault": reason, "gates": []}
    return Transition(
        run=run._replace(status="error", reason=None, seq=run.seq + 1, view=to_json(view), gates=0),
        changes=NOTHING,
    )
