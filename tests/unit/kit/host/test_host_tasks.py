"""The tasks of an Assembly process, and how the process ends."""

from __future__ import annotations

import os
import select
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from jr2 import names
from jr2.tasks import LONGEST_REASON
from tests.unit.kit.host.conftest import DEADLINE, TASKS, Assembly, wait_for


def test_tasks_run_beside_each_other_and_answer_when_they_end(
    assembly: Assembly, start: Any, tmp_path: Path
) -> None:
    assembly.workflow("tasks", TASKS)
    process = start()
    process.load()
    slow = process.task("sleep", str(tmp_path / "up"), key="slow")
    wait_for(tmp_path / "up")

    failed = process.task("fail", key="fail")
    assert process.read()[0] == {
        "kind": "task_failed",
        "id": failed,
        "key": "fail",
        "reason": "ValueError: no luck",
    }
    left = process.task("leave", key="leave")
    assert process.read()[0]["reason"] == "SystemExit: 3"
    assert left == failed + 1
    # What is no `Exception` is a failure too: a task that never answers holds its run for ever.
    process.task("odd", key="odd")
    assert process.read()[0]["reason"] == "Own: no Exception"
    process.task("shout", key="shout")
    shouted = process.read()[0]["reason"]
    assert shouted.startswith("ValueError: xxx")
    assert shouted.endswith("x… (10000012 characters)")
    assert len(shouted) < LONGEST_REASON + 100
    process.task("give_up", key="give_up")
    assert process.read()[0]["reason"] == "CancelledError"
    process.task("big", names.MAX_EVENT, key="big")
    assert process.read()[0]["reason"] == (
        f"ValueError: its output has {names.MAX_EVENT + 2} bytes, over the limit {names.MAX_EVENT}"
    )
    process.task("big", "x", key="bad")
    assert process.read()[0]["reason"].startswith("ValidationError: int: Input should be a valid")

    # The step is made while the first task still waits.
    stepped, _ = process.ask(op="start", workflow="tasks", run_id="r")
    assert stepped["kind"] == "stepped"
    twice = process.task("sleep", str(tmp_path / "up"), key="slow")
    assert process.read()[0] == {
        "kind": "task_failed",
        "id": twice,
        "key": "slow",
        "reason": "the task is running already",
    }
    process.send(op="stop_task", workflow="tasks", run_id="another", key="slow")
    process.send(op="stop_task", workflow="tasks", run_id="r", key="slow")
    assert process.read()[0] == {
        "kind": "task_failed",
        "id": slow,
        "key": "slow",
        "reason": "stopped",
    }


def test_a_task_that_is_stopped_at_once_is_answered(assembly: Assembly, start: Any) -> None:
    assembly.workflow("tasks", TASKS)
    process = start()
    process.load()
    for _ in range(20):
        number = process.task("sleep", "/dev/null")
        process.send(op="stop_task", run_id="r", key="a#1:task.x")

        reply, _ = process.read()

        assert (reply["id"], reply["reason"]) == (number, "stopped")


def test_a_task_may_clean_up_when_it_is_stopped(
    assembly: Assembly, start: Any, tmp_path: Path
) -> None:
    assembly.workflow("tasks", TASKS)
    process = start()
    process.load()
    process.task("stubborn", str(tmp_path / "up"))
    wait_for(tmp_path / "up")

    process.send(op="stop_task", run_id="r", key="a#1:task.x")

    assert process.read()[0]["output"] == "anyway"


def test_a_ping_is_answered_while_a_task_waits(
    assembly: Assembly, start: Any, tmp_path: Path
) -> None:
    assembly.workflow("tasks", TASKS)
    process = start()
    process.load()
    assert process.ask(op="ping")[0] == {"kind": "pong", "id": 2}
    process.task("sleep", str(tmp_path / "up"))
    wait_for(tmp_path / "up")

    assert process.ask(op="ping")[0]["kind"] == "pong"


def test_a_ping_is_not_answered_while_a_task_blocks(
    assembly: Assembly, start: Any, tmp_path: Path
) -> None:
    assembly.workflow("tasks", TASKS)
    process = start()
    process.load()
    task = process.task("block", str(tmp_path / "up"))
    wait_for(tmp_path / "up")

    ping = process.send(op="ping")

    # The main thread answers what comes after it, so the ping was passed on and nobody took it.
    assert process.ask(op="start", workflow="tasks", run_id="r")[0]["kind"] == "stepped"
    (tmp_path / "up.go").touch()
    answers = {reply["id"]: reply["kind"] for reply, _ in (process.read(), process.read())}
    assert answers == {task: "task_done", ping: "pong"}


def test_a_process_whose_loop_is_blocked_ends_with_its_connection(
    assembly: Assembly, start: Any, tmp_path: Path
) -> None:
    assembly.workflow("tasks", TASKS)
    process = start()
    process.load()
    process.task("block", str(tmp_path / "up"))
    wait_for(tmp_path / "up")

    process.close()

    assert process.wait() == 0


@pytest.mark.parametrize("where", ["idle", "task", "step"])
def test_the_process_ends_with_its_connection(
    assembly: Assembly, start: Any, tmp_path: Path, where: str
) -> None:
    assembly.workflow("tasks", TASKS)
    process = start()
    process.load()
    if where == "task":
        process.task("sleep", str(tmp_path / "up"))
        assert int(wait_for(tmp_path / "up")) == process.process.pid
    if where == "step":
        _, snapshot = process.ask(op="start", workflow="tasks", run_id="r")
        event = {"kind": "gate", "gate": "a", "name": "go", "payload": {"size": -1}}
        process.send(op="step", workflow="tasks", event=event, body=snapshot)
        end = time.monotonic() + DEADLINE
        while not (tmp_path / "spinning").exists():
            assert time.monotonic() < end
            select.select([], [], [], 0.01)

    process.close()

    assert process.wait() == 0


def test_a_broken_frame_ends_the_process(start: Any) -> None:
    process = start()
    process.load()

    process.socket.sendall(b"\xff" * 8)

    assert process.wait() == 1
    assert "is over the limit" in process.errors.read_text()


def test_a_killed_process_closes_the_connection(start: Any) -> None:
    process = start()
    process.load()

    os.kill(process.process.pid, signal.SIGKILL)

    assert process.socket.recv(1) == b""
