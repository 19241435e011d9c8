"""What the supervisor runs, as data that goes through a file.

The supervisor knows nothing of Kubernetes: it starts services in the order that their `after`
gives, looks at their probes, and ends them in the other order.

Source: design §7.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

MARK: Final = "JR2_SUPERVISOR_STATE"
"""The name of the entry that marks each process that a supervisor starts."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Probe(_Model):
    """How a service is asked whether it works.

    Args:
        kind: `tcp` and `unix` connect; `http` and `https` want an answer below 400.
        target: `host:port`, a path, or an address.
        authority: for `https`: the file of the authority that signed the server's certificate.
        certificate: for `https`: the file of our certificate.
        key: for `https`: the file of its key.
    """

    kind: Literal["tcp", "unix", "http", "https"]
    target: str
    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


class Service(_Model):
    """One process that is kept running.

    Args:
        name: its name; its log is `<name>.log`.
        argv: the program and its arguments.
        version: the version of the program, for `status`.
        after: services whose probe must answer before this one starts, and that end after it.
        starts_when: what must answer as well before this one starts.
        probe: how its health is asked; `None` counts a running process as healthy.
        settle_seconds: how long it has to end by itself before it is killed.
        group_ends: a control group whose processes end after this one, before what it needs does.
        strays: a word of the command line of helpers that outlive this process and end after it.
    """

    name: str
    argv: tuple[str, ...]
    version: str | None = None
    after: tuple[str, ...] = ()
    starts_when: Probe | None = None
    probe: Probe | None = None
    settle_seconds: float = 15.0
    group_ends: str | None = None
    strays: str | None = None


class Chore(_Model):
    """A program that is run again and again, and ends by itself.

    Args:
        name: its name; its log is `<name>.log`.
        argv: the program and its arguments.
        every_seconds: the pause before each run, also before the first one.
        longest_seconds: after which it is killed.
    """

    name: str
    argv: tuple[str, ...]
    every_seconds: float
    longest_seconds: float = 60.0


class Plan(_Model):
    """Everything that a supervisor needs.

    Args:
        folder: the folder that processes run in.
        logs: where their logs are.
        lock: the file that the supervisor locks for as long as it lives.
        state: where it writes what it knows.
        environment: the environment of each process; the supervisor adds its own mark.
        services: the processes.
        chores: what is run again and again beside them.
        first_pause: seconds before the first restart of a service; it doubles.
        longest_pause: the greatest pause, in seconds.
        stable_after: seconds after which a process counts as stable, so that the pause starts anew.
        log_bytes: a log that is greater goes on empty; what it held is in `<name>.log.1`.
        log_pause: seconds between two looks at the logs.
    """

    folder: Path
    logs: Path
    lock: Path
    state: Path
    environment: dict[str, str]
    services: tuple[Service, ...]
    chores: tuple[Chore, ...] = ()
    first_pause: float = 0.2
    longest_pause: float = 20.0
    stable_after: float = 10.0
    log_bytes: int = 16 * 2**20
    log_pause: float = 10.0

    @property
    def mark(self) -> str:
        """The entry in the environment of every process that this plan starts."""
        return f"{MARK}={self.state}"


class ServiceState(_Model):
    """What the supervisor knows of a process.

    Args:
        name: the service.
        pid: its process; `None` while there is none.
        start: what `jr2_infra.process_table.start_of` says of the process; with the pid it names
            the process for ever, also when the pid is used again or the machine was restarted.
        started_at: seconds since 1970.
        restarts: how often it was started again.
        last_exit: the exit code of the one before; negative for a signal.
    """

    name: str
    pid: int | None = None
    start: str | None = None
    started_at: float | None = None
    restarts: int = 0
    last_exit: int | None = None


class State(_Model):
    """What the supervisor writes for `status`, and for the supervisor after it.

    Args:
        pid: the supervisor.
        start: what `jr2_infra.process_table.start_of` says of it.
        started_at: seconds since 1970.
        stopping: whether it is ending everything.
        services: one entry for each service, in the order of the plan.
    """

    pid: int
    start: str | None = None
    started_at: float
    stopping: bool = False
    services: tuple[ServiceState, ...] = Field(default=())
