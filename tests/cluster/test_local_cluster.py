"""What a Converge needs of a cluster, on the local one: every part that is easy to leave out.

Pods run our image of busybox, which the cluster brings itself: nothing is pulled.
"""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jr2_cli import tools
from jr2_cli.local_cluster import layout, local_import
from jr2_cli.local_cluster.node import cgroups
from tests.waiting import LIMIT, wait_for

from .settled import wait_for_account

pytestmark = pytest.mark.cluster

WEB = "mkdir /tmp/www && echo web >/tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www"


class Namespace:
    """A namespace of its own, and kubectl in it."""

    def __init__(self, context: str, name: str) -> None:
        self.name = name
        self._command = [str(tools.require("kubectl")), "--context", context, "-n", name]

    def run(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def apply(self, *objects: dict[str, Any]) -> None:
        items = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "-f", "-", stdin=json.dumps(items))

    def ready(self, name: str) -> None:
        self.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=200s")

    def sh(self, pod: str, script: str) -> str:
        return self.kubectl("exec", pod, "--", "sh", "-c", script)

    def ask(self, source: str, host: str, port: int = 80) -> str | None:
        """What a web server says to a pod; `None` when it cannot be reached.

        A static busybox cannot run its `wget`, which looks for the C library of another machine.
        """
        script = f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 {host} {port}"
        done = self.run("exec", source, "--", "sh", "-c", script)
        return done.stdout.rpartition("\n\n")[2] if done.returncode == 0 else None

    def start_forward(self, target: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self._command, "port-forward", target, ":8080", "--address", "127.0.0.1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )


def pod(name: str, script: str = "exec sleep 3600", **spec: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": layout.BUSYBOX_IMAGE,
        "command": ["sh", "-c", script],
        "volumeMounts": spec.pop("mounts", []),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container], **spec},
    }


@pytest.fixture(scope="module")
def space(local_cluster: str) -> Iterator[Namespace]:
    namespace = Namespace(local_cluster, f"local-cluster-{secrets.token_hex(3)}")
    namespace.kubectl("create", "namespace", namespace.name)
    try:
        wait_for_account(namespace.kubectl, namespace.name)
        yield namespace
    finally:
        namespace.kubectl("delete", "namespace", namespace.name, "--wait=false")


@pytest.fixture(scope="module")
def web(space: Namespace) -> str:
    """A web server behind a Service of its name, and a pod beside it that may ask it."""
    space.apply(
        pod("web", WEB),
        pod("friend"),
        pod("stranger"),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
        },
    )
    for name in ("web", "friend", "stranger"):
        space.ready(name)
    # A Service follows its pods a moment later, as in every cluster.
    wait_for("the Service answers", lambda: space.ask("friend", "web") == "web\n")
    return "web"


def test_a_volume_keeps_what_a_pod_wrote_and_belongs_to_its_group(space: Namespace) -> None:
    user = {"runAsUser": 10001, "runAsGroup": 10001, "fsGroup": 10000}
    rest: dict[str, Any] = {
        "securityContext": user,
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        "mounts": [{"name": "data", "mountPath": "/data"}],
    }
    space.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "10Mi"}},
            },
        },
        pod("writer", "echo kept >/data/file && exec sleep 3600", **dict(rest)),
    )
    space.ready("writer")
    wait_for("it is written", lambda: space.sh("writer", "cat /data/file") == "kept\n")
    space.kubectl("delete", "pod", "writer")

    space.apply(pod("reader", **dict(rest)))
    space.ready("reader")

    assert space.sh("reader", "cat /data/file") == "kept\n"
    assert space.sh("reader", "stat -c %g /data/file") == "10000\n"


@pytest.mark.parametrize("host", ["web", "web.{namespace}", "web.{namespace}.svc.cluster.local"])
def test_a_service_answers_by_each_of_its_names(space: Namespace, web: str, host: str) -> None:
    assert space.ask("friend", host.format(namespace=space.name)) == "web\n"


def test_a_pod_reaches_itself_through_its_service(space: Namespace, web: str) -> None:
    # Its bare name is its own host name, which stands in its own hosts file.
    assert space.ask("web", f"web.{space.name}") == "web\n"


def test_pods_reach_the_api_server(space: Namespace, web: str) -> None:
    space.sh("friend", "nc -w 5 kubernetes.default.svc 443 </dev/null")


def test_a_network_policy_lets_in_whom_it_names_and_nobody_else(space: Namespace, web: str) -> None:
    address = json.loads(space.kubectl("get", "pod", web, "-o", "json"))["status"]["podIP"]

    def reaches(source: str, host: str, port: int = 80) -> bool:
        return space.ask(source, host, port) == "web\n"

    assert reaches("stranger", "web")
    space.apply(
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "web"},
            "spec": {
                "podSelector": {"matchLabels": {"app": "web"}},
                "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "friend"}}}]}],
            },
        }
    )
    try:
        wait_for("the policy takes effect", lambda: not reaches("stranger", "web"))

        assert not reaches("stranger", address, 8080)
        assert reaches("friend", "web")
        assert reaches("friend", address, 8080)
    finally:
        space.kubectl("delete", "networkpolicy", "web")
    wait_for("the policy goes with its object", lambda: reaches("stranger", "web"))


def test_an_image_is_mounted_as_a_volume_read_only(space: Namespace) -> None:
    space.apply(
        pod(
            "mounts-image",
            volumes=[
                {
                    "name": "image",
                    "image": {"reference": layout.BUSYBOX_IMAGE, "pullPolicy": "IfNotPresent"},
                }
            ],
            mounts=[{"name": "image", "mountPath": "/opt/image", "subPath": "bin"}],
        )
    )
    space.ready("mounts-image")

    assert "BusyBox" in space.sh("mounts-image", "/opt/image/busybox | head -1")
    refused = space.run("exec", "mounts-image", "--", "touch", "/opt/image/new")
    assert "Read-only file system" in refused.stderr


def test_the_resources_of_a_pod_bound_its_control_group(space: Namespace) -> None:
    resources = {"requests": {"cpu": "10m"}, "limits": {"memory": "48Mi", "cpu": "200m"}}
    space.apply(pod("bounded", resources=resources))
    space.ready("bounded")
    uid = json.loads(space.kubectl("get", "pod", "bounded", "-o", "json"))["metadata"]["uid"]

    trees = cgroups.read_mounts(Path("/proc/mounts").read_text())
    assert trees is not None
    file = "memory.limit_in_bytes" if trees.version == 1 else "memory.max"
    bounds = [
        path.read_text().strip()
        for root in trees.groups(layout.CGROUP)
        for path in root.glob(f"kubepods/**/pod{uid}/{file}")
    ]

    assert bounds == [str(48 * 2**20)]


def test_logs_exec_and_port_forward_reach_a_pod(space: Namespace, web: str) -> None:
    space.apply(pod("talks", "echo said; exec sleep 3600"))
    space.ready("talks")

    assert space.kubectl("logs", "talks") == "said\n"
    assert space.sh("talks", "echo $((6 * 7))") == "42\n"
    child = space.start_forward("pod/web")
    try:
        assert child.stdout is not None
        port = re.search(r"127\.0\.0\.1:(\d+)", child.stdout.readline())
        assert port is not None
        with urllib.request.urlopen(f"http://127.0.0.1:{port.group(1)}/", timeout=LIMIT) as answer:
            assert answer.read() == b"web\n"
    finally:
        child.kill()
        child.communicate()


def test_images_reach_the_node_through_the_socket_that_is_named(local_cluster: str) -> None:
    found = local_import()
    assert found is not None
    done = subprocess.run(
        [str(found.ctr), "--address", str(found.socket), "-n", "k8s.io", "images", "ls", "-q"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert layout.BUSYBOX_IMAGE in done.stdout.split()
    assert found.server == layout.SERVER
