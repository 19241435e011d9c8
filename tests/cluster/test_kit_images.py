"""The Kit images and the definitions on a real node: what runs in them, as whom, with what closed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jr2 import names
from jr2_cli import tools
from jr2_cli.local_cluster import local_import
from jr2_infra import crds
from jr2_infra.images import delivery
from jr2_infra.images.checkout import checkout_images
from jr2_infra.images.delivery.local import LocalNode
from tests.waiting import LIMIT

from .settled import wait_for_account

pytestmark = pytest.mark.cluster

CHECKOUT = Path(__file__).resolve().parents[2]
NAMESPACE = "jr2-test-kit-images"
LOOK_ROUND = """
import ctypes, json, os, sqlite3, ssl, sys
sys.path += ["/opt/jr2/kit", "/opt/jr2/services"]
import importlib
importlib.import_module(os.environ["MODULE"])
try:
    open("/opt/jr2/written", "w")
except OSError as error:
    written = error.strerror
status = open("/proc/self/status").read()
print(json.dumps({
    "python": list(sys.version_info[:2]),
    "uid": os.getuid(),
    "authorities": ssl.create_default_context().cert_store_stats()["x509_ca"] > 50,
    "sqlite": sqlite3.connect(":memory:").execute("select 1").fetchone()[0],
    "written": written,
    "capabilities": next(line.split()[1] for line in status.splitlines() if "CapEff" in line),
}))
"""
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def kubectl(*arguments: str, stdin: dict[str, Any] | None = None, code: int = 0) -> str:
    done = subprocess.run(
        [str(tools.require("kubectl")), "--context", names.LOCAL_CONTEXT, *arguments],
        input=None if stdin is None else json.dumps(stdin),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == code, f"kubectl {' '.join(arguments)}: {done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def namespace(local_cluster: str) -> Iterator[str]:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    metadata = {"name": NAMESPACE, "labels": labels}
    stdin = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    kubectl("apply", "-f", "-", stdin=stdin)
    wait_for_account(kubectl, NAMESPACE)
    yield NAMESPACE
    kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def pod(name: str, ref: str, **container: Any) -> dict[str, Any]:
    shape = {"name": "main", "image": ref, "imagePullPolicy": "Never", **container}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "containers": [shape | {"securityContext": RESTRICTED}],
        },
    }


@pytest.mark.parametrize(
    ("image", "module", "uid"),
    [
        ("orchestrator", "jr2_runtime.orchestrator.program", names.ORCHESTRATOR_UID),
        ("operator", "jr2_runtime.operator.program", names.OPERATOR_UID),
    ],
)
def test_image_runs_restricted(
    kit_images: None, namespace: str, image: str, module: str, uid: int
) -> None:
    found = local_import()
    assert found is not None
    node = LocalNode(found.ctr, found.socket)
    ref = getattr(checkout_images(CHECKOUT), image)
    delivery.deliver(ref, node)
    assert (delivery.held_everywhere(node.held(ref)) or "").startswith("sha256:")
    name = f"look-{image}"
    environment = [{"name": "MODULE", "value": module}]
    command = ["/usr/bin/python3", "-ISB", "-c", LOOK_ROUND]
    kubectl("apply", "-f", "-", stdin=pod(name, ref, command=command, env=environment))
    done = "--for=jsonpath={.status.phase}=Succeeded"
    kubectl("-n", namespace, "wait", done, f"pod/{name}", "--timeout=200s")
    seen = json.loads(kubectl("-n", namespace, "logs", name))

    assert seen == {
        "python": [3, 11],
        "uid": uid,
        "authorities": True,
        "sqlite": 1,
        "written": "Read-only file system",
        "capabilities": "0" * 16,
    }


@pytest.mark.parametrize("definition", crds.load(), ids=lambda d: str(d["metadata"]["name"]))
def test_the_api_server_takes_the_definition(
    local_cluster: str, definition: dict[str, Any]
) -> None:
    # A schema that is not structural is refused, and doubtful parts of one are warned of.
    answer = kubectl(
        *("apply", "--server-side", "--dry-run=server", "--force-conflicts"),
        *("--field-manager=jr2-test", "-f", "-"),
        stdin=definition,
    )
    assert answer.strip().endswith("serverside-applied (server dry run)")
    assert "Warning" not in answer
