"""What `jr2 up` says of a cluster before it applies anything, against a real API server.

Each test types the command in an Instance folder. The Kit is that of the checkout, so a converge
that has no more to refuse ends where a Kit image has no way to the nodes.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from jr2 import names
from jr2_infra.api import Api, ApiError
from jr2_infra.facts.cluster import keeps_pod_resources
from tests.apiserver.conftest import BIN, Instance, NewInstance
from tests.apiserver.server import ApiServer
from tests.apiserver.version_proxy import VersionProxy
from tests.waiting import wait_for

WORKSPACE = '''\
"""A Machine that works in a Sandbox."""

from jr2 import (
    AgentEvent,
    AgentFault,
    Machine,
    Size,
    Turn,
    WorkspaceSpec,
    context,
    workspace,
)
from pydantic import BaseModel


class Door(BaseModel):
    branch: str = "b"


class Submit(AgentEvent):
    """The work is done."""


m = Machine("ticket")
coder = m.agent("coder", model="a/b", instructions="Fix it.", workspace="write")
coding, done = m.state("coding", initial=True), m.final("done")
coding.turn(coder, lambda c: Turn(prompt="x")).on(Submit, to=done).on(AgentFault, to=done)

machine = workspace(
    m.build(),
    door=Door,
    repos={"app": "https://github.com/acme/app.git"},
    spec=lambda door: WorkspaceSpec(branch=door.branch),
    PARTS
)
'''
NO_REGISTRY = (
    "error: context tests is not a kind cluster and no `registry` is configured — set `registry` "
    "in jr2_config.py (from env) so the image can be pushed (ADR-0019)"
)
TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


@pytest.fixture(scope="module")
def instance(new_instance: NewInstance) -> Instance:
    """An Instance as `jr2 init` makes it."""
    return new_instance("checks")


@pytest.fixture(scope="module")
def works(new_instance: NewInstance) -> Instance:
    """An Instance whose Machine makes a Sandbox, from an image of a registry."""
    made = new_instance("works")
    made.write("workflows/ticket.py", WORKSPACE.replace("PARTS", 'image="r.example/i:1",'))
    return made


@pytest.fixture
def server(api_server: ApiServer) -> Iterator[ApiServer]:
    """A cluster without a node; those that a test adds are gone after it."""
    yield api_server
    api_server.run_kubectl("delete", "nodes", "--all")


def config(instance: Instance, text: str) -> None:
    instance.write("jr2_config.py", f"from jr2 import *\n\nconfig = Config({text})\n")


def left_in(server: ApiServer, namespace: str) -> set[str]:
    """Return kind and name of what is in a namespace, but for its own account."""
    kinds = (
        "configmaps,secrets,services,deployments.apps,pods,persistentvolumeclaims,"
        "roles,rolebindings,networkpolicies,leases,serviceaccounts"
    )
    items = json.loads(server.run_kubectl("-n", namespace, "get", kinds, "-o", "json"))["items"]
    found = {f"{item['kind']} {item['metadata']['name']}" for item in items}
    return found - {"ServiceAccount default"}


class TestVersion:
    def test_a_cluster_before_1_35_is_refused_and_nothing_is_written(
        self, api_server: ApiServer, instance: Instance
    ) -> None:
        with VersionProxy(api_server, "v1.34.6-eks-a737599") as proxy:
            said = instance.up(api_server, "-n", "too-old", kubeconfig=proxy.kubeconfig)
        assert said.splitlines()[-1] == (
            "refusing: tests runs Kubernetes 1.34.6-eks-a737599; jr2 needs Kubernetes 1.35 or "
            "newer (every Sandbox mounts jr2's runtime as an image volume, ADR-0037). Nothing was "
            "applied."
        )
        assert proxy.requests
        assert {request.partition(" ")[0] for request in proxy.requests} == {"GET"}
        assert api_server.get("/api/v1/namespaces/too-old") is None

    def test_1_35_and_what_is_newer_is_taken(self, server: ApiServer, instance: Instance) -> None:
        server.add_node("n1")
        with VersionProxy(server, "v1.35.0") as proxy:
            said = instance.up(server, kubeconfig=proxy.kubeconfig)
        assert said.splitlines()[-1] == NO_REGISTRY

    def test_an_unknown_version_is_refused(self, api_server: ApiServer, instance: Instance) -> None:
        with VersionProxy(api_server, "main.unknown") as proxy:
            said = instance.up(api_server, kubeconfig=proxy.kubeconfig)
        assert said.splitlines()[-1].startswith("refusing: tests runs Kubernetes main.unknown; ")


class TestReach:
    def test_a_context_that_is_not_there(self, api_server: ApiServer, instance: Instance) -> None:
        done = instance.jr2(
            "up", "--context", "nope", "--yes", code=1, kubeconfig=api_server.kubeconfig
        )
        assert done.stderr.splitlines()[-1] == (
            'refusing: cannot reach the API server of nope (error: context "nope" does not '
            "exist). Nothing was applied."
        )

    def test_a_server_that_does_not_answer(self, api_server: ApiServer, instance: Instance) -> None:
        with socket.socket() as nobody:
            # The port is taken, and nothing listens on it.
            nobody.bind(("127.0.0.1", 0))
            gone = api_server.user_kubeconfig(
                "late", server=f"https://127.0.0.1:{nobody.getsockname()[1]}"
            )
            last = instance.up(api_server, kubeconfig=gone).splitlines()[-1]
        assert last.startswith("refusing: cannot reach the API server of tests (")
        assert last.endswith("). Nothing was applied.")

    def test_a_user_who_may_not_read(self, api_server: ApiServer, instance: Instance) -> None:
        said = instance.up(api_server, kubeconfig=api_server.user_kubeconfig("nobody"))
        assert said.splitlines()[-1].startswith("refusing: cannot reach the API server of tests (")
        assert 'User "nobody" cannot get resource' in said


class TestNamespace:
    def test_that_of_another_instance_is_refused(
        self, api_server: ApiServer, instance: Instance
    ) -> None:
        api_server.add_namespace("taken", {names.LABEL_INSTANCE: "other"})
        before = api_server.get("/api/v1/namespaces/taken")
        said = instance.up(api_server, "-n", "taken")
        assert said.splitlines()[-2:] == [
            'refusing: namespace "taken" on tests belongs to another instance ("other")',
            "  pick a different namespace (-n) or context (--context)",
        ]
        assert api_server.get("/api/v1/namespaces/taken") == before

    @pytest.mark.parametrize("there", [False, True])
    def test_first_contact_asks_and_without_a_terminal_nothing_changes(
        self, api_server: ApiServer, instance: Instance, there: bool
    ) -> None:
        name = f"first-{there}".lower()
        if there:
            api_server.add_namespace(name)
        before = api_server.get(f"/api/v1/namespaces/{name}")
        done = instance.jr2(
            "up", "--context", "tests", "-n", name, code=1, kubeconfig=api_server.kubeconfig
        )
        action = "adopt existing" if there else "create"
        assert done.stderr.splitlines()[-2:] == [
            f'first contact: deploy instance "checks" to context tests ({action} namespace '
            f'"{name}")? — not a tty; pass --yes to proceed non-interactively',
            "aborted — nothing was changed",
        ]
        assert api_server.get(f"/api/v1/namespaces/{name}") == before


class TestPodResources:
    def test_a_cluster_that_drops_them_is_refused_after_the_namespace(
        self, api_server_without_pod_resources: ApiServer, instance: Instance
    ) -> None:
        server = api_server_without_pod_resources
        version = server.get("/version")["gitVersion"].removeprefix("v")
        said = instance.up(server)
        assert said.splitlines()[-1] == (
            f"refusing: tests (Kubernetes {version}) drops pod-level resources — the "
            "PodLevelResources feature gate is off, and a Workspace's Size cannot hold "
            "(ADR-0060). Enable the gate on the API server and kubelets. The namespace was "
            "created; nothing else was applied."
        )
        labels = server.get("/api/v1/namespaces/checks")["metadata"]["labels"]
        assert labels[names.LABEL_INSTANCE] == "checks"
        assert left_in(server, "checks") == set()
        assert server.get("/api/v1/namespaces/jr2-system") is None

    def test_what_cannot_be_confirmed_is_a_warning(
        self, server: ApiServer, instance: Instance
    ) -> None:
        server.add_node("n1")
        server.add_namespace("watched")
        with no_bare_pods(server):
            said = instance.up(server).splitlines()
        assert said[-1] == NO_REGISTRY
        (warning,) = [line for line in said if line.startswith("warning: ")]
        assert warning.startswith(
            "warning: could not confirm pod-level resources on tests: pods "
            '"jr2-pod-resources-probe" is forbidden: '
        )
        assert warning.endswith("denied request: pods come from controllers here")


class TestPlatforms:
    def test_nodes_without_an_image_of_the_kit(self, server: ApiServer, instance: Instance) -> None:
        server.add_node("z1", architecture="s390x")
        server.add_node("n1", unschedulable=True)
        assert instance.up(server).splitlines()[-1] == (
            "error: this cluster's schedulable nodes report linux/s390x — the kit releases images "
            "for linux/amd64, linux/arm64 and nothing else, so an image built for anything else "
            "could not be joined by a Kit image in the same pod. Set `platforms` in jr2_config.py "
            '(docker platform strings, e.g. "linux/arm64") to name the set to build for.'
        )

    def test_what_the_nodes_are_is_said(self, server: ApiServer, instance: Instance) -> None:
        server.add_node("a", architecture="amd64")
        server.add_node("b", architecture="amd64", taints=[{**TAINT, "effect": "PreferNoSchedule"}])
        server.add_node("c", architecture="ppc64le")
        said = instance.up(server).splitlines()
        assert "platforms: linux/amd64 (from 2 schedulable node(s))" in said
        skipped = "platforms: skipped linux/ppc64le (1 node(s)) — the kit releases no image for it"
        assert skipped in said
        # No Machine of this Instance makes a Sandbox.
        assert not [line for line in said if "sandbox node" in line.lower()]

    def test_the_platforms_of_the_config_are_absolute(
        self, server: ApiServer, works: Instance
    ) -> None:
        # The nodes are not read, so nothing is said of them either.
        config(works, 'platforms=["linux/arm64"]')
        said = works.up(server).splitlines()
        assert "platforms: linux/arm64 (from `platforms` in jr2_config.py)" in said
        assert not [line for line in said if "sandbox node" in line.lower()]
        assert said[-1] == NO_REGISTRY


class TestSandboxNodes:
    def test_none_says_of_each_node_why_and_goes_on(
        self, server: ApiServer, works: Instance
    ) -> None:
        config(works, 'sandbox=Sandbox(node_selector={"pool": "sandbox"})')
        server.add_node("a")
        server.add_node("b", taints=[TAINT], labels={"pool": "other"})
        said = works.up(server)
        assert (
            "warning: no Sandbox node right now — a Sandbox stays Pending until one appears:\n"
            "  a: it has no label pool=sandbox\n"
            "  b: its label pool is other, not sandbox; its taint gpu=yes:NoSchedule is not "
            "tolerated\n"
            "  to admit a node with a taint or a label, set `sandbox` in jr2_config.py "
            "(node_selector, tolerations)\n"
        ) in said
        assert said.splitlines()[-1] == NO_REGISTRY

    def test_what_the_config_admits_is_a_sandbox_node(
        self, server: ApiServer, works: Instance
    ) -> None:
        config(
            works,
            'sandbox=Sandbox(node_selector={"pool": "sandbox"}, '
            'tolerations=[Toleration(key="gpu", operator="Exists")])',
        )
        server.add_node("a", architecture="amd64")
        server.add_node("b", taints=[TAINT], labels={"pool": "sandbox"})
        said = works.up(server).splitlines()
        assert "sandbox nodes: b" in said
        assert "platforms: linux/amd64 (from 2 schedulable node(s))" in said

    def test_a_size_without_room_is_a_warning(self, server: ApiServer, works: Instance) -> None:
        config(works, 'sandbox=Sandbox(resources=Size(memory="16Gi", cpu="3"))')
        server.add_node("a", memory="15Gi", cpu="4")
        server.add_node("b", memory="64Gi", cpu="2")
        said = works.up(server).splitlines()
        assert "sandbox nodes: a, b" in said
        warning = (
            "warning: no Sandbox node right now has the allocatable for a Size of 16Gi/3 "
            '(workflow "ticket") — its Sandbox stays Pending until one does'
        )
        assert warning in said
        assert said[-1] == NO_REGISTRY

        server.add_node("c", memory="16Gi", cpu="3")
        assert warning not in works.up(server).splitlines()


class TestBuilds:
    @pytest.fixture
    def builds(self, works: Instance) -> Iterator[Instance]:
        """The same Instance with a folder to build in place of the image of a registry."""
        before = (works.folder / "workflows" / "ticket.py").read_text()
        works.write("workflows/ticket.py", WORKSPACE.replace("PARTS", ""))
        config(works, "")
        yield works
        works.write("workflows/ticket.py", before)

    def test_two_platforms_need_a_registry(self, server: ApiServer, builds: Instance) -> None:
        server.add_node("a", architecture="amd64")
        server.add_node("b", architecture="arm64")
        assert builds.up(server).splitlines()[-1] == (
            "error: this cluster needs a linux/amd64, linux/arm64 build, which docker buildx "
            "delivers by PUSHING a manifest list (kind load cannot carry one) — set `registry` in "
            "jr2_config.py, or name a single platform with `platforms`"
        )

    @pytest.mark.parametrize("targets", ["linux/amd64*, linux/386", "linux/amd64, linux/arm64"])
    def test_a_foreign_platform_needs_an_emulator(
        self, server: ApiServer, builds: Instance, tmp_path: Path, targets: str
    ) -> None:
        server.add_node("a", architecture="arm64")
        said = builds.up(
            server,
            context="kind-tests",
            kubeconfig=server.context_kubeconfig("kind-tests"),
            environment={"PATH": stand_ins(tmp_path, targets)},
        )
        refused = (
            "error: this host cannot build for linux/arm64: a foreign architecture's RUN steps "
            "need qemu binfmt emulation, and none is registered (this builder targets "
            "linux/amd64, linux/386). Install it, then re-run:\n"
            "  docker run --privileged --rm tonistiigi/binfmt --install arm64\n"
        )
        assert (refused in said) is ("arm64" not in targets), said


def stand_ins(folder: Path, targets: str) -> str:
    """Return a PATH with a `docker` that lists platforms, and a `kind` without nodes."""
    docker = f'[ "$*" = "buildx inspect" ] && {{ echo "Platforms: {targets}"; exit 0; }}; exit 9'
    for name, script in (("docker", docker), ("kind", "exit 9")):
        file = folder / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
    return f"{folder}:{BIN}:{os.environ['PATH']}"


@contextlib.contextmanager
def no_bare_pods(server: ApiServer) -> Iterator[None]:
    """Refuse every pod that a person makes, from when the API server does so to the end."""
    api = "admissionregistration.k8s.io"
    policies = f"/apis/{api}/v1/validatingadmissionpolicies"
    bindings = f"/apis/{api}/v1/validatingadmissionpolicybindings"
    server.post(
        policies,
        {
            "apiVersion": f"{api}/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "no-bare-pods"},
            "spec": {
                "matchConstraints": {
                    "resourceRules": [
                        {
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "operations": ["CREATE"],
                            "resources": ["pods"],
                        }
                    ]
                },
                "validations": [
                    {"expression": "false", "message": "pods come from controllers here"}
                ],
            },
        },
    )
    server.post(
        bindings,
        {
            "apiVersion": f"{api}/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "no-bare-pods"},
            "spec": {"policyName": "no-bare-pods", "validationActions": ["Deny"]},
        },
    )
    try:
        wait_for("the policy holds", lambda: not takes_pods(server))
        yield
    finally:
        server.remove(f"{bindings}/no-bare-pods")
        server.remove(f"{policies}/no-bare-pods")
        wait_for("the policy is gone", lambda: takes_pods(server))


def takes_pods(server: ApiServer) -> bool:
    with server.kube_context().http() as http:
        try:
            keeps_pod_resources(Api(http), "watched")
        except ApiError:
            return False
    return True
