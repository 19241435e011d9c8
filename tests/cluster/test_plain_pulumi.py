"""Plain `pulumi preview`, `up` and `destroy` in the checkout, against the real cluster.

What the stack is of, and what a person has, is told in `plain_stack`.
"""

from __future__ import annotations

import base64
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from jr2 import names
from jr2_cli import tools
from tests.waiting import LIMIT, wait_for

from .conftest import CONTEXT, HeldPublish, Instance
from .kind_stand_in import KIND_CONTEXT, Kind
from .plain_stack import Stack

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

NAME = "plain"


@pytest.fixture(scope="module")
def instance(new_instance: Callable[[str], Instance]) -> Iterator[Instance]:
    made = new_instance(NAME)
    yield made
    # The last test destroys it; what a failed one left goes here.
    made.start("down", "--context", CONTEXT, "--yes").communicate(timeout=LIMIT)


@pytest.fixture(scope="module")
def make_stack(
    instance: Instance, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Stack]]:
    made: list[Stack] = []

    def make(name: str) -> Stack:
        stack = Stack(f"test-{name}-{os.getpid()}", tmp_path_factory.mktemp(name))
        made.append(stack)
        stack.set(instance=str(instance.folder), context=CONTEXT)
        return stack

    yield make
    for stack in made:
        stack.remove()
        assert not stack.settings.exists()


@pytest.fixture(scope="module")
def stack(make_stack: Callable[[str], Stack]) -> Stack:
    return make_stack("team")


def namespaces(instance: Instance) -> set[str]:
    listed = json.loads(instance.kubectl("get", "namespaces", "-o", "json"))["items"]
    return {
        item["metadata"]["name"] for item in listed if "deletionTimestamp" not in item["metadata"]
    }


def operations(said: str) -> dict[str, int]:
    """Return the counts below `Resources:`."""
    counts: dict[str, int] = {}
    for line in said.partition("Resources:")[2].splitlines():
        words = line.replace("+", " ").replace("~", " ").replace("-", " ").split()
        if len(words) >= 2 and words[0].isdigit():
            counts[" ".join(words[1:])] = int(words[0])
    return counts


def lease(instance: Instance, namespace: str) -> Any:
    found = instance.kubectl("-n", namespace, "get", "lease", names.CONVERGE_LEASE, "-o", "json")
    return json.loads(found)


# The tests of this file build on one another, in their order.


def test_a_preview_changes_nothing(instance: Instance, stack: Stack) -> None:
    before = namespaces(instance)
    agents = (instance.folder / "AGENTS.md").read_text()

    said = stack.preview()

    assert f'first contact: deploy instance "{NAME}" to context {CONTEXT}' in said
    assert operations(said)["to create"] > 25
    assert namespaces(instance) == before
    assert (instance.folder / "AGENTS.md").read_text() == agents
    assert "Traceback" not in said


def test_up_converges_and_gives_the_lease_back(instance: Instance, stack: Stack) -> None:
    said = stack.up()

    assert "orchestrator: verified — 1 pod(s) running" in said
    assert "is current — workflows: ping" in said
    assert "Traceback" not in said
    for namespace in (NAME, names.SYSTEM_NAMESPACE):
        assert "holderIdentity" not in lease(instance, namespace)["spec"]
    done = instance.jr2("run", "ping", "--context", CONTEXT, "--input", '{"message":"hi"}')
    assert "pong: hi" in done.stdout


def test_a_second_up_changes_nothing(instance: Instance, stack: Stack) -> None:
    before = instance.pod_identity()

    for said in (stack.preview(), stack.up()):
        assert set(operations(said)) == {"unchanged"}
    assert instance.pod_identity() == before


def test_jr2_up_finds_nothing_to_do(
    instance: Instance, pulumi_must_not_run: dict[str, str]
) -> None:
    before = instance.pod_identity()

    said = instance.up(environment=pulumi_must_not_run)

    assert said.splitlines()[-1].startswith("converged")
    assert "drift:" not in said
    assert instance.pod_identity() == before


def test_no_secret_stands_in_the_state(instance: Instance, stack: Stack) -> None:
    held = [
        value
        for name in (names.INSTANCE_SECRET, names.ORCHESTRATOR)
        for value in instance.get("secret", name)["data"].values()
    ]
    assert len(held) >= 4
    config: dict[str, Any] = yaml.safe_load(Path(stack.kubeconfig).read_text())
    keys = [user["user"]["client-key-data"] for user in config["users"]]
    canaries = [*held, *(base64.b64decode(value).decode() for value in held), *keys]
    exported = stack.export()
    texts = [path.read_text(errors="replace") for path in stack.state.rglob("*") if path.is_file()]

    assert '"ciphertext"' in exported
    assert len(texts) >= 2
    for canary in canaries:
        assert canary not in exported
        assert not any(canary in text for text in texts)


def test_what_was_changed_by_hand_is_named_and_healed(instance: Instance, stack: Stack) -> None:
    rules = instance.get("role", names.ORCHESTRATOR)["rules"]
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    instance.kubectl(
        "-n", NAME, "patch", "role", names.ORCHESTRATOR, "--type=json", "-p",
        json.dumps([{"op": "add", "path": "/rules/-", "value": everything}]),
    )  # fmt: skip
    instance.kubectl("-n", NAME, "delete", "configmap", names.HARNESS_MAP)

    said = stack.up()

    assert f"drift: Role {names.ORCHESTRATOR} in {NAME}: rules was changed by kubectl" in said
    assert f"drift: ConfigMap {names.HARNESS_MAP} in {NAME} is gone — made again" in said
    assert instance.get("role", names.ORCHESTRATOR)["rules"] == rules
    assert instance.get("configmap", names.HARNESS_MAP)["data"]
    # The state forgets the two steps, which does nothing.
    said = stack.up()
    assert set(operations(said)) == {"deleted", "unchanged"}
    assert "drift:" not in said


def test_an_edit_is_published_and_no_pod_restarts(instance: Instance, stack: Stack) -> None:
    before = instance.pod_identity()
    workflow = instance.folder / "workflows" / "ping.py"
    workflow.write_text(workflow.read_text().replace("pong: ", "pong again: "))

    said = stack.up()

    assert "assembly: publishing" in said
    assert operations(said)["updated"] == 1
    assert instance.pod_identity() == before


def test_a_stack_of_somebody_else_adopts_what_jr2_up_made(
    instance: Instance, make_stack: Callable[[str], Stack], pulumi_must_not_run: dict[str, str]
) -> None:
    instance.up()
    before = instance.pod_identity()
    other = make_stack("adopts")

    said = other.up()

    assert operations(said)["created"] > 25
    assert instance.pod_identity() == before
    assert set(operations(other.up())) == {"unchanged"}
    instance.up(environment=pulumi_must_not_run)


def test_another_name_of_the_context_replaces_nothing(
    instance: Instance, stack: Stack, tmp_path: Path
) -> None:
    kind = Kind(tmp_path, instance)
    path = f"{kind.folder}:{stack.environment()['PATH']}"
    stack.set(context=KIND_CONTEXT)
    try:
        said = stack("preview", "--stack", stack.name, KUBECONFIG=str(kind.kubeconfig), PATH=path)
    finally:
        stack.set(context=CONTEXT)

    # The plugin's own resource changes, and nothing of the cluster does.
    assert operations(said)["to update"] == 1
    assert set(operations(said)) == {"to update", "unchanged"}


REFUSED = 'has no attribute "mesage"'


@pytest.mark.parametrize("verb", ["preview", "up"])
def test_a_refusal_is_the_seeds_line_and_no_traceback(
    instance: Instance, stack: Stack, verb: str
) -> None:
    workflow = instance.folder / "workflows" / "ping.py"
    right = workflow.read_text()
    workflow.write_text(right.replace("i.door.message", "i.door.mesage"))
    try:
        said = stack.preview(code=1) if verb == "preview" else stack.up(code=1)
    finally:
        workflow.write_text(right)

    assert (
        "error: refusing: this instance does not typecheck — nothing was built and nothing was "
        "applied" in said
    )
    assert REFUSED in said
    assert "Traceback" not in said
    assert "unhandled error" not in said


@pytest.mark.parametrize("verb", ["preview", "up"])
def test_a_missing_ssh_key_is_refused_since_there_is_no_menu(
    instance: Instance, stack: Stack, verb: str
) -> None:
    workflow = instance.folder / "workflows" / "pusher.py"
    workflow.write_text((Path(__file__).parent / "workflows" / "pusher.py").read_text())
    (instance.folder / ".env").write_text("JR2_GIT_TOKEN=CANARY\n")
    try:
        said = stack.preview(code=1) if verb == "preview" else stack.up(code=1)
    finally:
        workflow.unlink()
        (instance.folder / ".env").unlink()

    assert (
        "error: git@git.example:you/docs.git, ssh://git.example/tools/all bind over ssh and need "
        'the "jr2-git-ssh" Secret — re-run and pick a key source, create the Secret yourself '
        f"(kubectl -n {NAME} create secret generic jr2-git-ssh --from-file=identity=<path>), or "
        "bind the urls over https (+ a token in git.credentials)" in said
    )
    assert "Traceback" not in said
    assert "CANARY" not in said


def test_the_namespace_of_another_instance_is_refused(instance: Instance, stack: Stack) -> None:
    stack.set(namespace="kube-system")
    instance.kubectl("label", "namespace", "kube-system", f"{names.LABEL_INSTANCE}=stranger")
    try:
        said = stack.up(code=1)
    finally:
        instance.kubectl("label", "namespace", "kube-system", f"{names.LABEL_INSTANCE}-")
        stack("config", "rm", "namespace", "--stack", stack.name)

    assert (
        f'refusing: namespace "kube-system" on {CONTEXT} belongs to another instance ("stranger")'
        in said
    )
    assert "Traceback" not in said


def test_a_refusal_of_a_step_is_its_text_alone(
    instance: Instance, stack: Stack, tmp_path: Path
) -> None:
    """A publish whose forward fails: the error comes from the plugin of the steps."""
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(
        '#!/bin/sh\ncase "$*" in *port-forward*) echo "no way there" >&2; exit 1;; esac\n'
        f'exec {tools.require("kubectl")} "$@"\n'
    )
    kubectl.chmod(0o755)
    workflow = instance.folder / "workflows" / "ping.py"
    right = workflow.read_text()
    workflow.write_text(right + "# another\n")
    try:
        said = stack.up(code=1, PATH=f"{tmp_path}:{stack.environment()['PATH']}")
    finally:
        workflow.write_text(right)

    assert "no way there" in said
    assert "Traceback" not in said
    assert 'File "' not in said
    # Another step may still have been under way, so the Lease lapses and is taken over.
    assert "holderIdentity" in lease(instance, NAME)["spec"]
    assert "lease: taken over from" in stack.up()


def test_one_converges_at_a_time(
    instance: Instance, stack: Stack, held_publish: HeldPublish
) -> None:
    workflow = instance.folder / "workflows" / "ping.py"
    workflow.write_text(workflow.read_text() + "# edited\n")
    path = held_publish.environment["PATH"].split(":")[0]
    first = stack.start(
        "up", "--yes", "--skip-preview", "--stack", stack.name,
        PATH=f"{path}:{stack.environment()['PATH']}",
    )  # fmt: skip
    try:
        wait_for(
            "the plain run to hold the Lease",
            lambda: "holderIdentity" in lease(instance, NAME)["spec"],
        )
        second = instance.jr2("up", "--context", CONTEXT, "--yes", code=1)
    finally:
        held_publish.let_go()
        said, _ = first.communicate(timeout=LIMIT)

    assert first.returncode == 0, said
    assert f'another `jr2 up` converges namespace "{NAME}"' in second.stderr
    assert "holderIdentity" not in lease(instance, NAME)["spec"]


def test_an_interrupt_ends_quietly_and_the_next_run_takes_over(
    instance: Instance, stack: Stack, held_publish: HeldPublish
) -> None:
    before = instance.pod_identity()
    workflow = instance.folder / "workflows" / "ping.py"
    workflow.write_text(workflow.read_text() + "# edited again\n")
    path = held_publish.environment["PATH"].split(":")[0]
    child = stack.start(
        "up", "--yes", "--skip-preview", "--stack", stack.name,
        PATH=f"{path}:{stack.environment()['PATH']}",
    )  # fmt: skip
    wait_for(
        "the plain run to hold the Lease",
        lambda: "holderIdentity" in lease(instance, NAME)["spec"],
    )
    child.send_signal(signal.SIGINT)
    # The step that is under way ends as it would have; Pulumi waits for it.
    held_publish.let_go()
    said, _ = child.communicate(timeout=LIMIT)

    assert child.returncode != 0
    assert "Traceback" not in said
    assert "KeyboardInterrupt" not in said
    stack.up()
    assert instance.pod_identity() == before


def test_destroy_leaves_what_the_instances_share(instance: Instance, stack: Stack) -> None:
    shared = "customresourcedefinitions,clusterroles,clusterrolebindings,priorityclasses"
    before = instance.kubectl("get", shared, "-o", "name")

    stack("destroy", "--yes", "--skip-preview", "--stack", stack.name)

    wait_for("the namespace to go", lambda: NAME not in namespaces(instance))
    assert names.SYSTEM_NAMESPACE in namespaces(instance)
    assert instance.kubectl("get", shared, "-o", "name") == before
    instance.kubectl(
        "-n", names.SYSTEM_NAMESPACE, "rollout", "status", f"deployment/{names.OPERATOR}",
        "--timeout=200s",
    )  # fmt: skip
    kinds = {resource["type"] for resource in stack.resources()}
    assert kinds <= {"pulumi:pulumi:Stack"}
