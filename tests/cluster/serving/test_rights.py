"""What the pods may do: at the API exactly what they use, and the worker nothing at all."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jr2 import names
from jr2.rbac import OPERATOR_RULES, ORCHESTRATOR_RULES, Rule

from ..conftest import Instance
from .conftest import NAME

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

CALLERS = {(NAME, names.ORCHESTRATOR), (names.SYSTEM_NAMESPACE, names.OPERATOR)}
OF_THE_IMAGE = {"LANG", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}
Right = tuple[str, str, str, str | None]
"""Verb, API group, resource, and the one name it is for."""


def rights(instance: Instance, account: str, namespace: str) -> set[Right]:
    """Return what RBAC grants to a service account in a namespace, as `can-i --list` shows it."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    answer = instance.kubectl(
        "create", "--as", f"system:serviceaccount:{account}", "--validate=false", "-o", "json",
        "-f", "-",
        stdin=json.dumps(review),
    )  # fmt: skip
    status = json.loads(answer)["status"]
    assert not status["incomplete"]
    return {
        (verb, group, resource, name)
        for rule in status["resourceRules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames") or (None,)
    }


def stated(rules: Sequence[Rule]) -> set[Right]:
    return {
        (verb, group, resource, name)
        for rule in rules
        for verb in rule.verbs
        for group in rule.groups
        for resource in rule.resources
        for name in rule.resource_names or (None,)
    }


def everybody(instance: Instance, namespace: str) -> set[Right]:
    """Return what a service account may do that nobody ever granted anything."""
    found = rights(instance, f"{NAME}:nobody-made-it", namespace)
    assert found  # the review itself is among it
    return found


def test_the_orchestrator_may_do_what_its_rules_say_and_nothing_else(instance: Instance) -> None:
    account = f"{NAME}:{names.ORCHESTRATOR}"

    own = rights(instance, account, NAME) - everybody(instance, NAME)
    assert own == stated(ORCHESTRATOR_RULES)
    for namespace in ("default", "kube-system", names.SYSTEM_NAMESPACE):
        assert rights(instance, account, namespace) == everybody(instance, namespace)


def test_the_operator_may_do_what_its_rules_say_and_nothing_else(instance: Instance) -> None:
    account = f"{names.SYSTEM_NAMESPACE}:{names.OPERATOR}"

    for namespace in (NAME, "default", "kube-system", names.SYSTEM_NAMESPACE):
        own = rights(instance, account, namespace) - everybody(instance, namespace)
        assert own == stated(OPERATOR_RULES)


def with_token(pod: Any) -> set[str]:
    """Return the containers of a pod that mount a token of its service account."""
    tokens = {
        volume["name"]
        for volume in pod["spec"].get("volumes", [])
        for source in volume.get("projected", {}).get("sources", [])
        if "serviceAccountToken" in source
    }
    return {
        container["name"]
        for kind in ("initContainers", "containers", "ephemeralContainers")
        for container in pod["spec"].get(kind, [])
        if tokens & {mount["name"] for mount in container.get("volumeMounts", [])}
    }


def test_no_container_has_a_token_but_those_that_call_the_api(instance: Instance) -> None:
    pods = [
        pod
        for namespace in (NAME, names.SYSTEM_NAMESPACE)
        for pod in json.loads(instance.kubectl("-n", namespace, "get", "pods", "-o", "json"))[
            "items"
        ]
        if "deletionTimestamp" not in pod["metadata"]
    ]
    found = {
        (pod["metadata"]["namespace"], pod["spec"]["serviceAccountName"]): with_token(pod)
        for pod in pods
    }

    assert {where for where, containers in found.items() if containers} == CALLERS
    assert found[NAME, names.ORCHESTRATOR] == {"orchestrator"}


PROBE = """
import json, os
def write(place):
    try:
        open(place, "w").close()
    except OSError as refused:
        return refused.strerror
    os.unlink(place)
    return "written"
def read(place):
    try:
        return sorted(os.listdir(place))
    except OSError as refused:
        return refused.strerror
held = read(ASSEMBLIES)
print(json.dumps({
    "uid": os.getuid(),
    "programs": [
        open(f"/proc/{each}/cmdline").read().replace("\\0", " ")
        for each in os.listdir("/proc") if each.isdigit() and int(each) != os.getpid()
    ],
    "mounts": sorted({line.split()[4] for line in open("/proc/self/mountinfo")}),
    "held": held,
    "token": read(ACCOUNT),
    "values": read(VALUES),
    "state": read(STATE),
    "writes": {place: write(place) for place in
               (ASSEMBLIES + "/new", ASSEMBLIES + "/" + held[0] + "/assembly.json", "/new",
                "/opt/jr2/kit/new", "/tmp/new")},
}))
"""


@pytest.fixture(scope="module")
def worker(instance: Instance) -> Any:
    """What a process in the container `worker` finds."""
    head = (
        f"ASSEMBLIES, ACCOUNT, VALUES, STATE = {names.WORKER_ASSEMBLIES_PATH!r}, "
        f"{names.SERVICE_ACCOUNT_PATH!r}, {names.VALUES_PATH!r}, {names.STATE_PATH!r}"
    )
    said = instance.kubectl(
        "-n", NAME, "exec", instance.pod()["metadata"]["name"], "-c", "worker", "--",
        "/usr/bin/python3", "-I", "-c", head + PROBE,
    )  # fmt: skip
    return json.loads(said)


@pytest.fixture(scope="module")
def environments(instance: Instance, worker: Any) -> dict[str, list[str]]:
    """The variables of each program of the container, by its command.

    The programs hide them from each other, so the node's root reads them: the node is this machine.
    """
    uid = instance.pod()["metadata"]["uid"]
    found = {}
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            groups = (process / "cgroup").read_text().replace("_", "-")
            command = (process / "cmdline").read_text().replace("\0", " ")
            if uid in groups and command in worker["programs"]:
                pairs = (process / "environ").read_text().split("\0")
                found[command] = sorted(pair.partition("=")[0] for pair in pairs if pair)
    assert set(found) == set(worker["programs"])
    return found


def test_the_worker_has_no_environment_but_the_kubelets(
    instance: Instance, environments: dict[str, list[str]]
) -> None:
    [container] = [c for c in instance.pod()["spec"]["containers"] if c["name"] == "worker"]
    assert not container.get("env")
    assert not container.get("envFrom")
    [supervisor] = [found for line, found in environments.items() if "jr2-worker" in line]
    # The kubelet tells every container where the API server is, which alone opens nothing.
    others = {name for name in supervisor if not name.startswith("KUBERNETES_")}
    assert others == {"HOSTNAME", "PATH", "HOME", *OF_THE_IMAGE}


def test_an_assembly_process_has_five_variables(environments: dict[str, list[str]]) -> None:
    found = [found for line, found in environments.items() if "jr2.host" in line]
    assert found == [["HOME", "LANG", "PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONNOUSERSITE"]]


def test_the_worker_sees_no_token_no_secret_and_no_record(worker: Any) -> None:
    assert worker["uid"] == names.WORKER_UID
    for place in ("token", "values", "state"):
        assert worker[place] in ("No such file or directory", "Permission denied"), place
    secret = [place for place in worker["mounts"] if "secret" in place or "/etc/jr2" in place]
    assert secret == []
    programs = worker["programs"]
    assert len(programs) == 2
    assert not [line for line in programs if "jr2-orchestrator" in line]


def test_the_worker_cannot_write_an_assembly_or_its_image(worker: Any) -> None:
    assert len(worker["held"]) == 1
    *places, temporary = worker["writes"].items()
    assert {outcome for _, outcome in places} == {"Read-only file system"}
    assert temporary == ("/tmp/new", "written")  # so a write is tried at all
