"""The HTTP shapes of the Orchestrator: what its routes answer and what the command reads.

Names are camelCase on the wire and snake_case here. Every error body is `{"error": "<text>"}`.

Source: spec/runtime.md §1.4, §1.7, §1.13.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

RunState = Literal["active", "done", "error", "cancelled", "lost", "drifted"]
"""A live run says `active`; every other word is the end of a run."""


class Wire(BaseModel):
    """The base of every shape: frozen, closed, camelCase outside."""

    # Built when first used: a command that speaks a few of these shapes does not wait for all.
    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        defer_build=True,
    )


class ErrorBody(Wire):
    """Every answer that is an error."""

    error: str


class Taken(Wire):
    """A write that was taken."""

    ok: Literal[True] = True


class Ready(Wire):
    """`GET /readyz`."""

    ready: Literal[True] = True


class Health(Wire):
    """`GET /healthz`: what is deployed."""

    ok: Literal[True] = True
    version: str
    hash: str | None = None
    """The current Assembly, 64 hex digits; absent until the first publish."""
    proof: str | None = None
    """`jr2.signed.proof` of the nonce that came along; absent when none did."""


class Accepted(Wire):
    """One event that a Gate accepts."""

    name: str
    description: str | None = None
    input: dict[str, JsonValue]
    """The JSON Schema of the event's payload."""


class GateView(Wire):
    """One open Gate of a run."""

    gate: str
    """The address: run-wide unique while the Gate is open."""
    id: str
    """This entry into the Gate: another one for each entry (`If-Gate`)."""
    path: list[str]
    """The state that waits, from the root of its Machine."""
    accepts: list[Accepted]
    meta: JsonValue = None


class ChildView(Wire):
    """A child Machine of a run, observed."""

    id: str
    src: str
    status: str
    value: JsonValue
    children: list[ChildView] = Field(default_factory=list)


class RunObservation(Wire):
    """What the open band may see of a run: structure, never context or payload."""

    run_id: str
    workflow: str
    status: RunState
    value: JsonValue
    """The active states: a name, or an object of regions, as in a statechart."""
    children: list[ChildView] = Field(default_factory=list)


class RunStatus(Wire):
    """What the Instance token may see of a run."""

    run_id: str
    workflow: str
    instance_id: str
    status: RunState
    value: JsonValue
    context: JsonValue = None
    output: JsonValue = None
    children: list[Any] = Field(default_factory=list)
    fault: str | None = None
    reason: str | None = None
    assembly: str | None = None
    """The Assembly that the run holds, 64 hex digits."""
    older_assembly: bool = False
    """The run holds an Assembly that is no longer current."""
    stuck: str | None = None
    """Why nothing will ever move a live run: `no next action`."""
    gates: list[GateView] | None = None
    """Only in `GET /runs/{id}`."""


class RunStarted(Wire):
    """`POST /workflows/{name}/runs`."""

    run_id: str
    instance_id: str


class Resolved(Wire):
    """`GET /runs/resolve?prefix=`."""

    prefix: str
    run_ids: list[str]
    truncated: bool


class WorkflowView(Wire):
    """`GET /workflows/{name}`."""

    name: str
    machine_id: str
    input: dict[str, JsonValue] | None
    """The JSON Schema of the door, or `null` when the Machine has none."""


class HeldAssembly(Wire):
    """One Assembly on the state volume."""

    hash: str
    kit_version: str
    current: bool
    runs: list[str]
    """The live runs that hold it."""


class Maps(Wire):
    """The digests of the maps that the Orchestrator watches; `null` until it has read one."""

    images: str | None = None
    """SHA-256 of `images.json` of the ConfigMap `jr2-images`, hex."""
    held: str | None = None
    """SHA-256 of `held.json` of the ConfigMap `jr2-held`, hex."""


class Assemblies(Wire):
    """`GET /assemblies`."""

    current: str | None
    assemblies: list[HeldAssembly]
    maps: Maps
    stuck: list[str] = Field(default_factory=list)
    """The live runs that nothing will ever move: no open Gate, no task, no timer."""


class Published(Wire):
    """`PUT /assemblies/{hash}`: 201 made current now, 200 it was current already."""

    hash: str
    workflows: list[str]


class AssemblyFile(Wire):
    """One file or symlink of an Assembly."""

    path: str
    kind: Literal["file", "exec", "link"]
    """`exec` is a file with an execute bit."""
    sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    """Of a file's bytes, which are the blob of that name."""
    size: int = Field(default=0, ge=0, le=2**40)
    target: str | None = None
    """Of a symlink."""


class AssemblyFiles(Wire):
    """`GET /assemblies/{hash}/files`."""

    files: list[AssemblyFile]


class AssemblyListing(Wire):
    """The files of an Assembly: all of them, or what differs from one that is held."""

    base: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    """The hash of the held Assembly that it starts from."""
    removed: list[str] = Field(default_factory=list)
    """The paths of the base that this one does not have."""
    files: list[AssemblyFile] = Field(default_factory=list)
    """What the base does not have, or has otherwise."""


class MissingBlobs(Wire):
    """`POST /assemblies/{hash}/missing`: the digests that are not held."""

    missing: list[str]


class PublishRefused(Wire):
    """An answer of the publish band that is an error."""

    error: str
    problems: list[str] = Field(default_factory=list)


class AssemblyManifest(Wire):
    """`assembly.json` at the root of an Assembly."""

    kit_version: str
    instance: str
    workflows: list[str]
    """Sorted stems of `workflows/*.py`."""
    platform: str
    """`linux/amd64` or `linux/arm64`; `any` when no file of the Assembly is native."""
    python: str
    """The Python of the Orchestrator's image, `3.11`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseStamp:
    """Which holder of the converge Lease publishes: the header `X-JR2-Lease`.

    Two stamps are compared by the time of acquisition alone, so a holder that takes a Lease over
    writes a time that is later than the one it found.
    """

    acquired: datetime
    """With a time zone."""
    nonce: str
    """Letters, digits, `-` and `_`."""

    def header(self) -> str:
        """Return the header's value: the time in UTC with microseconds, a space, the nonce."""
        moment = self.acquired.astimezone(UTC).replace(tzinfo=None)
        return f"{moment.isoformat(timespec='microseconds')}Z {self.nonce}"

    @classmethod
    def parse(cls, text: str) -> LeaseStamp:
        """Read a header's value.

        Raises:
            ValueError: it is not a time with a zone, a space and a nonce.
        """
        moment, _, nonce = text.strip().partition(" ")
        acquired = datetime.fromisoformat(moment)
        plain = nonce.replace("-", "").replace("_", "")
        if acquired.tzinfo is None or not plain.isascii() or not plain.isalnum():
            raise ValueError("a Lease stamp is a time with a zone, a space and a nonce")
        return cls(acquired=acquired, nonce=nonce)
