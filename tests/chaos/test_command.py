"""The command `jr2` against the real Orchestrator and its worker, through a kill of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from jr2 import names
from tests.waiting import LIMIT

WORKFLOWS = Path(__file__).parent / "workflows"
PING = Path(__file__).parents[2] / "infra/src/jr2_infra/scaffold/templates/workflows/ping.py"


def environment(pod: Any) -> dict[str, str]:
    return {
        **os.environ,
        names.ENV_URL: f"http://127.0.0.1:{pod.port}",
        names.ENV_TOKEN: pod.instance_token,
    }


def start(pod: Any, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "jr2_cli", *arguments],
        env=environment(pod),
        cwd=pod.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def jr2(pod: Any, *arguments: str) -> tuple[int, str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-m", "jr2_cli", *arguments],
        env=environment(pod),
        cwd=pod.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert pod.instance_token not in done.stdout + done.stderr
    return done.returncode, done.stdout, done.stderr.splitlines()


def test_the_scaffolded_workflow_is_run_and_everything_about_it_is_shown(pod: Any) -> None:
    pod.start_worker()
    pod.start_orchestrator()
    assembly = pod.assembly({"ping": PING.read_text()})
    assert jr2(pod, "status")[1] == "no Assembly is published\n"
    assert pod.publish(assembly).status_code == 201

    code, stdout, stderr = jr2(pod, "run", "ping", "--input", '{"message":"hi"}')

    status = json.loads(stdout)
    run = status["runId"]
    assert (code, status["status"], status["output"]) == (0, "done", {"reply": "pong: hi"})
    assert stderr[0] == f"→ http://127.0.0.1:{pod.port}"
    assert stderr[1] == f"run {run} (ping) — attached"
    assert stderr[-1] == '  → done "done"'

    code, stdout, _ = jr2(pod, "status", run[:8])
    assert (code, json.loads(stdout)["output"]) == (0, {"reply": "pong: hi"})
    code, stdout, _ = jr2(pod, "logs", run)
    assert (code, json.loads(stdout)["status"]) == (0, "done")
    assert jr2(pod, "runs")[1] == "[]\n"
    assert jr2(pod, "status")[1].splitlines()[1].split() == [
        assembly.hash[:12],
        names.KIT_VERSION,
        "yes",
        "0",
    ]
    code, _, stderr = jr2(pod, "run", "ping", "--input", '{"message":1}')
    assert (code, "message" in stderr[1]) == (1, True)
    code, _, stderr = jr2(pod, "run", "pnig")
    assert (code, stderr[1].startswith('error: no workflow "pnig"')) == (1, True)
    assert stderr[2].startswith("  this instance runs jr2 ")
    code, _, stderr = jr2(pod, "status", "ffffffff")
    assert (code, stderr[1:]) == (1, ['error: no run "ffffffff"'])


def test_a_followed_run_ends_before_the_follower_through_a_kill_of_the_orchestrator(
    pod: Any,
) -> None:
    pod.start_worker()
    main = pod.start_orchestrator()
    source = (WORKFLOWS / "review.py").read_text()
    assert pod.publish(pod.assembly({"review": source})).status_code == 201
    with start(pod, "run", "review", "--input", '{"ticket": 7}') as follower:
        assert follower.stderr is not None
        lines = [follower.stderr.readline().rstrip() for _ in range(3)]
        run = lines[1].split()[1]
        assert lines[2].startswith("  → active ")

        pod.kill(main)
        assert follower.stderr.readline().rstrip() == (
            "  the connection to the Orchestrator broke — the run goes on, attaching again"
        )
        pod.start_orchestrator()
        (gate,) = json.loads(jr2(pod, "status", run)[1])["gates"]
        (accepted,) = gate["accepts"]
        answer = ("send", run[:6], "--gate", gate["gate"], "--event", accepted["name"])
        code, _, stderr = jr2(pod, *answer, "--input", '{"word":"ja"}')
        delivered = f'delivered {accepted["name"]} to gate "{gate["gate"]}" on {run}'
        assert (code, stderr[1:]) == (0, [delivered])
        stdout, rest = follower.communicate(timeout=LIMIT)

        assert follower.returncode == 0
        assert json.loads(stdout)["output"] == {"ticket": 7, "word": "ja", "version": 1}
        assert len(rest.splitlines()) == 1
        assert rest.startswith("  → done ")
    code, _, stderr = jr2(pod, *answer)
    assert code == 1
    assert stderr[1].startswith("error: ")


def test_a_run_is_cancelled(pod: Any) -> None:
    pod.start_worker()
    pod.start_orchestrator()
    source = (WORKFLOWS / "review.py").read_text()
    assert pod.publish(pod.assembly({"review": source})).status_code == 201
    code, stdout, _ = jr2(pod, "run", "review", "--input", '{"ticket": 1}', "--detach")
    run = json.loads(stdout)["runId"]

    assert code == 0
    assert jr2(pod, "send", run, "--event", "CANCEL")[2][1:] == [f"sent CANCEL to {run}"]
    code, stdout, _ = jr2(pod, "logs", run, "--follow")
    assert (code, json.loads(stdout)["status"]) == (0, "cancelled")
