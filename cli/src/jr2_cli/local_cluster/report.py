"""What `jr2 cluster status` shows.

Each process is asked by its own probe, at once and in parallel, so the answer is of now and not of
when the supervisor last looked.

Source: design §7.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Literal

from . import layout
from .layout import Layout
from .record import read_record
from .supervision import plan, probes, process_table, remains


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessReport:
    """One process of the cluster.

    Args:
        name: its name.
        version: the version of its program.
        pid: its process; `None` while there is none.
        healthy: whether it runs and answers.
        restarts: how often it was started again since the supervisor started.
        age_seconds: since when it runs.
        last_exit: the exit code of the one before.
        memory_bytes: what it holds in memory.
    """

    name: str
    version: str | None
    pid: int | None
    healthy: bool
    restarts: int
    age_seconds: float | None
    last_exit: int | None
    memory_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterReport:
    """The whole cluster.

    Args:
        state: `running` under a supervisor, `unsupervised` when the supervisor was killed and
            processes of it still run, `stopped` with its data, or `absent`.
        kubernetes: the version of its API server.
        supervisor: the supervisor, with the version of jr2; `None` when there is none.
        processes: one entry for each process.
    """

    state: Literal["running", "unsupervised", "stopped", "absent"]
    kubernetes: str | None
    supervisor: ProcessReport | None
    processes: tuple[ProcessReport, ...]

    @property
    def is_healthy(self) -> bool:
        """Whether it runs and every process answers."""
        return self.state == "running" and all(entry.healthy for entry in self.processes)


def process_reports(files: Layout) -> tuple[ProcessReport, ...]:
    """Ask every process of the plan; none when there is no plan."""
    try:
        work = plan.Plan.model_validate_json(files.plan.read_bytes())
    except (OSError, ValueError):
        return ()
    state = remains.read_state(files.supervisor_state)
    known = {} if state is None else {entry.name: entry for entry in state.services}
    with ThreadPoolExecutor(len(work.services)) as pool:
        return tuple(
            pool.map(
                lambda service: _report(
                    service, known.get(service.name, plan.ServiceState(name=service.name))
                ),
                work.services,
            )
        )


def cluster_report(files: Layout) -> ClusterReport:
    """Look at the cluster as it is now."""
    record = read_record(files)
    is_running = remains.is_running(files.supervisor_lock)
    processes = process_reports(files)
    state: Literal["running", "unsupervised", "stopped", "absent"]
    if is_running:
        state = "running"
    elif any(entry.pid is not None for entry in processes):
        state = "unsupervised"
    else:
        state = "absent" if record is None else "stopped"
    return ClusterReport(
        state=state,
        kubernetes=None if record is None else record.kubernetes,
        supervisor=_supervisor(files) if is_running else None,
        processes=processes,
    )


def as_json(report: ClusterReport, files: Layout) -> dict[str, Any]:
    """The report as JSON."""
    return {
        "state": report.state,
        "running": report.state == "running",
        "healthy": report.is_healthy,
        "context": layout.CONTEXT,
        "server": layout.SERVER,
        "kubernetes": report.kubernetes,
        "folder": str(files.root),
        "containerd": str(files.containerd_socket),
        "supervisor": None if report.supervisor is None else _as_json(report.supervisor, files),
        "processes": [_as_json(entry, files) for entry in report.processes],
    }


def _as_json(entry: ProcessReport, files: Layout) -> dict[str, Any]:
    return {
        "name": entry.name,
        "version": entry.version,
        "pid": entry.pid,
        "healthy": entry.healthy,
        "restarts": entry.restarts,
        "ageSeconds": None if entry.age_seconds is None else round(entry.age_seconds),
        "lastExit": entry.last_exit,
        "memoryBytes": entry.memory_bytes,
        "log": str(files.logs / f"{entry.name}.log"),
    }


def as_text(report: ClusterReport, files: Layout) -> str:
    """The report as text: a line for the cluster, and one for each process."""
    if report.state == "absent":
        return "no local cluster"
    lines = [
        f"{report.state}: context {layout.CONTEXT} · {layout.SERVER} · "
        f"Kubernetes v{report.kubernetes or '?'} · {files.root}"
    ]
    if report.state == "unsupervised":
        lines.append("the supervisor is gone — `jr2 cluster start` makes a new one")
    entries = [*report.processes, *([] if report.supervisor is None else [report.supervisor])]
    if report.state == "stopped":
        return "\n".join([*lines, "`jr2 cluster start` goes on with the same data"])
    width = max((len(entry.name) for entry in entries), default=0)
    long = max((len(entry.version or "?") for entry in entries), default=0)
    for entry in entries:
        health = "ok" if entry.healthy else "down" if entry.pid is None else "ill"
        pid = "-" if entry.pid is None else str(entry.pid)
        restarts = f" · {entry.restarts} restarts" if entry.restarts else ""
        age = "" if entry.age_seconds is None else f" · {_duration(entry.age_seconds)}"
        held = "" if entry.memory_bytes is None else f" · {entry.memory_bytes / 2**20:.0f} MiB"
        lines.append(
            f"  {entry.name.ljust(width)}  {(entry.version or '?').ljust(long)}  {health:4}  "
            f"{pid}{age}{held}{restarts}"
        )
    return "\n".join(lines)


def _supervisor(files: Layout) -> ProcessReport | None:
    state = remains.read_state(files.supervisor_state)
    if state is None:
        return None
    return ProcessReport(
        name="supervisor",
        version=metadata.version("jr2-cli"),
        pid=state.pid,
        healthy=not state.stopping,
        restarts=0,
        age_seconds=time.time() - state.started_at,
        last_exit=None,
        memory_bytes=process_table.resident_bytes(state.pid),
    )


def _report(service: plan.Service, state: plan.ServiceState) -> ProcessReport:
    is_alive = state.pid is not None and process_table.lives(state.pid, state.start)
    healthy = is_alive and (service.probe is None or probes.answers(service.probe))
    return ProcessReport(
        name=service.name,
        version=service.version,
        pid=state.pid if is_alive else None,
        healthy=healthy,
        restarts=state.restarts,
        age_seconds=time.time() - state.started_at if is_alive and state.started_at else None,
        last_exit=state.last_exit,
        memory_bytes=process_table.resident_bytes(state.pid) if state.pid and is_alive else None,
    )


def _duration(seconds: float) -> str:
    whole = int(seconds)
    if whole < 120:
        return f"{whole}s"
    if whole < 7200:
        return f"{whole // 60}m"
    return f"{whole // 3600}h" if whole < 172_800 else f"{whole // 86_400}d"
