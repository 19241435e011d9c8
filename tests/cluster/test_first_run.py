"""From a folder to a Workflow that ran in a real cluster, and what must not change on the way.

The tests stand in the order in which a person meets them, on one Instance; each leaves it
converged.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from jr2 import names
from tests.browser.driver import browser
from tests.ports import free_ports
from tests.waiting import LIMIT, wait_for

from .conftest import CONTEXT, HeldPublish, Instance
from .settled import written

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

HERE = Path(__file__).parent
NAME = "first-run"


@pytest.fixture(scope="module")
def instance(
    new_instance: Callable[[str], Instance], depart: Callable[[Instance], None]
) -> Iterator[Instance]:
    made = new_instance(NAME)
    for workflow in ("parked", "slow"):
        made.write(f"workflows/{workflow}.py", (HERE / "workflows" / f"{workflow}.py").read_text())
    made.up()
    yield made
    depart(made)


def state_of(instance: Instance) -> dict[str, str]:
    """Return what is written of everything of ours that a refusal must not touch."""
    found: dict[str, str] = {}
    for scope in (
        ["-n", instance.name], ["-n", names.SYSTEM_NAMESPACE],
    ):  # fmt: skip
        listed = json.loads(
            instance.kubectl(
                *scope, "get", "-o", "json", "--show-managed-fields",
                "deployments,services,configmaps,secrets,serviceaccounts,roles,rolebindings,"
                "networkpolicies,persistentvolumeclaims",
            )
        )  # fmt: skip
        for item in listed["items"]:
            meta = item["metadata"]
            found[f"{meta['namespace']}/{item['kind']}/{meta['name']}"] = written(item)
    listed = json.loads(
        instance.kubectl(
            "get", "-o", "json", "--show-managed-fields",
            "customresourcedefinitions,clusterroles,clusterrolebindings,priorityclasses,namespaces",
        )
    )  # fmt: skip
    for item in listed["items"]:
        meta = item["metadata"]
        if "jr2" in meta["name"] or meta["name"] == instance.name:
            found[f"{item['kind']}/{meta['name']}"] = written(item)
    return found


def parked_run(client: httpx2.Client) -> str:
    response = client.post("/workflows/parked/runs", json={})
    assert response.status_code == 201, response.text
    return str(response.json()["runId"])


def answer(client: httpx2.Client, run: str, gate: str = "waiting", **payload: Any) -> None:
    response = client.post(f"/runs/{run}/gates/{gate}/events", json=payload)
    assert response.status_code == 200, response.text


def settled(client: httpx2.Client, run: str) -> Any:
    def ended() -> Any:
        status = client.get(f"/runs/{run}").json()
        return status if status["status"] != "active" else None

    return wait_for(f"the end of run {run}", ended)


# --- a. converged, and a run --------------------------------------------------------------------
def test_a_run_prints_its_status(instance: Instance) -> None:
    done = instance.jr2("run", "ping", "--context", CONTEXT, "--input", '{"message":"hi"}')

    status = json.loads(done.stdout)
    assert status["status"] == "done"
    assert "pong: hi" in json.dumps(status)
    assert "attached" in done.stderr


def test_a_refused_input_names_workflow_and_field(instance: Instance) -> None:
    done = instance.jr2("run", "ping", "--context", CONTEXT, "--input", '{"message":[]}', code=1)

    assert done.stdout == ""
    assert "ping" in done.stderr
    assert "message" in done.stderr


# --- b. again, and edits by hand ----------------------------------------------------------------
def test_again_is_proved_without_the_engine(
    instance: Instance, pulumi_must_not_run: dict[str, str]
) -> None:
    before, state = instance.pod_identity(), state_of(instance)

    said = instance.up(environment=pulumi_must_not_run)

    assert said.rstrip().splitlines()[-1] == "converged — `jr2 run <workflow>` when ready"
    assert "publishing" not in said
    assert instance.pod_identity() == before
    assert state_of(instance) == state


def heal(instance: Instance, no_engine: dict[str, str], *named: str) -> None:
    """Converge after an edit by hand: it is named, healed, and gone at the next run."""
    said = instance.up()
    for text in named:
        assert text in said, said
    again = instance.up(environment=no_engine)
    for text in named:
        assert text not in again


def test_an_image_a_config_map_value_and_a_widened_role_by_hand_are_healed(
    instance: Instance, pulumi_must_not_run: dict[str, str]
) -> None:
    image = instance.pod()["spec"]["containers"][0]["image"]
    values = instance.get("configmap", names.IMAGES_MAP)["data"]
    rules = instance.get("role", names.ORCHESTRATOR)["rules"]
    more = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    instance.kubectl(
        "-n", NAME, "set", "image", f"deployment/{names.ORCHESTRATOR}", "orchestrator=nowhere:1"
    )
    instance.kubectl(
        "-n", NAME, "patch", "configmap", names.IMAGES_MAP, "--type=merge", "-p",
        json.dumps({"data": {names.IMAGES_KEY: "{}"}}),
    )  # fmt: skip
    instance.kubectl(
        "-n", NAME, "patch", "role", names.ORCHESTRATOR, "--type=json", "-p",
        json.dumps([{"op": "add", "path": "/rules/-", "value": more}]),
    )  # fmt: skip

    heal(
        instance,
        pulumi_must_not_run,
        f"drift: Deployment {names.ORCHESTRATOR} in {NAME}:"
        " spec.template.spec.containers[orchestrator].image was changed by kubectl-set — set back",
        f'drift: ConfigMap {names.IMAGES_MAP} in {NAME}: data["{names.IMAGES_KEY}"] was changed by'
        " kubectl-patch — set back",
        f"drift: Role {names.ORCHESTRATOR} in {NAME}: rules was changed by kubectl-patch — set back",
    )

    live = instance.get("deployment", names.ORCHESTRATOR)["spec"]["template"]["spec"]
    assert live["containers"][0]["image"] == image
    assert instance.get("configmap", names.IMAGES_MAP)["data"] == values
    assert instance.get("role", names.ORCHESTRATOR)["rules"] == rules


def test_a_deleted_secret_gets_new_values_and_one_restart(
    instance: Instance, pulumi_must_not_run: dict[str, str]
) -> None:
    token, pod = instance.secret(names.KEY_INSTANCE_TOKEN), instance.pod_identity()[0]
    instance.kubectl("-n", NAME, "delete", "secret", names.INSTANCE_SECRET)

    heal(
        instance,
        pulumi_must_not_run,
        f"drift: Secret {names.INSTANCE_SECRET} in {NAME} is gone — made again, with new values",
    )

    assert instance.secret(names.KEY_INSTANCE_TOKEN) != token
    uid, restarts = instance.pod_identity()
    assert uid != pod
    assert set(restarts) == {0}
    with instance.forward() as client:
        assert client.get("/runs").status_code == 200


def test_an_added_container_is_healed(
    instance: Instance, pulumi_must_not_run: dict[str, str]
) -> None:
    image = instance.pod()["spec"]["containers"][0]["image"]
    container = {"name": "evil", "image": image, "command": ["sleep", "infinity"]}
    instance.kubectl(
        "-n", NAME, "patch", "deployment", names.ORCHESTRATOR, "--type=json", "-p",
        json.dumps([{"op": "add", "path": "/spec/template/spec/containers/-", "value": container}]),
    )  # fmt: skip

    heal(instance, pulumi_must_not_run, 'container "evil"')

    spec = instance.pod()["spec"]
    assert [c["name"] for c in spec["containers"]] == ["orchestrator", "worker"]


# --- c. an edit of a Workflow -------------------------------------------------------------------
class Listener(threading.Thread):
    """An SSE client of one run that remembers what it got and whether it was cut."""

    def __init__(self, client: httpx2.Client, run: str) -> None:
        super().__init__(daemon=True)
        self.client, self.run_id = client, run
        self.frames: list[str] = []
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with self.client.stream(
                "GET", f"/runs/{self.run_id}/events", timeout=httpx2.Timeout(LIMIT)
            ) as response:
                for line in response.iter_lines():
                    if line.startswith("data:"):
                        self.frames.append(line)
        except httpx2.HTTPError as error:
            self.error = error


def test_an_edit_is_published_and_no_pod_restarts(instance: Instance) -> None:
    before = instance.pod_identity()
    with instance.forward() as client:
        old_hash = client.get("/assemblies").json()["current"]
        run = parked_run(client)
        listener = Listener(client, run)
        listener.start()
        wait_for("the first frame", lambda: listener.frames)

        workflow = instance.folder / "workflows" / "ping.py"
        workflow.write_text(workflow.read_text().replace("pong: ", "pong again: "))
        said = instance.up()

        assert f"assembly: publishing {client.get('/assemblies').json()['current'][:12]}" in said
        assert f"over {old_hash[:12]}" in said
        assert instance.pod_identity() == before
        held = {a["hash"]: a for a in client.get("/assemblies").json()["assemblies"]}
        assert held[old_hash]["runs"] == [run]
        assert old_hash[:12] in instance.jr2("status", "--context", CONTEXT).stdout

        new = client.post("/workflows/ping/runs", json={"message": "hi"}).json()["runId"]
        assert "pong again: hi" in json.dumps(settled(client, new))
        assert client.get(f"/runs/{new}").json()["assembly"] != old_hash

        answer(client, run, type="go", word="now")
        assert settled(client, run)["output"] == {"word": "now"}
        assert client.get(f"/runs/{run}").json()["assembly"] == old_hash
        listener.join(timeout=LIMIT)
        assert not listener.is_alive()
        assert listener.error is None
        assert '"done"' in listener.frames[-1]
        wait_for(
            "the old Assembly to go",
            lambda: (
                old_hash not in [a["hash"] for a in client.get("/assemblies").json()["assemblies"]]
            ),
        )


# --- d. kill -9 ---------------------------------------------------------------------------------
def main_process(instance: Instance) -> int:
    """Return the process id, as the node knows it, of the Orchestrator's main process."""
    pod = instance.pod()
    [status] = [s for s in pod["status"]["containerStatuses"] if s["name"] == "orchestrator"]
    container = status["containerID"].removeprefix("containerd://")
    for place in Path("/proc").glob("[0-9]*/cgroup"):
        try:
            if container in place.read_text():
                command = (place.parent / "cmdline").read_bytes()
                if b"python" in command:
                    return int(place.parent.name)
        except OSError:
            continue
    pytest.fail(f"no process of container {container}")


def test_kill_9_loses_nothing(instance: Instance) -> None:
    with instance.forward() as client:
        parked = [parked_run(client) for _ in range(100)]
        slow = [
            client.post("/workflows/slow/runs", json={"seconds": 3}).json()["runId"]
            for _ in range(10)
        ]
    restarts = sum(instance.pod_identity()[1])

    os.kill(main_process(instance), signal.SIGKILL)

    instance.wait_until_ready(restarts + 1)
    with instance.forward() as client:
        live = {run["runId"] for run in client.get("/runs").json()}
        assert set(parked) | set(slow) <= live
        for number, run in enumerate(parked):
            answer(client, run, type="go", word=str(number))
        for number, run in enumerate(parked):
            assert settled(client, run)["output"] == {"word": str(number)}
        for run in slow:
            wait_for(
                f"the task of {run}",
                lambda run=run: (  # type: ignore[misc]
                    client.get(f"/runs/{run}").json()["value"] == {"counting": "after"}
                ),
            )
            answer(client, run, "after", type="more")
            assert settled(client, run)["output"] == {"results": 1}


# --- e. a page and a command, while forward and pod are replaced --------------------------------
def test_the_console_and_a_command_go_on_through_another_forward_to_another_pod(
    instance: Instance, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    feed = "document.querySelector('.feed')?.textContent"
    before = instance.pod_identity()[0]
    with browser(tmp_path / "chromium") as chromium, contextlib.ExitStack() as forwards:
        forwards.enter_context(instance.forward(port))
        page = chromium.open(f"http://127.0.0.1:{port}/workflows/parked")
        page.wait(f"{feed} === 'live'")
        page.write("textbox", "Instance token", instance.secret(names.KEY_INSTANCE_TOKEN))
        page.enter()
        page.click("button", "Start a run of parked")
        page.click("button", "Start run")
        run = str(page.wait("new URLSearchParams(location.search).get('run')", "the run"))
        follower = instance.start("logs", run, "-f", "--context", CONTEXT)
        until_said(follower, '→ active "waiting"')

        forwards.close()
        page.wait(f"{feed} === 'reconnecting'")
        instance.kubectl(
            "-n", NAME, "delete", "pod", "-l", f"app={names.ORCHESTRATOR}", "--wait=true"
        )
        instance.wait_until_ready()
        with instance.forward(port):
            page.wait(f"{feed} === 'live'")
            page.click("button", "1 open Gate needs attention")
            page.wait("!!document.querySelector('details.answer > summary')", "the card")
            page.run("document.querySelector('details.answer > summary').click()")
            page.write("textbox", "Word", "again")
            page.click("button", "go")
            page.shows("No run waits for an answer.")
        out, said = follower.communicate(timeout=LIMIT)

    assert follower.returncode == 0, said
    assert json.loads(out)["output"] == {"word": "again"}
    assert instance.pod_identity()[0] != before
    assert page.said == []


# --- f. a type error ----------------------------------------------------------------------------
def test_a_type_error_changes_nothing(instance: Instance) -> None:
    workflow = instance.folder / "workflows" / "ping.py"
    right = workflow.read_text()
    assert "i.door.message" in right
    before = state_of(instance)
    workflow.write_text(right.replace("i.door.message", "i.door.mesage"))
    try:
        said = instance.up(code=1).splitlines()
    finally:
        workflow.write_text(right)

    at = said.index(
        "refusing: this instance does not typecheck — nothing was built and nothing was applied"
    )
    assert said[at - 1] == "typecheck: mypy (the instance's own checker)"
    assert said[at + 1].startswith("  workflows/ping.py:")
    assert 'has no attribute "mesage"' in said[at + 1]
    assert state_of(instance) == before


# --- g. texts -----------------------------------------------------------------------------------
def test_the_namespace_of_another_instance(instance: Instance) -> None:
    before = state_of(instance)
    config = instance.folder / "jr2_config.py"
    right = config.read_text()
    config.write_text(right.replace(f'name="{NAME}"', 'name="stranger"'))
    try:
        assert config.read_text() != right
        said = instance.up("-n", NAME, code=1)
    finally:
        config.write_text(right)

    assert (
        f'refusing: namespace "{NAME}" on {CONTEXT} belongs to another instance ("{NAME}")\n'
        "  pick a different namespace (-n) or context (--context)" in said
    )
    assert state_of(instance) == before


def test_first_contact_without_a_terminal(instance: Instance) -> None:
    done = instance.jr2("up", "--context", CONTEXT, "-n", "nobody-here", code=1)

    question = (
        f'first contact: deploy instance "{NAME}" to context {CONTEXT}'
        ' (create namespace "nobody-here")?'
    )
    assert done.stderr.rstrip().splitlines()[-2:] == [
        f"{question} — not a tty; pass --yes to proceed non-interactively",
        "aborted — nothing was changed",
    ]
    listed = json.loads(instance.kubectl("get", "namespaces", "-o", "json"))["items"]
    assert "nobody-here" not in [item["metadata"]["name"] for item in listed]


def test_a_context_that_does_not_exist(instance: Instance) -> None:
    said = instance.jr2("up", "--context", "nope", "--yes", code=1).stderr

    assert (
        'refusing: cannot reach the API server of nope (error: context "nope" does not exist).'
        " Nothing was applied." in said
    )


def test_an_unreachable_api_server(instance: Instance, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "gone", "cluster": {"server": "https://127.0.0.1:9"}}],
                "users": [{"name": "gone", "user": {"token": "t"}}],
                "contexts": [{"name": "gone", "context": {"cluster": "gone", "user": "gone"}}],
                "current-context": "gone",
            }
        )
    )

    said = instance.jr2("up", "--yes", code=1, environment={"KUBECONFIG": str(kubeconfig)}).stderr

    assert "refusing: cannot reach the API server of gone (" in said
    assert "). Nothing was applied." in said


def test_no_context(instance: Instance, tmp_path: Path) -> None:
    said = instance.jr2(
        "up", "--yes", code=1, environment={"KUBECONFIG": str(tmp_path / "none")}
    ).stderr

    assert (
        "error: no kube context — `jr2 cluster create` or `kind create cluster` (or point kubectl"
        " at one), then re-run `jr2 up`" in said
    )


# --- h. killed, and two at once -----------------------------------------------------------------
def until_said(child: subprocess.Popen[str], text: str) -> list[str]:
    """Read a child's stderr until it says the text."""
    assert child.stderr is not None
    lines: list[str] = []
    for line in child.stderr:
        lines.append(line)
        if text in line:
            return lines
    pytest.fail(f"{text!r} was never said:\n{''.join(lines)}")


def edit_ping(instance: Instance) -> None:
    """Give the next converge something to publish, and no pod to restart."""
    workflow = instance.folder / "workflows" / "ping.py"
    workflow.write_text(workflow.read_text() + "# edited\n")


def test_a_killed_converge_is_taken_over(
    instance: Instance, held_publish: HeldPublish, pulumi_must_not_run: dict[str, str]
) -> None:
    before = instance.pod_identity()
    edit_ping(instance)
    child = instance.start(
        "up", "--context", CONTEXT, "--yes", environment=held_publish.environment
    )
    until_said(child, "orchestrator: verified")
    child.kill()
    child.communicate()

    said = instance.up()

    assert said.rstrip().splitlines()[-1] == "converged — `jr2 run <workflow>` when ready"
    assert f"(pid {child.pid}" in said
    assert "assembly: publishing" in said
    assert instance.pod_identity() == before
    instance.up(environment=pulumi_must_not_run)


def test_two_at_once(instance: Instance, held_publish: HeldPublish) -> None:
    edit_ping(instance)
    first = instance.start(
        "up", "--context", CONTEXT, "--yes", environment=held_publish.environment
    )
    until_said(first, "orchestrator: verified")
    second = instance.jr2("up", "--context", CONTEXT, "--yes", code=1)
    held_publish.let_go()
    _, err = first.communicate(timeout=LIMIT)

    assert first.returncode == 0, err
    assert str(first.pid) in second.stderr
    assert os.uname().nodename in second.stderr


# --- i. locked dependencies ---------------------------------------------------------------------
def test_a_native_wheel_and_a_pure_one_are_imported(instance: Instance) -> None:
    project = instance.folder / "pyproject.toml"
    project.write_text(
        project.read_text().replace(
            "dependencies = [", 'dependencies = [\n    "orjson",\n    "idna",'
        )
    )
    ping = instance.folder / "workflows" / "ping.py"
    instance.write(
        "workflows/wheels.py",
        "import idna\nimport orjson\n"
        + ping.read_text()
        .replace('Machine(\n    "ping"', 'Machine(\n    "wheels"')
        .replace(
            'return f"', 'return orjson.dumps(idna.encode("bücher.example").decode()).decode() + f"'
        ),
    )
    instance.sync()

    instance.up()
    done = instance.jr2("run", "wheels", "--context", CONTEXT, "--input", '{"message":"hi"}')

    assert "xn--bcher-kva.example" in done.stdout


# --- down ---------------------------------------------------------------------------------------
def test_down_removes_the_namespace_and_nothing_else(
    new_instance: Callable[[str], Instance], instance: Instance
) -> None:
    other = new_instance("first-down")
    other.up()
    before = state_of(instance)

    other.jr2("down", "--context", CONTEXT, "--yes")

    listed = json.loads(other.kubectl("get", "namespaces", "-o", "json"))["items"]
    assert "first-down" not in [item["metadata"]["name"] for item in listed]
    assert state_of(instance) == before
    gone = other.jr2("down", "--context", CONTEXT, "--yes", code=1)
    assert "not deployed here" in gone.stderr
