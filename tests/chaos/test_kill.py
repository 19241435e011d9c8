"""Kill the Orchestrator or its worker at any moment: nothing acknowledged is lost or done twice."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.chaos.load import children, kill_container
from tests.waiting import LIMIT, wait_for

WORKFLOWS = Path(__file__).parent / "workflows"


def sources(*names: str) -> dict[str, str]:
    return {name: (WORKFLOWS / f"{name}.py").read_text() for name in names}


def gate(pod: Any, run: str, name: str, event: dict[str, Any], **headers: str) -> httpx2.Response:
    answer = pod.client.post(f"/runs/{run}/gates/{name}/events", json=event, headers=headers)
    assert isinstance(answer, httpx2.Response)
    return answer


def accepted(answer: httpx2.Response) -> None:
    assert answer.status_code == 200, answer.text


def test_100_parked_runs_and_10_tasks_survive_kill_9_of_the_orchestrator(pod: Any) -> None:
    pod.start_worker()
    main = pod.start_orchestrator()
    assert pod.publish(pod.assembly(sources("review", "slow"))).status_code == 201
    marks = pod.folder / "marks"
    marks.mkdir()
    parked = [pod.start_run("review", {"ticket": number}) for number in range(100)]
    working = [
        pod.start_run("slow", {"folder": str(marks), "number": number}) for number in range(10)
    ]
    wait_for("ten tasks run", lambda: len(list(marks.glob("started-*"))) == 10)

    pod.kill(main)
    pod.start_orchestrator()

    live = {run["runId"] for run in pod.client.get("/runs").json()}
    assert live == {*parked, *working}
    assert pod.assemblies()["stuck"] == []
    for number, run in enumerate(parked):
        accepted(gate(pod, run, "review", {"type": "go", "word": f"w{number}"}))
    (marks / "go").touch()
    for number, run in enumerate(parked):
        ended = pod.settled(run)
        assert ended["status"] == "done"
        assert ended["output"] == {"ticket": number, "word": f"w{number}", "version": 1}
    for number, run in enumerate(working):
        ended = pod.settled(run)
        assert (ended["status"], ended["output"]) == ("done", {"results": [number]})
        assert pod.applied(run) == 3  # its start, the result, the timer


@pytest.mark.parametrize("seed", range(3))
def test_each_acknowledged_event_is_taken_once_whenever_the_orchestrator_dies(
    pod: Any, seed: int
) -> None:
    """Post numbers without a pause, kill -9 in the middle, and read what was written down."""
    pod.start_worker()
    main = pod.start_orchestrator()
    assert pod.publish(pod.assembly(sources("ledger"))).status_code == 201
    runs = [pod.start_run("ledger") for _ in range(4)]
    acknowledged: dict[str, list[int]] = {run: [] for run in runs}
    sent: dict[str, int] = dict.fromkeys(runs, 0)

    def post(run: str) -> None:
        with (
            httpx2.Client(
                base_url=pod.client.base_url,
                headers=pod.client.headers,
                timeout=LIMIT,
                trust_env=False,
            ) as client,
            contextlib.suppress(httpx2.TransportError),
        ):
            while True:
                sent[run] += 1
                answer = client.post(
                    f"/runs/{run}/gates/writing/events",
                    json={"type": "note", "number": sent[run]},
                )
                assert answer.status_code == 200, answer.text
                acknowledged[run].append(sent[run])

    started: list[str] = []

    def start() -> None:
        with (
            httpx2.Client(
                base_url=pod.client.base_url,
                headers=pod.client.headers,
                timeout=LIMIT,
                trust_env=False,
            ) as client,
            contextlib.suppress(httpx2.TransportError),
        ):
            while True:
                answer = client.post("/workflows/ledger/runs", json={})
                assert answer.status_code == 201, answer.text
                started.append(answer.json()["runId"])

    posters = [threading.Thread(target=post, args=(run,)) for run in runs]
    posters.append(threading.Thread(target=start))
    for poster in posters:
        poster.start()
    enough = 40 + 17 * seed
    wait_for("events are taken", lambda: sum(map(len, acknowledged.values())) >= enough)
    pod.kill(main)
    for poster in posters:
        poster.join()
    pod.start_orchestrator()

    live = {run["runId"] for run in pod.client.get("/runs").json()}
    assert live >= {*runs, *started}
    assert len(live) <= len(runs) + len(started) + 1
    for run in runs:
        numbers = pod.status(run)["context"]["numbers"]
        # The last one may have been committed without an answer; nothing else may differ.
        assert numbers in (acknowledged[run], [*acknowledged[run], sent[run]])
        accepted(gate(pod, run, "writing", {"type": "note", "number": -1}))
        assert pod.status(run)["context"]["numbers"] == [*numbers, -1]


def test_a_worker_that_is_killed_comes_back_and_its_tasks_are_asked_again(pod: Any) -> None:
    worker = pod.start_worker()
    pod.start_orchestrator()
    assert pod.publish(pod.assembly(sources("review", "slow"))).status_code == 201
    marks = pod.folder / "marks"
    marks.mkdir()
    parked = pod.start_run("review", {"ticket": 1})
    working = pod.start_run("slow", {"folder": str(marks), "number": 1})
    started = marks / "started-1"
    wait_for("the task runs", started.exists)

    kill_container(worker)
    pod.start_worker()

    wait_for("the task runs again", lambda: started.read_text() == "xx")
    (marks / "go").touch()
    assert pod.settled(working)["output"] == {"results": [1]}
    accepted(gate(pod, parked, "review", {"type": "go"}))
    assert pod.settled(parked)["status"] == "done"


def test_an_assembly_process_that_is_stopped_is_replaced(pod: Any) -> None:
    """SIGSTOP: it does not answer, so it is ended, and the step is made in a new one."""
    worker = pod.start_worker()
    pod.start_orchestrator()
    assert pod.publish(pod.assembly(sources("review"))).status_code == 201
    run = pod.start_run("review", {"ticket": 1})
    (stopped,) = children(worker.pid)
    os.kill(stopped, signal.SIGSTOP)

    accepted(gate(pod, run, "review", {"type": "go"}))
    assert pod.status(run)["status"] == "done"
    wait_for("the end of the stopped one", lambda: stopped not in children(worker.pid))


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ("hang", "it did not answer within 2 s"),
        ("die", "the Assembly process ended"),
        ("grow", "over the limit"),
    ],
)
def test_user_code_that_goes_wrong_faults_its_own_run_only(
    pod: Any, event: str, reason: str
) -> None:
    pod.start_worker()
    pod.start_orchestrator()
    assert pod.publish(pod.assembly(sources("evil", "slow"))).status_code == 201
    marks = pod.folder / "marks"
    marks.mkdir()
    bad, good = pod.start_run("evil"), pod.start_run("evil")
    working = pod.start_run("slow", {"folder": str(marks), "number": 5})

    accepted(gate(pod, bad, "waiting", {"type": event}))
    faulted = pod.status(bad)
    assert faulted["status"] == "error"
    assert reason in faulted["fault"]
    accepted(gate(pod, good, "waiting", {"type": "leave"}))
    assert pod.status(good)["status"] == "done"
    (marks / "go").touch()
    assert pod.settled(working)["output"] == {"results": [5]}


@pytest.mark.parametrize("event", ["hang", "die"])
def test_steps_that_are_under_way_beside_one_that_goes_wrong_are_made(pod: Any, event: str) -> None:
    """The process ends with many steps on their way; each is made once, and one run faults."""
    pod.start_worker()
    pod.start_orchestrator()
    assert pod.publish(pod.assembly(sources("evil", "review"))).status_code == 201
    bad = pod.start_run("evil")
    good = [pod.start_run("review", {"ticket": number}) for number in range(24)]
    answers: list[int] = []

    def answer(run: str, name: str, what: dict[str, Any]) -> None:
        answers.append(gate(pod, run, name, what).status_code)

    threads = [
        threading.Thread(target=answer, args=(run, "review", {"type": "go", "word": "w"}))
        for run in good
    ]
    threads.insert(12, threading.Thread(target=answer, args=(bad, "waiting", {"type": event})))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == [200] * 25
    assert pod.status(bad)["status"] == "error"
    assert {pod.status(run)["status"] for run in good} == {"done"}
    assert {pod.applied(run) for run in good} == {2}


def test_a_task_that_ends_its_process_fails_and_those_beside_it_do_not(pod: Any) -> None:
    pod.start_worker()
    pod.start_orchestrator()
    assert pod.publish(pod.assembly(sources("killer", "review", "slow"))).status_code == 201
    marks = pod.folder / "marks"
    marks.mkdir()
    other = pod.start_run("review", {"ticket": 3})
    working = [
        pod.start_run("slow", {"folder": str(marks), "number": number}) for number in range(6)
    ]
    ended = pod.settled(pod.start_run("killer"))
    assert ended["status"] == "done"
    assert "the task was ended again and again" in ended["output"]["reason"]
    accepted(gate(pod, other, "review", {"type": "go"}))
    (marks / "go").touch()
    for number, run in enumerate(working):
        assert pod.settled(run)["output"] == {"results": [number]}
    # Steps have a process of their own: none was made twice for it.
    assert "a step was lost" not in pod.log("orchestrator")


def test_a_task_that_blocks_its_process_fails_and_those_beside_it_do_not(pod: Any) -> None:
    pod.start_worker()
    pod.start_orchestrator()
    assert pod.publish(pod.assembly(sources("blocker", "ping"))).status_code == 201
    marker = pod.folder / "blocks"
    blocker = pod.start_run("blocker", {"marker": str(marker)})
    wait_for("the task blocks", marker.exists)
    pings = [pod.start_run("ping") for _ in range(3)]
    for run in pings:
        ended = pod.settled(run)
        assert (ended["status"], ended["output"]) == ("done", {"reply": "pong"})
    faulted = pod.settled(blocker)
    assert faulted["status"] == "error"
    assert (
        'the task "block" blocked its process for 5 s — a task must not block; '
        "use asyncio.to_thread"
    ) in faulted["fault"]
    assert "a task blocked its process for 5 s" in pod.log("orchestrator")
    assert "a step was lost" not in pod.log("orchestrator")


def test_the_cancel_of_a_run_whose_task_blocks_frees_the_others(pod: Any) -> None:
    worker = pod.start_worker()
    pod.start_orchestrator()
    assert pod.publish(pod.assembly(sources("blocker", "ping"))).status_code == 201
    marker = pod.folder / "blocks"
    blocker = pod.start_run("blocker", {"marker": str(marker)})
    wait_for("the task blocks", marker.exists)
    before = set(children(worker.pid))
    # All at once: the stop is to come before the block is noticed without one, on a slow disk too.
    with concurrent.futures.ThreadPoolExecutor(3) as people:
        pings = list(people.map(pod.start_run, ["ping"] * 3))

    answer = pod.client.post(f"/runs/{blocker}/events", json={"type": "CANCEL"})

    assert answer.status_code == 200, answer.text
    for run in pings:
        assert pod.settled(run)["output"] == {"reply": "pong"}
    assert pod.status(blocker)["status"] == "cancelled"
    assert marker.read_text() == "x"
    # The process of the steps is there still, the blocked one is not.
    wait_for("the end of the blocked one", lambda: len({*children(worker.pid)} & before) == 1)
    log = pod.log("orchestrator")
    assert "the stop of a task was not acknowledged within 2 s" in log
    assert "blocked its process" not in log


def test_a_timer_that_came_due_while_nothing_ran_fires_at_the_start(pod: Any) -> None:
    pod.start_worker()
    main = pod.start_orchestrator()
    assert pod.publish(pod.assembly(sources("slow"))).status_code == 201
    marks = pod.folder / "marks"
    marks.mkdir()
    (marks / "go").touch()
    run = pod.start_run("slow", {"folder": str(marks), "number": 1})
    wait_for("the task is done", lambda: pod.status(run)["value"] != {"counting": "working"})
    pod.kill(main)
    time.sleep(0.4)  # the timer's own time passes
    pod.start_orchestrator()
    assert pod.settled(run)["output"] == {"results": [1]}


def test_sigterm_ends_the_feeds_and_the_program_in_time(pod: Any) -> None:
    pod.start_worker()
    main = pod.start_orchestrator()
    assert pod.publish(pod.assembly(sources("review"))).status_code == 201
    run = pod.start_run("review")
    with pod.client.stream("GET", f"/runs/{run}/events") as feed:
        lines = feed.iter_lines()
        assert next(lines) == "event: status"
        main.terminate()
        assert "event: closed" in list(lines)
    assert main.wait(timeout=LIMIT) == 0
