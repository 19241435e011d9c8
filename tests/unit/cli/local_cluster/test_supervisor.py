"""The supervisor keeps real processes running, and ends all of them in their turn."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from jr2_cli.local_cluster import layout, record, report
from jr2_cli.local_cluster.supervision import logs, plan, process_table, remains, supervisor
from jr2_infra.process_table import start_of
from tests.waiting import LIMIT

SLEEP = ("/bin/sh", "-c", "while :; do sleep 0.02; done")


def wait_for(holds: Callable[[], bool], seconds: float = LIMIT) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "the condition did not hold in time"
        time.sleep(0.01)


class Started:
    """A supervisor that runs as a process of its own."""

    def __init__(
        self, folder: Path, *services: plan.Service, chores: Sequence[plan.Chore] = ()
    ) -> None:
        self.files = layout.Layout(folder)
        self.files.config.mkdir(exist_ok=True)
        self.work = plan.Plan(
            folder=folder,
            logs=folder,
            lock=self.files.supervisor_lock,
            state=self.files.supervisor_state,
            environment={"PATH": "/usr/bin:/bin"},
            services=services,
            chores=tuple(chores),
            first_pause=0.01,
            longest_pause=0.04,
            stable_after=0.5,
            log_bytes=4096,
            log_pause=0.02,
        )
        self.files.plan.write_text(self.work.model_dump_json())
        with (folder / "supervisor.log").open("ab") as log:
            self.child = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "jr2_cli.local_cluster.supervision.supervisor",
                    str(self.files.plan),
                ],
                stderr=log,
            )

    def state(self, name: str) -> plan.ServiceState:
        found = remains.read_state(self.work.state)
        services = () if found is None else found.services
        return next((s for s in services if s.name == name), plan.ServiceState(name=name))

    def pid(self, name: str) -> int:
        wait_for(lambda: self.state(name).pid is not None)
        pid = self.state(name).pid
        assert pid is not None
        return pid

    def stop(self) -> int:
        self.child.send_signal(signal.SIGTERM)
        return self.child.wait(LIMIT)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Started]]:
    started: list[Started] = []

    def begin(*services: plan.Service, chores: Sequence[plan.Chore] = ()) -> Started:
        started.append(Started(tmp_path, *services, chores=chores))
        return started[-1]

    yield begin
    for one in started:
        if one.child.poll() is None:
            one.child.kill()
            one.child.wait()
        process_table.end(remains.leftovers(one.work), settle_seconds=0)


def service(name: str, *argv: str, **rest: object) -> plan.Service:
    return plan.Service.model_validate({"name": name, "argv": argv or SLEEP, **rest})


def test_a_process_that_is_killed_is_started_again(start: Callable[..., Started]) -> None:
    one = start(service("worker"))
    first = one.pid("worker")

    os.kill(first, signal.SIGKILL)
    wait_for(lambda: one.state("worker").pid not in (None, first))

    assert one.state("worker").restarts == 1
    assert one.state("worker").last_exit == -signal.SIGKILL
    assert one.stop() == 0


def test_stop_ends_each_process_after_those_that_need_it(
    start: Callable[..., Started], tmp_path: Path
) -> None:
    # Each writes its name when it is told to end, some time after it was told.
    script = (
        f"trap 'sleep 0.1; echo $0 >> {tmp_path}/ends; exit' TERM; touch {tmp_path}/$0.listens; "
        "while :; do sleep 0.02; done"
    )
    names = ("store", "server", "client")
    one = start(
        service("store", "/bin/sh", "-c", script, "store"),
        service("server", "/bin/sh", "-c", script, "server", after=["store"]),
        service("client", "/bin/sh", "-c", script, "client", after=["server", "store"]),
    )
    pids = [one.pid(name) for name in names]
    wait_for(lambda: all((tmp_path / f"{name}.listens").exists() for name in names))

    assert one.stop() == 0

    assert (tmp_path / "ends").read_text().split() == ["client", "server", "store"]
    assert [start_of(pid) for pid in pids] == [None, None, None]
    assert not one.work.state.exists()


def test_a_process_that_does_not_end_is_killed(start: Callable[..., Started]) -> None:
    one = start(
        service(
            "deaf",
            "/bin/sh",
            "-c",
            "trap '' TERM; echo deaf >&2; while :; do sleep 0.02; done",
            settle_seconds=0.2,
        )
    )
    pid = one.pid("deaf")
    wait_for(lambda: (one.work.logs / "deaf.log").read_text() == "deaf\n")

    assert one.stop() == 0

    assert start_of(pid) is None


def test_a_service_waits_until_what_it_needs_answers(
    start: Callable[..., Started], tmp_path: Path
) -> None:
    path = tmp_path / "socket"
    code = (
        "import os, socket, time\n"
        f"while not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.01)\n"
        f"s = socket.socket(socket.AF_UNIX); s.bind({str(path)!r}); s.listen()\n"
        "while True: s.accept()\n"
    )
    one = start(
        service("server", sys.executable, "-c", code, probe={"kind": "unix", "target": str(path)}),
        service("client", after=["server"]),
    )
    one.pid("server")

    assert one.state("client").pid is None
    (tmp_path / "go").touch()
    assert one.pid("client")
    assert one.stop() == 0


def test_a_program_that_does_not_exist_does_not_end_the_others(
    start: Callable[..., Started],
) -> None:
    one = start(service("absent", "/nonexistent/program"), service("worker"))
    pid = one.pid("worker")
    wait_for(lambda: one.state("absent").restarts > 3)

    assert one.state("worker").pid == pid
    assert one.state("absent").last_exit == 127
    assert one.stop() == 0


def test_stop_during_the_pause_before_a_restart_ends_at_once(
    start: Callable[..., Started],
) -> None:
    one = start(
        service("failing", "/bin/false"), service("never", after=["waits"]), service("waits")
    )
    wait_for(lambda: one.state("failing").restarts > 0)

    assert one.stop() == 0


def test_helpers_that_outlive_their_process_end_with_it(
    start: Callable[..., Started], tmp_path: Path
) -> None:
    word = str(tmp_path / "helper.sock")
    script = f"setsid /bin/sh -c 'while :; do sleep 0.02; done' helper {word} & wait"
    one = start(service("parent", "/bin/sh", "-c", script, strays=word))
    one.pid("parent")
    wait_for(lambda: len(process_table.find_by_argument(word)) > 0)
    helpers = process_table.find_by_argument(word)

    assert one.stop() == 0

    assert process_table.find_by_argument(word) == set()
    assert all(start_of(pid) is None for pid in helpers)


def test_a_second_supervisor_ends_and_touches_nothing(start: Callable[..., Started]) -> None:
    one = start(service("worker"))
    pid = one.pid("worker")
    second = start(service("worker"))

    assert second.child.wait(LIMIT) == supervisor.EXIT_SECOND

    assert one.pid("worker") == pid
    assert remains.is_running(one.work.lock)
    assert one.stop() == 0
    assert not remains.is_running(one.work.lock)


def test_the_next_supervisor_ends_what_a_killed_one_left_running(
    start: Callable[..., Started],
) -> None:
    one = start(service("worker"))
    left = one.pid("worker")
    one.child.kill()
    one.child.wait()
    assert start_of(left) is not None

    two = start(service("worker"))
    wait_for(lambda: two.state("worker").pid not in (None, left))

    assert start_of(left) is None
    assert two.stop() == 0


def test_a_process_id_that_belongs_to_another_program_now_is_left_alone(tmp_path: Path) -> None:
    stranger = subprocess.Popen(SLEEP)
    try:
        state = plan.State(
            pid=1,
            started_at=0.0,
            services=(plan.ServiceState(name="worker", pid=stranger.pid, start="boot/1"),),
        )
        path = tmp_path / "state.json"
        path.write_text(state.model_dump_json())
        work = plan.Plan(
            folder=tmp_path,
            logs=tmp_path,
            lock=tmp_path / "lock",
            state=path,
            environment={},
            services=(),
        )

        remains.end_leftovers(work)

        assert start_of(stranger.pid) is not None
        assert not path.exists()
    finally:
        stranger.kill()
        stranger.wait()


WRITER = """
import os, sys, time
line, left = 0, sys.argv[1]
while not os.path.exists(left):
    print(f"line {line:09d}", flush=True)
    line += 1
    time.sleep(0.001)
"""


def test_a_log_is_short_again_while_its_process_goes_on(
    start: Callable[..., Started], tmp_path: Path
) -> None:
    one = start(service("writer", sys.executable, "-c", WRITER, str(tmp_path / "end")))
    pid = one.pid("writer")
    log, older = tmp_path / "writer.log", tmp_path / "writer.log.1"

    def first(path: Path) -> int:
        text = path.read_text() if path.exists() else ""
        return int(text.split()[1]) if text.count("\n") > 2 else -1

    wait_for(lambda: first(older) > 0)

    assert one.pid("writer") == pid
    assert one.state("writer").restarts == 0
    # What is in the log now goes on where the older one ends, but for a line in between.
    wait_for(lambda: first(log) > 0)
    assert older.stat().st_mode & 0o777 == 0o600
    assert one.stop() == 0


def test_what_a_long_log_held_replaces_the_one_before(tmp_path: Path) -> None:
    log, older = tmp_path / "a.log", tmp_path / "a.log.1"
    log.write_text("x" * 11)
    older.write_text("older")

    assert logs.rotate(log, 10)
    assert not logs.rotate(log, 10)
    assert not logs.rotate(tmp_path / "absent.log", 10)

    assert (log.read_text(), older.read_text()) == ("", "x" * 11)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.log", "a.log.1"]


def test_a_log_becomes_short_also_when_it_cannot_be_kept(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("x" * 11)
    (tmp_path / ".a.log.part").mkdir()
    (tmp_path / "b.log").mkdir()

    logs.rotate_all(tmp_path, 10)

    assert log.read_text() == ""


def test_a_chore_is_run_again_and_again(start: Callable[..., Started], tmp_path: Path) -> None:
    again = plan.Chore(
        name="again",
        argv=("/bin/sh", "-c", f"echo ran >> {tmp_path}/runs; exit 1"),
        every_seconds=0.05,
    )
    hangs = plan.Chore(
        name="hangs",
        argv=("/bin/sh", "-c", f"echo $$ >> {tmp_path}/hung; while :; do sleep 0.02; done"),
        every_seconds=0.05,
        longest_seconds=0.1,
    )
    absent = plan.Chore(name="absent", argv=("/nonexistent/chore",), every_seconds=0.05)
    one = start(service("worker"), chores=[again, hangs, absent])

    def lines(name: str) -> list[str]:
        path = tmp_path / name
        return path.read_text().split() if path.exists() else []

    wait_for(lambda: len(lines("runs")) > 2 and len(lines("hung")) > 2)

    assert one.stop() == 0
    assert [start_of(int(pid)) for pid in lines("hung")] == [None] * len(lines("hung"))
    assert one.state("worker").restarts == 0


def test_a_service_waits_for_what_no_service_answers(
    start: Callable[..., Started], tmp_path: Path
) -> None:
    path = tmp_path / "gate"
    one = start(
        service("gated", starts_when={"kind": "unix", "target": str(path)}), service("worker")
    )
    one.pid("worker")
    assert one.state("gated").pid is None

    with socket.socket(socket.AF_UNIX) as gate:
        gate.bind(str(path))
        gate.listen(128)
        assert one.pid("gated")
    assert one.stop() == 0


def test_a_process_that_was_never_written_down_is_found_by_its_mark(
    start: Callable[..., Started], tmp_path: Path
) -> None:
    one = start(service("worker"))
    left = one.pid("worker")
    one.child.kill()
    one.child.wait()
    one.work.state.unlink()
    stranger = subprocess.Popen(SLEEP, cwd=tmp_path)
    try:
        found = remains.leftovers(one.work)
        assert left in found
        assert stranger.pid not in found

        assert remains.end_leftovers(one.work) > 0

        assert start_of(left) is None
        assert start_of(stranger.pid) is not None
    finally:
        stranger.kill()
        stranger.wait()


def test_processes_without_their_supervisor_are_told_apart(
    start: Callable[..., Started], tmp_path: Path
) -> None:
    files = layout.Layout(tmp_path)
    one = start(service("works"))
    files.record.write_text(record.Record(kubernetes="1.36.3", created_at=0.0).model_dump_json())
    one.pid("works")
    one.child.kill()
    one.child.wait()

    found = report.cluster_report(files)

    assert (found.state, found.is_healthy, found.supervisor) == ("unsupervised", False, None)
    text = report.as_text(found, files)
    assert "the supervisor is gone — `jr2 cluster start` makes a new one" in text


def test_a_report_tells_what_works_from_what_only_runs(
    start: Callable[..., Started], tmp_path: Path
) -> None:
    files = layout.Layout(tmp_path)
    assert report.cluster_report(files).state == "absent"
    assert report.as_text(report.cluster_report(files), files) == "no local cluster"

    nobody = {"kind": "unix", "target": str(tmp_path / "nobody")}
    one = start(
        service("works", version="1.2"),
        service("ill", probe=nobody),
        service("down", "/bin/false"),
    )
    files.record.write_text(record.Record(kubernetes="1.36.3", created_at=0.0).model_dump_json())
    pid = one.pid("works")
    one.pid("ill")
    wait_for(lambda: one.state("down").last_exit is not None)

    found = report.cluster_report(files)
    assert found.state == "running"
    assert found.supervisor is not None
    assert found.supervisor.pid == one.child.pid
    assert not found.is_healthy
    health = {entry.name: entry.healthy for entry in found.processes}
    assert (health["works"], health["ill"]) == (True, False)
    lines = report.as_text(found, files).splitlines()
    assert lines[0].startswith("running: context jr2-local · https://10.245.255.1:6443")
    assert lines[1].startswith(f"  {'works':10}  {'1.2':10}  ok    {pid} · ")
    assert lines[2].startswith(f"  {'ill':10}  {'?':10}  ill ")
    assert lines[4].startswith(f"  supervisor  1.0.0.dev0  ok    {one.child.pid} · ")
    shown = report.as_json(found, files)
    assert (shown["running"], shown["healthy"]) == (True, False)
    assert shown["processes"][0]["memoryBytes"] > 0
    assert shown["processes"][0]["version"] == "1.2"
    assert shown["supervisor"]["version"] == "1.0.0.dev0"
    assert shown["supervisor"]["memoryBytes"] > 0

    assert one.stop() == 0
    after = report.cluster_report(files)
    assert after.state == "stopped"
    assert not after.is_healthy
    assert [entry.pid for entry in after.processes] == [None, None, None]
