"""`kill -9` of the command, the engine, its plugin and its provider, at five points of a converge.

After each kill nothing of the run is left to write, the next `jr2 up` with a closed standard input
asks nothing and ends well, and no pod that is already right starts again. What holds a run at its
point is a program of its own beside the real one: the engine and kubectl are looked up on PATH.

Source: design §5.2 (fencing), field case 4.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jr2 import names
from jr2_cli import tools
from jr2_infra import closed_list, kube, process_table
from jr2_infra.api import Api
from jr2_infra.engine import minder
from tests.cluster.conftest import BIN, CONTEXT, Instance
from tests.waiting import LIMIT, wait_for

pytestmark = pytest.mark.cluster

NAME = "killed"
CONVERGED = "converged — `jr2 run <workflow>` when ready"
HOLDER = "jr2.dev/lease-holder"
ENGINE = """#!/bin/sh
[ "$1" = version ] && exec {real} "$@"
touch {folder}/engine-started
while [ -e {folder}/hold-engine ]; do sleep 0.05; done
exec {real} "$@"
"""
KUBECTL = """#!/bin/sh
case "$*" in *port-forward*) ;; *) exec {real} "$@";; esac
touch {folder}/publish-reached
while [ -e {folder}/hold-publish ]; do sleep 0.05; done
{real} "$@" &
forward=$!
leave() {{
    touch {folder}/published
    while [ -e {folder}/hold-end ]; do sleep 0.05; done
    kill $forward
    exit 0
}}
trap leave TERM
wait $forward
"""


class Programs:
    """The engine and kubectl, each with a door that can be held shut."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, text in (("pulumi", ENGINE), ("kubectl", KUBECTL)):
            script = folder / name
            script.write_text(text.format(real=tools.require(name), folder=folder))
            script.chmod(0o755)
        self.environment = {"PATH": f"{folder}:{BIN}:{os.environ['PATH']}"}

    def hold(self, door: str) -> None:
        (self.folder / f"hold-{door}").touch()

    def open_all(self) -> None:
        for door in self.folder.glob("hold-*"):
            door.unlink()

    def came_to(self, mark: str) -> bool:
        return (self.folder / mark).exists()


class Run:
    """A converge that stands at its point, and what belongs to it."""

    def __init__(self, instance: Instance, programs: Programs) -> None:
        self.instance = instance
        self.programs = programs
        self.child = instance.start(
            "up", "--context", CONTEXT, "--yes", environment=programs.environment
        )
        self._session = 0
        self.folder = Path()

    def said(self, text: str) -> None:
        """Read what the command says until it says the text."""
        assert self.child.stderr is not None
        lines: list[str] = []
        for line in self.child.stderr:
            lines.append(line)
            if text in line:
                return
        pytest.fail(f"{text!r} was never said:\n{''.join(lines)}")

    def recorded(self) -> bool:
        """Learn from the Lease which processes the engine's are; say whether it says so."""
        found = self.instance.kubectl(
            "-n", NAME, "get", "lease", names.CONVERGE_LEASE, "--ignore-not-found", "-o", "json"
        )
        lease = json.loads(found or "{}")
        text = (lease.get("metadata", {}).get("annotations") or {}).get(HOLDER)
        holder = json.loads(text) if text else {}
        if holder.get("pid") != self.child.pid or not holder.get("session"):
            return False
        self._session = int(holder["session"])
        self.folder = Path(holder["mark"]).parent
        return True

    def members(self) -> dict[int, str]:
        """Return the engine's processes that run, each with its command line."""
        found: dict[int, str] = {}
        for pid in minder.session_members(self._session) if self._session else ():
            with contextlib.suppress(OSError):
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
                found[pid] = line.decode(errors="replace")
        return found

    def kill(self, who: str) -> None:
        """Kill one of them, and wait until nothing of the run is left."""
        if who == "command":
            self.child.kill()
        else:
            self._send(signal.SIGKILL, wait_for(f"a process of the {who}", lambda: self._of(who)))
        self.let_plugin_go_on()
        self.programs.open_all()
        self.out, self.err = self.child.communicate(timeout=LIMIT)
        wait_for("every process of the run is gone", lambda: not self.members())

    def let_plugin_make(self, made: Callable[[], bool]) -> None:
        """Let the plugin run for moments until it has made something, and stop it there."""
        wait_for("the Lease names the engine", self.recorded)
        plugin = wait_for("a process of the plugin", lambda: self._of("plugin"))
        until = time.monotonic() + LIMIT
        self._send(signal.SIGSTOP, plugin)
        while not made():
            assert time.monotonic() < until, f"the plugin made nothing in {LIMIT:g} s"
            self._send(signal.SIGCONT, plugin)
            time.sleep(0.03)
            self._send(signal.SIGSTOP, plugin)

    def let_plugin_go_on(self) -> None:
        """Let the plugin run, where it was stopped and lives."""
        self._send(signal.SIGCONT, self._of("plugin"))

    def _send(self, number: signal.Signals, pids: list[int]) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _of(self, who: str) -> list[int]:
        words = {
            "engine": ("pulumi up ", "/pulumi up "),
            "plugin": ("pulumi-resource-kubernetes",),
            "provider": ("pulumi-resource-pulumi-python", "dynamic/__main__.py", "pulumi.dynamic"),
        }[who]
        return [
            pid
            for pid, line in self.members().items()
            if any(word in line for word in words) and "minder.py" not in line
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One point of a converge.

    Args:
        prepare: gives the run something to do there.
        reach: brings the run there.
        keeps_pod: the pod of before is right, and stays.
    """

    prepare: Callable[[Instance, Programs], None]
    reach: Callable[[Run], None]
    keeps_pod: bool = True


def edit_ping(instance: Instance) -> None:
    workflow = instance.folder / "workflows" / "ping.py"
    workflow.write_text(workflow.read_text() + "# edited\n")


def change_map(instance: Instance) -> None:
    instance.kubectl(
        "-n", NAME, "patch", "configmap", names.HARNESS_MAP, "-p", '{"data":{"harness.json":"{1}"}}'
    )


SMALL = (
    ("configmap", names.HARNESS_MAP),
    ("configmap", names.HELD_MAP),
    ("networkpolicy", names.SANDBOX_INGRESS),
    ("networkpolicy", names.INSTANCE_HARNESS_INGRESS),
    ("networkpolicy", names.ORCHESTRATOR_INGRESS),
    ("rolebinding", names.ORCHESTRATOR),
    ("role", names.ORCHESTRATOR),
    ("service", names.ORCHESTRATOR),
)
"""Objects that no pod needs to stay."""


def _before_engine(instance: Instance, programs: Programs) -> None:
    change_map(instance)
    programs.hold("engine")


def _at_engine(run: Run) -> None:
    wait_for("the engine is started", lambda: run.programs.came_to("engine-started"))


def _objects_missing(instance: Instance, programs: Programs) -> None:
    edit_ping(instance)
    for kind, name in SMALL:
        instance.kubectl("-n", NAME, "delete", kind, name, "--wait=true")


def _at_create(run: Run) -> None:
    """The first of the missing objects are there again, and no more are made."""
    run.let_plugin_make(lambda: bool(_there(run.instance)))


def _there(instance: Instance) -> set[tuple[str, str]]:
    """Return which of the small objects there are."""
    kinds = {kind for kind, _ in closed_list.INSTANCE_OBJECTS if kind.kind.lower() in dict(SMALL)}
    # Without a process for each look: a plugin that runs for moments would take minutes.
    with kube.load_context(CONTEXT, os.environ).http() as http:
        there = {
            (kind.kind.lower(), found["metadata"]["name"])
            for kind in kinds
            for found in Api(http).objects(kind, instance.name)
        }
    return there & set(SMALL)


def _scaled_away(instance: Instance, programs: Programs) -> None:
    edit_ping(instance)
    instance.kubectl("-n", NAME, "scale", f"deployment/{names.ORCHESTRATOR}", "--replicas=0")


def _at_publish(run: Run) -> None:
    wait_for("the publish is reached", lambda: run.programs.came_to("publish-reached"))


def _held(door: str) -> Callable[[Instance, Programs], None]:
    def prepare(instance: Instance, programs: Programs) -> None:
        edit_ping(instance)
        programs.hold(door)

    return prepare


def _at_end(run: Run) -> None:
    wait_for("the Assembly is published", lambda: run.programs.came_to("published"))


POINTS: dict[str, Point] = {
    "before the engine": Point(prepare=_before_engine, reach=_at_engine),
    "during create": Point(prepare=_objects_missing, reach=_at_create),
    "during the rollout": Point(
        prepare=_scaled_away,
        reach=lambda run: run.said("orchestrator: waiting for rollout"),
        keeps_pod=False,
    ),
    "before the publish": Point(prepare=_held("publish"), reach=_at_publish),
    "at the end": Point(prepare=_held("end"), reach=_at_end),
}
MADE = ("during create", "during the rollout", "before the publish")
"""Where all objects may stand; of the first only when it was quicker than a moment."""
WHO = ("command", "engine", "plugin", "provider")
EACH = [
    (point, who)
    for point in POINTS
    for who in WHO
    # The plugin and the provider are started by the engine.
    if point != "before the engine" or who in ("command", "engine")
]
FEW = [
    *((point, "command") for point in POINTS),
    ("during create", "plugin"),
    ("during the rollout", "provider"),
    ("before the publish", "engine"),
]
"""Each point and each victim once; all pairs take several minutes: `JR2_CHAOS_CONVERGE=all`."""
CASES = EACH if os.environ.get("JR2_CHAOS_CONVERGE") == "all" else FEW


@pytest.fixture(scope="module")
def instance(
    new_instance: Callable[[str], Instance], depart: Callable[[Instance], None]
) -> Iterator[Instance]:
    made = new_instance(NAME)
    made.up()
    yield made
    depart(made)


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    folder = tmp_path / "programs"
    folder.mkdir()
    return Programs(folder)


def lease_of(instance: Instance) -> Any:
    return instance.get("lease", names.CONVERGE_LEASE)["spec"]


class Abandoned:
    """A Lease that a killed run left behind, on another machine or with numbers that others have.

    Args:
        instance: whose namespace it is in.
        holder: who the Lease says that it is.
    """

    def __init__(self, instance: Instance, **holder: Any) -> None:
        said = {"user": "ada", "started": "2026-01-01T00:00:00Z", **holder}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        body = {
            "metadata": {"annotations": {HOLDER: json.dumps(said)}},
            "spec": {"holderIdentity": "left", "acquireTime": now, "renewTime": now},
        }
        instance.kubectl(
            "-n", NAME, "patch", "lease", names.CONVERGE_LEASE, "--type=merge",
            "-p", json.dumps(body),
        )  # fmt: skip
        self.instance = instance
        self.words = f"ada on {said['host']} (pid {said['pid']}, since {said['started']})"

    def is_taken_over(self) -> None:
        """Converge with a closed standard input: nothing is asked, and one line says whose it was."""
        edit_ping(self.instance)
        lines = self.instance.up().rstrip().splitlines()
        assert lines[-1] == CONVERGED
        assert [line for line in lines if line.startswith("lease: ")] == [
            f"lease: taken over from {self.words}, which no longer renews it"
        ]
        assert not lease_of(self.instance).get("holderIdentity")


@contextlib.contextmanager
def untouched_program() -> Iterator[tuple[int, str]]:
    """A program that has nothing to do with jr2, and must run to the end of the block.

    Its number and its start are given.
    """
    with subprocess.Popen(["sleep", "infinity"], start_new_session=True) as other:
        try:
            start = process_table.start_of(other.pid)
            assert start is not None
            yield other.pid, start
            assert other.poll() is None
        finally:
            other.kill()


def test_the_lease_of_another_machine_is_taken_over_when_it_does_not_move(
    instance: Instance,
) -> None:
    """Field case 4c: the number in it is that of a program of this machine, which is not ended."""
    with untouched_program() as (pid, start):
        Abandoned(
            instance,
            host="another-machine",
            pid=pid,
            session=pid,
            session_start=start,
            mark="PATH=",
        ).is_taken_over()


@pytest.mark.parametrize("start", ["of another process", "its own"])
def test_a_number_that_another_program_has_by_now_does_not_count(
    instance: Instance, start: str
) -> None:
    """Field case 4d, also when the Lease was forged to name that very program."""
    with untouched_program() as (pid, own):
        Abandoned(
            instance,
            host=process_table.host(),
            pid=pid,
            session=pid,
            session_start=own if start == "its own" else f"{own}0",
            mark="PATH=",
        ).is_taken_over()


@pytest.mark.parametrize(("where", "who"), CASES, ids=lambda value: value.replace(" ", "-"))
def test_a_kill_leaves_nothing_to_write_and_the_next_run_ends_well(
    instance: Instance,
    programs: Programs,
    pulumi_must_not_run: dict[str, str],
    where: str,
    who: str,
) -> None:
    point = POINTS[where]
    pod = instance.pod_identity()
    point.prepare(instance, programs)
    run = Run(instance, programs)
    try:
        point.reach(run)
        wait_for("the Lease names the engine", run.recorded)
        is_midway = where == "during create" and len(_there(instance)) < len(SMALL)
        run.kill(who)
    finally:
        programs.open_all()
        if run.child.poll() is None:
            run.child.kill()
            run.child.communicate()

    if who == "command":
        assert run.child.returncode == -signal.SIGKILL
        assert lease_of(instance).get("holderIdentity"), "nobody gave the Lease back"
    elif run.child.returncode:
        assert run.child.returncode == 1
        assert run.err.rstrip().splitlines()[-1].startswith("error: ")
        assert "Traceback" not in run.err
    else:
        # Once all objects stand the engine may need its plugin no more. At the end it may have been
        # told everything.
        assert where == "at the end" or (who == "plugin" and not is_midway and where in MADE)

    said = instance.up()
    if (where, who) == ("at the end", "command"):
        # Everything is done, and the proof of it needs no Lease. The next run that writes takes
        # the Lease over.
        assert said.rstrip().splitlines()[-1] == CONVERGED
        assert "lease: taken over" not in said
        edit_ping(instance)
        said = instance.up()

    lines = said.rstrip().splitlines()
    assert lines[-1] == CONVERGED
    taken = [line for line in lines if line.startswith("lease: taken over from ")]
    assert len(taken) == (who == "command")
    assert all(f"(pid {run.child.pid}," in line for line in taken)
    assert not run.folder.exists()
    if point.keeps_pod:
        assert instance.pod_identity() == pod
    for kind, name in SMALL:
        assert instance.get(kind, name)
    assert not lease_of(instance).get("holderIdentity")
    proved = instance.up(environment=pulumi_must_not_run)
    assert proved.rstrip().splitlines()[-1] == CONVERGED
