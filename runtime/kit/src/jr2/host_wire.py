"""What the Orchestrator and an Assembly process say to each other, frame by frame.

The Orchestrator asks, the Assembly process (`python -m jr2.host`) answers with the same `id`.
Requests are headers of `Request`; replies are headers of `Reply`. The body of a `start` request is
the input as JSON; the body of a `step` request is the run's snapshot, and none means the snapshot
that the process kept. The body of a reply to `start` and `step` is the JSON text of a `View`, then
the run's new snapshot. The Orchestrator trusts nothing here: the models are closed, sizes are capped
by the framing, and it stamps run ids and command keys itself.

Operations:

- `load`: the Assembly's folder was given at the start of the process. Answers `loaded`.
- `start`: make a run of `workflow` from an input. Answers `stepped`, or `refused` (400) when the
  input does not fit the door.
- `step`: give one event to a run. Answers `stepped`, or `refused` when a Gate does not accept the
  event, or when the payload does not fit. A snapshot in which the user's code raised is answered
  with `stepped` and the status `error`. Answers `missing` to a request without a body when the
  process does not have the run's snapshot of this sequence number.
- `task`: run the task of a slot. Answers `task_done` or `task_failed`, whenever it ends.
- `stop_task`: cancel the task with that key. Answers nothing for itself; the task answers
  `task_failed` with the reason `stopped`, which the Orchestrator drops.
- `ping`: answers `pong` from the loop of the tasks, after all that was asked of the loop before. No
  answer means that a task blocks the loop.

Source: design §4.4.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue


class _Closed(BaseModel):
    # Built when first used: the walk of `jr2 up` imports these shapes and speaks none of them.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


# --- events that a step takes -------------------------------------------------------------------
class GateEvent(_Closed):
    """A person or a webhook answers a Gate."""

    kind: Literal["gate"] = "gate"
    gate: str
    id: str | None = None
    """The entry that the sender saw (`If-Gate`); another one is refused."""
    name: str
    payload: dict[str, JsonValue]


class TaskDone(_Closed):
    """The task, the Effect or the Sandbox of an invocation ended well."""

    kind: Literal["task_done"] = "task_done"
    key: str
    output: JsonValue = None


class TaskFailed(_Closed):
    """The task, the Effect or the Sandbox of an invocation ended badly."""

    kind: Literal["task_failed"] = "task_failed"
    key: str
    reason: str


class TimerFired(_Closed):
    """A timer came due."""

    kind: Literal["timer"] = "timer"
    key: str


class PickEvent(_Closed):
    """An Agent picked an event of its Menu; it is heard by the state that asked for the Turn."""

    kind: Literal["pick"] = "pick"
    key: str
    """Of the `start_turn` command."""
    name: str
    payload: dict[str, JsonValue]


class TurnFaulted(_Closed):
    """A Turn is over and jr2 could not save it."""

    kind: Literal["turn_faulted"] = "turn_faulted"
    key: str
    instance_id: str
    reason: str


class TurnEnded(_Closed):
    """A Turn without a Menu is over; the state waits on for what moves it."""

    kind: Literal["turn_ended"] = "turn_ended"
    key: str


StepEvent = Annotated[
    GateEvent | TaskDone | TaskFailed | TimerFired | PickEvent | TurnFaulted | TurnEnded,
    Field(discriminator="kind"),
]


# --- commands that a step gives -----------------------------------------------------------------
class StartTask(_Closed):
    """Run the task of `slot`; `key` is the same after a crash, and unique within the run."""

    kind: Literal["start_task"] = "start_task"
    key: str
    machine: list[str]
    """The slots from the root Machine to the one that the slot belongs to; empty for the root."""
    slot: str
    input: JsonValue = None


class StopTask(_Closed):
    """The state that invoked the task was left."""

    kind: Literal["stop_task"] = "stop_task"
    key: str


class StartTurn(_Closed):
    """Have the Agent of `slot` take a Turn."""

    kind: Literal["start_turn"] = "start_turn"
    key: str
    machine: list[str]
    slot: str
    actor: list[str]
    """The actor path of its Machine, root excluded; a conversation is named by it."""
    input: JsonValue = None
    picks: list[str]
    """The events that the state takes from this Agent, before guards."""


class StopTurn(_Closed):
    """The state that asked for the Turn was left, for whatever reason: the Turn is over."""

    kind: Literal["stop_turn"] = "stop_turn"
    key: str


class RunEffect(_Closed):
    """Run the Effect of `slot`; the key makes a repeat after a crash the same Effect."""

    kind: Literal["run_effect"] = "run_effect"
    key: str
    machine: list[str]
    slot: str
    actor: list[str]
    input: JsonValue = None


class StopEffect(_Closed):
    """The state that runs the Effect was left; its result is not wanted any more."""

    kind: Literal["stop_effect"] = "stop_effect"
    key: str


class StartSandbox(_Closed):
    """Have the Sandbox of a `workspace()` made and hold it until `stop_sandbox`."""

    kind: Literal["start_sandbox"] = "start_sandbox"
    key: str
    machine: list[str]
    slot: str
    actor: list[str]
    input: JsonValue = None


class StopSandbox(_Closed):
    """The Workspace is over."""

    kind: Literal["stop_sandbox"] = "stop_sandbox"
    key: str


class ArmTimer(_Closed):
    """Send `TimerFired` with `key` after `delay` seconds, once."""

    kind: Literal["arm_timer"] = "arm_timer"
    key: str
    delay: float


class DisarmTimer(_Closed):
    """The state that waits for the timer was left."""

    kind: Literal["disarm_timer"] = "disarm_timer"
    key: str


class Emit(_Closed):
    """A message of the author for watchers."""

    kind: Literal["emit"] = "emit"
    type: str
    payload: JsonValue = None


Command = Annotated[
    StartTask
    | StopTask
    | StartTurn
    | StopTurn
    | RunEffect
    | StopEffect
    | StartSandbox
    | StopSandbox
    | ArmTimer
    | DisarmTimer
    | Emit,
    Field(discriminator="kind"),
]


class PickReceipt(_Closed):
    """What became of a pick."""

    event: str
    moved: bool
    """Whether a transition took it; `False` when each guard refused."""
    turn_complete: bool
    """The state that asked for the Turn was left, so the Turn is over."""
    allowed: list[str]
    """What may be picked now, after the delivery; empty when the Turn is over."""


class OpenGate(_Closed):
    """A Gate that is open after the step."""

    gate: str
    id: str
    path: list[str]
    accepts: list[dict[str, JsonValue]]
    """Each `{name, description?, input}`."""
    meta: JsonValue = None


class View(_Closed):
    """What is shown of a run after a step; stored beside the snapshot, never read back in."""

    status: Literal["active", "done", "error", "cancelled"]
    value: JsonValue
    context: JsonValue = None
    output: JsonValue = None
    children: list[JsonValue] = Field(default_factory=list)
    fault: str | None = None
    gates: list[OpenGate] = Field(default_factory=list)


# --- requests -----------------------------------------------------------------------------------
class Request(_Closed):
    """One request; which fields it carries depends on `op`."""

    id: int
    op: Literal["load", "start", "step", "task", "stop_task", "ping"]
    workflow: str | None = None
    run_id: str | None = None
    seq: int | None = None
    """How many steps of the run are stored: the number of the snapshot that is stepped."""
    event: StepEvent | None = None
    key: str | None = None
    machine: list[str] | None = None
    slot: str | None = None
    input: JsonValue = None


# --- replies ------------------------------------------------------------------------------------
class LoadedWorkflow(_Closed):
    """One Workflow of the Assembly."""

    name: str
    machine_id: str
    input: dict[str, JsonValue] | None
    shape: str
    """The Machine's shape digest, 12 hex digits."""
    document: dict[str, JsonValue]
    """The Machine document of `GET /workflows/{name}/machine`."""


class Loaded(_Closed):
    """The Assembly's Workflows, and what is wrong with it: one text for each problem."""

    kind: Literal["loaded"] = "loaded"
    id: int
    kit_version: str
    instance: str
    workflows: list[LoadedWorkflow]
    problems: list[str]


class Stepped(_Closed):
    """A step was made; the body is what is shown of the run, then its new snapshot."""

    kind: Literal["stepped"] = "stepped"
    id: int
    view: int = Field(ge=0)
    """How many bytes of the body are the JSON text of the `View`."""
    commands: list[Command]
    receipt: PickReceipt | None = None
    """Of a `pick` event."""


class Missing(_Closed):
    """The process does not have the snapshot; the request is sent again with it."""

    kind: Literal["missing"] = "missing"
    id: int


class Refused(_Closed):
    """The event or input is not for this run; nothing changed."""

    kind: Literal["refused"] = "refused"
    id: int
    code: Literal[400, 404, 409, 412]
    error: str


class TaskReturned(_Closed):
    """A task ended well."""

    kind: Literal["task_done"] = "task_done"
    id: int
    key: str
    output: JsonValue = None


class TaskRaised(_Closed):
    """A task ended badly, or was stopped."""

    kind: Literal["task_failed"] = "task_failed"
    id: int
    key: str
    reason: str


class Pong(_Closed):
    """The loop of the tasks is running."""

    kind: Literal["pong"] = "pong"
    id: int


class Broken(_Closed):
    """The request could not be served: an unknown Workflow, a snapshot of another Machine."""

    kind: Literal["broken"] = "broken"
    id: int
    error: str


Reply = Annotated[
    Loaded | Stepped | Missing | Refused | TaskReturned | TaskRaised | Pong | Broken,
    Field(discriminator="kind"),
]
