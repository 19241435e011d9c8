"""A namespace of the real cluster, and the wait of the Converge against it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jr2.errors import StepFailed
from jr2_cli import tools
from jr2_cli.local_cluster import layout
from jr2_infra import closed_list, kube, kubectl
from jr2_infra.api import Api, ApiError
from jr2_infra.rollout import restart
from jr2_infra.rollout.wait import wait
from jr2_infra.rollout.workload import Workload
from tests.waiting import LIMIT, wait_for

from ..conftest import CONTEXT
from ..settled import wait_for_account
from .cases import roll_out_all
from .stories import Story, tell_all


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a wait ended.

    Args:
        said: the lines that it printed.
        error: the whole text of its error; empty when it ended well.
    """

    said: tuple[str, ...]
    error: str


class Cluster:
    """The real cluster, as the Converge reaches it and as a person does."""

    def __init__(self, folder: Path) -> None:
        context = kube.load_context(CONTEXT, os.environ)
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(context.kubeconfig_text())
        self._kubectl = tools.require("kubectl")
        self._context = context

    @contextmanager
    def api(self) -> Iterator[Api]:
        """A client of the Converge."""
        with self._context.http() as http:
            yield Api(http)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl as a person does."""
        done = subprocess.run(
            [str(self._kubectl), "--kubeconfig", str(self.kubeconfig), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """Apply objects."""
        self.kubectl(
            "apply",
            "-f",
            "-",
            stdin=json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}),
        )

    @contextmanager
    def namespace(self, name: str, labels: Mapping[str, str] | None = None) -> Iterator[str]:
        """A namespace that goes with the block."""
        self.apply(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": name, "labels": dict(labels or {})},
            }
        )
        try:
            wait_for_account(self.kubectl, name)
            yield name
        finally:
            self.kubectl("delete", "namespace", name, "--wait=false")

    def allow_no_pods(self, quota: str, namespace: str) -> None:
        """Make a quota of no pods, and wait until the API server refuses one by it.

        Until a controller has counted, a pod is refused with other words.
        """
        self.apply(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": quota, "namespace": namespace},
                "spec": {"hard": {"pods": "0"}},
            }
        )
        probe = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"generateName": "probe-", "namespace": namespace},
            "spec": {"containers": [{"name": "probe", "image": "probe"}]},
        }

        def refuses() -> bool:
            with self.api() as api:
                try:
                    api.dry_run_create(closed_list.POD, probe)
                except ApiError as error:
                    return f"exceeded quota: {quota}" in error.message
            return False

        wait_for("the quota to be in force", refuses)

    def moment(self) -> str:
        """Return this moment as a run takes it down before it applies anything."""
        with self.api() as api:
            return restart.moment(api)

    def wait(self, workload: Workload, *, began: str = "") -> Outcome:
        """Wait for a rollout as a `Rollout` step does.

        Args:
            workload: what is rolled out.
            began: when the run began; without it nothing is of an earlier one.
        """
        said: list[str] = []
        error = ""
        with self.api() as api:
            try:
                wait(
                    api,
                    workload,
                    say=said.append,
                    progress=lambda _: None,
                    kubectl=lambda one: kubectl.RolloutStatus(
                        Path(self._kubectl), self.kubeconfig, one
                    ),
                    check_lease=lambda: None,
                    began=began,
                )
            except StepFailed as failed:
                error = failed.printed
        return Outcome(said=tuple(said), error=error)

    @contextmanager
    def rewritten_images(self, namespace: str, image: str, other: str) -> Iterator[None]:
        """An admission policy that puts another image into each pod, as one of a mirror does."""
        name = f"rewrite-{namespace}"
        group = "admissionregistration.k8s.io/v1"
        containers = (
            "object.spec.containers.map(c, Object.spec.containers{name: c.name, image: "
            f"c.image == '{image}' ? '{other}' : c.image}})"
        )
        policy = {
            "apiVersion": group,
            "kind": "MutatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {
                    "namespaceSelector": {
                        "matchLabels": {"kubernetes.io/metadata.name": namespace}
                    },
                    "resourceRules": [
                        {
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "operations": ["CREATE"],
                            "resources": ["pods"],
                        }
                    ],
                },
                "failurePolicy": "Fail",
                "reinvocationPolicy": "Never",
                "mutations": [
                    {
                        "patchType": "ApplyConfiguration",
                        "applyConfiguration": {
                            "expression": f"Object{{spec: Object.spec{{containers: {containers}}}}}"
                        },
                    }
                ],
            },
        }
        binding = {
            "apiVersion": group,
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name},
        }
        probe = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"generateName": "probe-", "namespace": namespace},
            "spec": {"containers": [{"name": "probe", "image": image}]},
        }

        def rewrites() -> bool:
            with self.api() as api:
                made = api.dry_run_create(closed_list.POD, probe)
            return bool(made["spec"]["containers"][0]["image"] == other)

        try:
            self.apply(policy, binding)
            # An API server takes a new policy in a moment later.
            wait_for("the policy to be in force", rewrites)
            yield
        finally:
            self.kubectl("delete", "mutatingadmissionpolicybinding,mutatingadmissionpolicy", name)
            wait_for("the policy to be gone", lambda: not rewrites())

    def name_image(self, image: str, name: str) -> None:
        """Give an image of the node one more name, as a delivery does."""
        self._ctr("images", "tag", "--force", image, name)

    def forget_image(self, name: str) -> None:
        """Take a name of an image from the node."""
        self._ctr("images", "rm", name)

    def _ctr(self, *arguments: str) -> None:
        socket = layout.Layout().containerd_socket
        done = subprocess.run(
            [tools.require("ctr"), "--address", socket, "--namespace", "k8s.io", *arguments],
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 0, f"ctr {' '.join(arguments)}: {done.stderr}"


@pytest.fixture(scope="session")
def cluster(local_cluster: str, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    return Cluster(tmp_path_factory.mktemp("rollout"))


@pytest.fixture(scope="package")
def told(
    cluster: Cluster, request: pytest.FixtureRequest
) -> Iterator[dict[str, Future[dict[str, Any]]]]:
    """What the tests of two files read: both mostly wait, so they go on at the same time."""
    wanted = {item.path.name for item in request.session.items}
    with ThreadPoolExecutor(2) as pool:
        yield {
            file: pool.submit(tell, cluster)
            for file, tell in (
                ("test_broken_pods.py", roll_out_all),
                ("test_again.py", tell_all),
            )
            if file in wanted
        }


@pytest.fixture(scope="package")
def outcomes(told: dict[str, Future[dict[str, Outcome]]]) -> dict[str, Outcome]:
    """How the wait for each broken workload ended."""
    return told["test_broken_pods.py"].result()


@pytest.fixture(scope="package")
def stories(told: dict[str, Future[dict[str, Story]]]) -> dict[str, Story]:
    """How each second rollout went."""
    return told["test_again.py"].result()
