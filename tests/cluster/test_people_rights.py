"""People and pipelines with exactly the Roles of docs/rights.md: they suffice, and nothing else does."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from jr2 import names
from jr2.config import Config
from jr2_cli.tooling import look_for_tooling
from jr2_infra import access, assembly, kube
from jr2_infra.access import Grant
from jr2_infra.check import check
from jr2_infra.rules import Place
from jr2_infra.session import Session
from tests.reporter import Reporter

from .conftest import CONTEXT, Instance
from .plain_stack import Stack
from .settled import written

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

NAME = "rights-test"
ACCOUNTS = "rights-test-accounts"


class Cluster:
    """An administrator of the cluster, who makes accounts and grants."""

    def __init__(self, instance: Instance, folder: Path) -> None:
        self.instance = instance
        self._folder = folder
        self._made: list[tuple[str, str, str | None]] = []

    def space(self, name: str) -> None:
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self.instance.kubectl("apply", "-f", "-", stdin=json.dumps(made))

    def account(self, name: str, grants: Sequence[Grant]) -> Path:
        """Make a service account with some grants; return its kubeconfig, of our context's name."""
        subject = {"kind": "ServiceAccount", "name": name, "namespace": ACCOUNTS}
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": ACCOUNTS},
        }
        objects = [
            account,
            *access.manifests(f"{NAME}-{name}", grants, namespace=NAME, subject=subject),
        ]
        for one in objects:
            self.instance.kubectl("apply", "-f", "-", stdin=json.dumps(one))
            metadata = cast(dict[str, str], one["metadata"])
            self._made.append((str(one["kind"]), metadata["name"], metadata.get("namespace")))
        token = self.instance.kubectl("-n", ACCOUNTS, "create", "token", name).strip()
        config = yaml.safe_load(
            self.instance.kubectl("config", "view", "--raw", "--minify", "-o", "yaml")
        )
        config["users"] = [{"name": name, "user": {"token": token}}]
        config["contexts"][0]["context"]["user"] = name
        place = self._folder / f"{name}.kubeconfig"
        place.write_text(yaml.safe_dump(config))
        place.chmod(0o600)
        return place

    def clean(self) -> None:
        for kind, name, namespace in reversed(self._made):
            where = ["-n", namespace] if namespace else []
            self.instance.kubectl(*where, "delete", kind, name, "--ignore-not-found")
        for name in (NAME, ACCOUNTS):
            self.instance.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


@pytest.fixture(scope="module")
def cluster(
    new_instance: Callable[[str], Instance], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    found = Cluster(new_instance(NAME), tmp_path_factory.mktemp("kubeconfigs"))
    for name in (NAME, ACCOUNTS):
        found.space(name)
    yield found
    found.clean()


def test_a_converge_a_use_a_preview_and_a_removal_with_exactly_their_roles(
    cluster: Cluster, tmp_path: Path
) -> None:
    instance = cluster.instance
    converge = {"KUBECONFIG": str(cluster.account("converge", access.converge(NAME, shared=True)))}
    said = instance.up(environment=converge)
    assert said.splitlines()[-1].startswith("converged")
    # What others changed is healed with the same rights, and what nobody changed is proved.
    instance.kubectl("-n", NAME, "delete", "service", names.ORCHESTRATOR)
    healed = instance.up(environment=converge)
    assert f"drift: Service {names.ORCHESTRATOR} in {NAME} is gone — made again" in healed

    use = {"KUBECONFIG": str(cluster.account("use", access.use(NAME)))}
    ran = instance.jr2(
        "run", "ping", "--input", '{"message": "hi"}', "--context", CONTEXT, environment=use
    )
    assert "pong" in ran.stdout
    refused = instance.up(code=1, environment=use)
    assert "is forbidden" in refused

    place = Place(instance=NAME, context=CONTEXT, namespace=NAME)
    preview = cluster.account("preview", access.preview(NAME))
    before = versions(instance)
    plan = look(instance, place, preview)
    assert plan.differences == ()
    assert versions(instance) == before
    said = pulumi_preview(instance, preview, tmp_path)
    assert "Traceback" not in said
    # The plugin tries a dry run of each object first, and goes by what it read when it may not.
    tried = [line for line in said.splitlines() if "forbidden" in line and "Retry #0" not in line]
    # The dry run of a pod is a converge's; without its right a warning says so.
    assert [line for line in tried if "cannot create resource" not in line] == []
    # The stack is new, so that the plugin is asked for each object.
    created = re.search(r"\+ (\d+) to create", said)
    assert created is not None, said
    assert int(created[1]) > 25
    # What somebody changed is named as drift to whoever may only look.
    instance.kubectl("-n", NAME, "delete", "service", names.ORCHESTRATOR)
    before = versions(instance)
    said = pulumi_preview(instance, preview, tmp_path)
    assert f"drift: Service {names.ORCHESTRATOR} in {NAME} is gone" in said
    assert versions(instance) == before

    remove = cluster.account("remove", (*access.converge(NAME, shared=False), *access.remove(NAME)))
    gone = instance.jr2(
        "down", "--context", CONTEXT, "--yes", environment={"KUBECONFIG": str(remove)}
    )
    assert gone.stderr.splitlines()[-1] == "removed"


def pulumi_preview(instance: Instance, kubeconfig: Path, folder: Path) -> str:
    """Run a plain `pulumi preview` with the rights of a kubeconfig; return what it says."""
    place = folder / f"stack-{len(list(folder.iterdir()))}"
    place.mkdir()
    stack = Stack(f"test-rights-{os.getpid()}", place, str(kubeconfig))
    try:
        stack.set(instance=str(instance.folder), context=CONTEXT)
        return stack.preview()
    finally:
        stack.remove()


def versions(instance: Instance) -> dict[str, str]:
    kinds = "secret,configmap,service,deployment,role,networkpolicy,lease"
    listed = instance.get(kinds, "--show-managed-fields")["items"]
    return {f"{one['kind']}/{one['metadata']['name']}": written(one) for one in listed}


def look(instance: Instance, place: Place, kubeconfig: Path) -> Any:
    """Plan as a preview does, with the rights of a kubeconfig."""
    reporter = Reporter(warns=True)
    facts = check(instance.folder, cast(Any, reporter))
    assert isinstance(facts.config, Config)
    context = kube.load_context(CONTEXT, {"KUBECONFIG": str(kubeconfig)})
    with context.http() as http:
        session = Session(
            place,
            facts,
            yes=False,
            force=False,
            context=context,
            http=http,
            find_tooling=look_for_tooling(),
            reporter=cast(Any, reporter),
            writes=False,
        )
        plan = session.look(assembly.stage(facts)).plan
    assert not [line for line in reporter.lines if "is forbidden" in line and "pods" not in line]
    return plan
