"""Who reaches the Orchestrator of a real cluster, and the way back to a backup of it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from jr2 import names
from tests.waiting import wait_for

from ..conftest import CONTEXT, Instance
from .conftest import ALLOWED, NAME

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

CALLER = """
import http.client, sys, time
host, seconds = sys.argv[1], float(sys.argv[2])
end = time.monotonic() + seconds
while True:
    try:
        connection = http.client.HTTPConnection(host, 4000, timeout=3)
        connection.request("GET", "/healthz")
        print(connection.getresponse().status, flush=True)
        break
    except OSError as refused:
        if time.monotonic() > end:
            print("no way:", type(refused).__name__, flush=True)
            break
        time.sleep(0.5)
"""


def call_from(instance: Instance, namespace: str, labels: dict[str, str], seconds: float) -> str:
    """Return what a pod with these labels gets from `/healthz`, trying for some seconds."""
    [container, _] = instance.pod()["spec"]["containers"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "caller-", "namespace": namespace, "labels": labels},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "caller",
                    "image": container["image"],
                    "imagePullPolicy": "IfNotPresent",
                    "command": [
                        "/usr/bin/python3", "-I", "-c", CALLER,
                        f"{names.ORCHESTRATOR}.{NAME}.svc.cluster.local", str(seconds),
                    ],
                    "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
                }
            ],
        },
    }  # fmt: skip
    made = json.loads(instance.kubectl("create", "-o", "json", "-f", "-", stdin=json.dumps(pod)))
    name = made["metadata"]["name"]

    def ended() -> bool:
        found = json.loads(instance.kubectl("-n", namespace, "get", "pod", name, "-o", "json"))
        return found["status"]["phase"] in ("Succeeded", "Failed")

    wait_for("the end of the caller", ended)
    said = instance.kubectl("-n", namespace, "logs", name)
    instance.kubectl("-n", namespace, "delete", "pod", name, "--wait=false")
    return said.strip()


ADMITTED: list[tuple[str, dict[str, str]]] = [
    (ALLOWED, {"app": "translator"}),
    (NAME, {names.LABEL_SANDBOX_NAME: "s"}),
    (NAME, {"app": names.INSTANCE_HARNESS}),
]
OTHERS: list[tuple[str, dict[str, str]]] = [
    (ALLOWED, {"app": "other"}),
    (NAME, {"app": "translator"}),
    ("default", {"app": "translator"}),
    ("default", {names.LABEL_SANDBOX_NAME: "s"}),
]


@pytest.fixture(scope="module")
def answers(instance: Instance) -> list[str]:
    """What each caller got, the admitted ones first; all of them call at the same time."""
    callers = [(*caller, 200) for caller in ADMITTED] + [(*caller, 8) for caller in OTHERS]
    with ThreadPoolExecutor(len(callers)) as pool:
        return list(pool.map(lambda caller: call_from(instance, *caller), callers))


@pytest.mark.parametrize("number", range(len(ADMITTED)))
def test_who_calls_the_orchestrator_reaches_it(answers: list[str], number: int) -> None:
    assert answers[number] == "200", ADMITTED[number]


@pytest.mark.parametrize("number", range(len(OTHERS)))
def test_nobody_else_reaches_it(answers: list[str], number: int) -> None:
    assert answers[len(ADMITTED) + number].startswith("no way"), OTHERS[number]


def test_the_probes_and_a_forward_reach_it_and_it_proves_itself(instance: Instance) -> None:
    conditions = {each["type"]: each["status"] for each in instance.pod()["status"]["conditions"]}
    assert conditions["Ready"] == "True"
    # `jr2` sends its token only after the proof.
    assert json.loads(instance.jr2("runs", "--context", CONTEXT).stdout) == []
    with instance.forward() as client:
        assert "proof" in client.get("/healthz", headers={names.HEADER_NONCE: "n" * 32}).json()
        for host, code in (("evil.example", 421), (f"{names.ORCHESTRATOR}.{NAME}.svc", 200)):
            assert client.get("/healthz", headers={"Host": host}).status_code == code
        assert client.get("/metrics").status_code == 200


def test_a_store_goes_back_to_a_backup_and_its_run_goes_on(instance: Instance) -> None:
    def in_pod(*arguments: str) -> str:
        return instance.kubectl(
            "-n", NAME, "exec", instance.pod()["metadata"]["name"], "-c", "orchestrator", "--",
            names.LAUNCHER_ORCHESTRATOR, "backup", *arguments,
        ).strip()  # fmt: skip

    def status(run: str) -> Any:
        with instance.forward() as client:
            return client.get(f"/runs/{run}").json()

    def answer(run: str) -> None:
        gate = status(run)["gates"][0]
        event = gate["accepts"][0]["name"]
        instance.jr2(
            "send", run, "--gate", gate["gate"], "--event", event, "--input", '{"word": "w"}',
            "--context", CONTEXT,
        )  # fmt: skip

    started = instance.jr2("run", "parked", "--detach", "--context", CONTEXT)
    run = json.loads(started.stdout)["runId"]
    backup = in_pod("now")
    assert backup in in_pod("list").splitlines()
    answer(run)
    wait_for("the end of the run", lambda: status(run)["status"] == "done")

    deployment = f"deployment/{names.ORCHESTRATOR}"
    instance.kubectl(
        "-n", NAME, "set", "env", deployment, "-c", "orchestrator",
        f"{names.ENV_RESTORE}={backup}",
    )  # fmt: skip
    instance.kubectl("-n", NAME, "rollout", "status", deployment, "--timeout=200s")
    assert status(run)["status"] == "active"

    instance.up()
    [container, _] = instance.pod()["spec"]["containers"]
    assert [each["name"] for each in container["env"]] == [names.ENV_NAMESPACE]
    assert status(run)["status"] == "active"
    answer(run)
    wait_for("the end of the run", lambda: status(run)["status"] == "done")
