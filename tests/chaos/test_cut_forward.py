"""A command whose way to the Orchestrator is cut at any byte: nothing is lost, doubled or stuck."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jr2 import names
from jr2_cli import follow, once
from jr2_cli.output import Output
from jr2_cli.target import Link
from tests.chaos.wire import proxied
from tests.waiting import LIMIT, wait_for

if TYPE_CHECKING:
    from jr2_cli.client import Orchestrator

LEDGER = Path(__file__).parent / "workflows" / "ledger.py"
EVERY = 89
"""Between two cuts, in bytes; a prime, so that the next write is cut elsewhere."""


@pytest.fixture(scope="module")
def ledger(served_pod: Any) -> Any:
    source = {"ledger": LEDGER.read_text()}
    assert served_pod.publish(served_pod.assembly(source)).status_code == 201
    return served_pod


def started_answered_and_followed(pod: Any, cut: str, at: int) -> bool:
    """Do what `jr2 run` and `jr2 send` do through a way that is cut once; return whether it was."""
    said = io.StringIO()
    out = Output(stdout=io.StringIO(), stderr=said)
    with proxied(pod.port) as proxy:
        setattr(proxy, cut, at)
        link = Link(url=proxy.url, token=pod.instance_token)

        def write(act: Any) -> Any:
            return once.send(link, out, act, sleep=lambda _: None)

        try:
            run = write(lambda client, key: client.start_run("ledger", {}, key)).run_id
            for number in range(2):

                def note(client: Orchestrator, key: str, number: int = number) -> None:
                    event = {"type": "note", "number": number}
                    client.answer_gate(run, "writing", event, key)

                write(note)
            over = threading.Event()

            def end() -> None:
                # Not before it is followed: a feed that tells of its end alone has few bytes to cut.
                wait_for("its feed", lambda: "→ active" in said.getvalue() or over.is_set())
                pod.client.post(f"/runs/{run}/events", json={"type": "CANCEL"})

            ended = threading.Thread(target=end)
            ended.start()
            try:
                status = follow.until_settled(link, run, out, sleep=lambda _: None)
            finally:
                over.set()
                ended.join()
        finally:
            link.drop()
        was_cut = getattr(proxy, cut) is None
    assert status["status"] == "cancelled"
    assert status["context"]["numbers"] == [0, 1]
    shown = [line for line in said.getvalue().splitlines() if line.startswith("  →")]
    assert len(shown) == len(set(shown)), said.getvalue()
    return was_cut


@pytest.mark.parametrize("cut", ["cut_requests_at", "cut_answers_at"])
def test_writes_and_a_feed_that_are_cut_at_any_byte(ledger: Any, cut: str) -> None:
    before = len(ledger.stored_runs())
    at = made = 0
    while started_answered_and_followed(ledger, cut, at):
        at, made = at + EVERY, made + 1
    assert made > 12
    assert len(ledger.stored_runs()) == before + made + 1


@pytest.mark.parametrize("at", [0, 200])
@pytest.mark.parametrize("cut", ["cut_requests_at", "cut_answers_at"])
def test_a_command_that_is_cut_ends_with_its_result(ledger: Any, cut: str, at: int) -> None:
    run = ledger.start_run("ledger")
    for arguments in (
        ["run", "ledger", "--detach"],
        ["status", run],
        ["status", run[:8]],
        ["status", "--json"],
        ["logs", run],
        ["runs"],
    ):
        before = len(ledger.stored_runs())
        with proxied(ledger.port) as proxy:
            setattr(proxy, cut, at)
            done = jr2(proxy.url, ledger.instance_token, *arguments)
        assert "Traceback" not in done.stderr
        assert ledger.instance_token not in done.stdout + done.stderr
        assert getattr(proxy, cut) is None, "nothing was cut"
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("the answer was lost — asking again") == 1
        json.loads(done.stdout)
        assert len(ledger.stored_runs()) == before + (arguments[0] == "run")


def jr2(url: str, token: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "jr2_cli", *arguments],
        env={**os.environ, names.ENV_URL: url, names.ENV_TOKEN: token},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
