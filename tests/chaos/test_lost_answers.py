"""A client that asks again for each answer that it lost: everything happens once, nothing twice.

The Orchestrator is killed at moments that nobody chose while clients start runs and write into
them, each request under its own `Idempotency-Key`. A client that gets no answer sends the same
request until it gets one.
"""

from __future__ import annotations

import concurrent.futures
import random
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import httpx2

from jr2 import names
from tests.waiting import LIMIT, wait_for

WORKFLOWS = Path(__file__).parent / "workflows"
KILLS = 6
"""How often the Orchestrator is killed."""


class Client:
    """Sends each request until it is answered, under one key."""

    def __init__(self, pod: Any) -> None:
        self._http = httpx2.Client(
            base_url=pod.client.base_url, headers=pod.client.headers, timeout=LIMIT, trust_env=False
        )
        self.lost = 0

    def send(self, path: str, body: dict[str, Any]) -> httpx2.Response:
        headers = {names.HEADER_IDEMPOTENCY_KEY: str(uuid.uuid4())}
        end = time.monotonic() + LIMIT
        while True:
            try:
                answer = self._http.post(path, json=body, headers=headers)
            except httpx2.ConnectError:
                assert time.monotonic() < end
                time.sleep(0.01)
            except httpx2.TransportError:
                self.lost += 1
            else:
                if answer.status_code != 503:  # the worker comes back by itself
                    return answer

    def close(self) -> None:
        self._http.close()


def test_nothing_happens_twice_when_each_lost_answer_is_asked_for_again(pod: Any) -> None:
    pod.start_worker()
    main = pod.start_orchestrator()
    source = {"ledger": (WORKFLOWS / "ledger.py").read_text()}
    assert pod.publish(pod.assembly(source)).status_code == 201
    stop = threading.Event()
    written: dict[str, list[int]] = {}
    failures: list[str] = []
    clients = [Client(pod) for _ in range(4)]

    def write(client: Client) -> None:
        while not stop.is_set():
            started = client.send("/workflows/ledger/runs", {})
            if started.status_code != 201:
                failures.append(f"a start: {started.status_code} {started.text}")
                return
            run = started.json()["runId"]
            numbers = written.setdefault(run, [])
            for number in range(20):
                path = f"/runs/{run}/gates/writing/events"
                answer = client.send(path, {"type": "note", "number": number})
                if answer.status_code != 200:
                    failures.append(f"{run} {number}: {answer.status_code} {answer.text}")
                    return
                numbers.append(number)

    writers = [threading.Thread(target=write, args=(client,)) for client in clients]
    for writer in writers:
        writer.start()
    chosen = random.Random(20261130)
    try:
        for _ in range(KILLS):
            aim = sum(map(len, written.values())) + 25
            wait_for(
                "some more events are answered",
                lambda: sum(map(len, written.values())) >= aim or failures,  # noqa: B023
            )
            time.sleep(chosen.random() * 0.2)
            pod.kill(main)
            main = pod.start_orchestrator()
    finally:
        stop.set()
        for writer in writers:
            writer.join()
        for client in clients:
            client.close()
    lost = sum(client.lost for client in clients)

    assert failures == []
    assert lost > 0, "no answer was lost, so nothing was tried"
    assert {run["runId"] for run in pod.client.get("/runs").json()} == set(written)
    assert pod.assemblies()["stuck"] == []
    for run, numbers in written.items():
        assert pod.status(run)["context"]["numbers"] == numbers == list(range(len(numbers)))


def test_of_many_answers_to_one_entry_of_a_gate_one_is_taken(pod: Any) -> None:
    pod.start_worker()
    main = pod.start_orchestrator()
    source = {"ledger": (WORKFLOWS / "ledger.py").read_text()}
    assert pod.publish(pod.assembly(source)).status_code == 201
    run = pod.start_run("ledger")
    path, taken = f"/runs/{run}/gates/writing/events", []
    with concurrent.futures.ThreadPoolExecutor(12) as people:
        for round_ in range(8):
            gate = pod.status(run)["gates"][0]["id"]
            given = range(12 * round_, 12 * round_ + 12)

            def answer(number: int, gate: str = gate) -> tuple[int, httpx2.Response]:
                key = f"click-{number}"
                headers = {names.HEADER_IDEMPOTENCY_KEY: key, names.HEADER_IF_GATE: gate}
                event = {"type": "note", "number": number}
                return number, pod.client.post(path, json=event, headers=headers)

            answers = list(people.map(answer, given))
            codes = sorted(one.status_code for _, one in answers)
            assert codes == [200] + [412] * 11
            taken += [number for number, one in answers if one.is_success]
            if round_ == 4:
                pod.kill(main)
                main = pod.start_orchestrator()
            # The one that was taken is answered so again, and the others are refused still.
            again = dict(people.map(answer, given))
            assert {number for number, one in again.items() if one.is_success} == {taken[-1]}
    assert pod.status(run)["context"]["numbers"] == taken
