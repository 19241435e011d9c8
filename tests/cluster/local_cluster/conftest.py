"""The verbs of `jr2 cluster` as a person types them, and what the machine looks like around them.

These tests make, kill and delete the one local cluster of the machine, so `scripts/test` runs them
before any other test that uses it. The tests that need a machine without a cluster come first, and
skip where one was made by somebody else: its data are not ours to delete.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from jr2 import names
from jr2_cli import tools
from jr2_cli.local_cluster import layout, report
from jr2_cli.local_cluster.node import cgroups
from jr2_infra.components.repo_cache import store_path
from tests.waiting import LIMIT, wait_for

from ..settled import wait_for_account

BIN = Path(sys.executable).parent
STATE = layout.STATE_FOLDER
PLACES = ("/etc", "/run", "/var/lib", "/var/log", "/opt")
OF_THE_SYSTEM = re.compile(r"/var/(lib|log)/(apt|dpkg)(/|$)|/var/log/(lastlog|[wb]tmp)")
IN_TEMPORARY = re.compile(r"cni|containerd|etcd|kube|runc|shim|buildkit|coredns")
SETTINGS = (
    "net/ipv4/ip_forward", "vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
)  # fmt: skip


def run(*argv: str | Path, stdin: str | None = None, timeout: float = LIMIT) -> str:
    done = subprocess.run(
        [str(part) for part in argv],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


@dataclass
class Machine:
    """The verbs, with a kubeconfig of our own, and kubectl."""

    kubeconfig: str
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "KUBECONFIG": self.kubeconfig}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [str(BIN / "jr2"), "cluster", *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(child)
        return child

    def jr2(self, *arguments: str, code: int = 0) -> str:
        child = self.start(*arguments)
        out, err = child.communicate(timeout=2 * LIMIT)
        assert child.returncode == code, f"jr2 cluster {arguments}: {out}{err}"
        return out + err

    def status(self) -> dict[str, Any]:
        """What `jr2 cluster status --json` prints."""
        child = self.start("status", "--json")
        out, _ = child.communicate(timeout=LIMIT)
        found = json.loads(out)
        assert isinstance(found, dict)
        return found

    def report(self) -> report.ClusterReport:
        """The same without a process of its own, to be asked again and again."""
        return report.cluster_report(layout.Layout())

    def pids(self) -> dict[str, int | None]:
        return {entry.name: entry.pid for entry in self.report().processes}

    def is_healthy(self) -> bool:
        return self.report().is_healthy

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        # The file of the one who runs the test may not have the context.
        config = self.kubeconfig.split(os.pathsep)[0]
        words = ["--kubeconfig", config, "--context", layout.CONTEXT, *arguments]
        return run(tools.require("kubectl"), *words, stdin=stdin)

    def get(self, *arguments: str) -> Any:
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """The verbs with a kubeconfig of their own."""
    found = Machine(str(tmp_path_factory.mktemp("kubeconfig") / "config"))
    yield found
    for child in found.started:
        if child.poll() is None:
            child.kill()
        child.communicate()


@pytest.fixture
def no_cluster() -> None:
    """A machine without a cluster."""
    if STATE.exists():
        pytest.skip("a local cluster is here already, and its data are not ours to delete")


@pytest.fixture(scope="session")
def created(machine: Machine) -> Machine:
    """A cluster with its context in our kubeconfig; made when there is none."""
    machine.jr2("create")
    return machine


@pytest.fixture
def running(created: Machine) -> Machine:
    """A cluster that runs and works, whatever the test before did to it."""
    if not created.is_healthy():
        created.jr2("create")
    return created


@dataclass
class Witness:
    """A pod with a volume, and objects beside it, that must outlive what happens.

    It has a folder of its node too, as a Repo cache has.
    """

    machine: Machine
    name: str

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self.machine.kubectl("-n", self.name, *arguments, stdin=stdin)

    def container(self) -> tuple[str, int]:
        """The id of the container and how often it was started again."""
        pod = json.loads(self.kubectl("get", "pod", "witness", "-o", "json"))
        status = pod["status"]["containerStatuses"][0]
        return status["containerID"], status["restartCount"]

    def is_up(self) -> bool:
        pod = json.loads(self.kubectl("get", "pod", "witness", "-o", "json"))
        conditions = {c["type"]: c["status"] for c in pod["status"].get("conditions", [])}
        return conditions.get("Ready") == "True"

    def note(self, text: str) -> None:
        """Write into the volume of the pod, and into an object."""
        self.kubectl("exec", "witness", "--", "sh", "-c", f"echo {text} >/data/note && sync")
        self.kubectl("create", "configmap", text)
        self.kubectl("create", "secret", "generic", text, f"--from-literal=key={text}")

    def _note(self) -> str | None:
        """What stands in the volume; `None` while nobody can look."""
        try:
            return self.kubectl("exec", "witness", "--", "cat", "/data/note")
        except AssertionError:
            return None

    def check(self, text: str) -> None:
        """What was noted is still there."""
        # A kubelet that has just started knows the pod before it can look into it.
        wait_for("the pod can be looked into", lambda: self._note() is not None)
        assert self._note() == f"{text}\n"
        self.kubectl("get", "configmap", text)
        template = "--output=go-template={{.data.key | base64decode}}"
        assert self.kubectl("get", "secret", text, template) == text


def witness_objects(host_port: int, store: str) -> list[dict[str, Any]]:
    labels = {"app": "witness"}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Mi"}},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "witness"},
            "spec": {"selector": labels, "ports": [{"port": 80}], "type": "NodePort"},
        },
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "witness"},
            "spec": {
                "podSelector": {"matchLabels": labels},
                "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "friend"}}}]}],
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "witness", "labels": labels},
            "spec": {
                "terminationGracePeriodSeconds": 0,
                "containers": [
                    {
                        "name": "main",
                        "image": layout.BUSYBOX_IMAGE,
                        "command": ["sh", "-c", "exec sleep 86400"],
                        "ports": [{"containerPort": 80, "hostPort": host_port}],
                        "volumeMounts": [
                            {"name": "data", "mountPath": "/data"},
                            {"name": "cache", "mountPath": names.REPO_CACHE_PATH},
                        ],
                    }
                ],
                "volumes": [
                    {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
                    {"name": "cache", "hostPath": {"path": store, "type": "DirectoryOrCreate"}},
                ],
            },
        },
    ]


@pytest.fixture(scope="session")
def new_witness(machine: Machine) -> Callable[[], Witness]:
    """Make a witness in a namespace of its own."""

    def make() -> Witness:
        witness = Witness(machine, f"witness-{secrets.token_hex(3)}")
        machine.kubectl("create", "namespace", witness.name)
        wait_for_account(machine.kubectl, witness.name)
        objects = witness_objects(20_000 + secrets.randbelow(9_000), store_path(witness.name))
        items = {"apiVersion": "v1", "kind": "List", "items": objects}
        witness.kubectl("apply", "-f", "-", stdin=json.dumps(items))
        witness.kubectl("wait", "--for=condition=Ready", "pod/witness", "--timeout=200s")
        return witness

    return make


@pytest.fixture(scope="session")
def witness(created: Machine, new_witness: Callable[[], Witness]) -> Iterator[Witness]:
    """One witness for all tests that leave it as it was."""
    made = new_witness()
    yield made
    created.jr2("create")
    created.kubectl("delete", "namespace", made.name, "--wait=false")


def cluster_processes() -> set[int]:
    """Every process of the cluster and of its pods, found by what the kernel says of it."""
    trees = cgroups.read_mounts(Path("/proc/mounts").read_text())
    found = set() if trees is None else cgroups.process_ids(trees, layout.CGROUP)
    state = os.fsencode(STATE)
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes()
            environment = (entry / "environ").read_bytes()
            folder = os.readlink(entry / "cwd")
        except OSError:
            continue
        if state in words or state in environment or Path(folder).is_relative_to(STATE):
            found.add(int(entry.name))
    return found - {os.getpid()}


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return "(it has ended)"


def kill_everything() -> None:
    """Kill the supervisor, each process, each shim and each pod at once, until none is left."""

    def none_is_left() -> bool:
        left = cluster_processes()
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        return not left

    wait_for("every process is gone", none_is_left)


def inventory() -> dict[str, list[str]]:
    """What there is on the machine of the kinds of things that a cluster makes."""
    tables = run("nft", "list", "ruleset") if Path("/usr/sbin/nft").exists() else ""
    files = {
        path
        for place in PLACES
        for folder, folders, names in os.walk(place)
        for path in (os.path.join(folder, name) for name in [*folders, *names])
        if not OF_THE_SYSTEM.match(path)
    }
    trees = cgroups.read_mounts(Path("/proc/mounts").read_text())
    groups = [] if trees is None else [g for m in trees.mounts for g, _, _ in os.walk(m)]
    return {
        "processes": [f"{pid}: {command_line(pid)}" for pid in sorted(cluster_processes())],
        "mounts": sorted(Path("/proc/self/mounts").read_text().splitlines()),
        "devices": sorted(os.listdir("/sys/class/net")),
        "addresses": run("ip", "-brief", "address").splitlines(),
        "routes": run("ip", "route", "show", "table", "all").splitlines(),
        "rules": run("ip", "rule").splitlines(),
        "tables": re.sub(r"counter packets \d+ bytes \d+", "counter", tables).splitlines(),
        "sets": run("ipset", "list", "-name").splitlines(),
        "groups": sorted(groups),
        "namespaces": run("ip", "netns", "list").splitlines(),
        "files": sorted(files),
        "temporary": sorted(n for n in os.listdir("/tmp") if IN_TEMPORARY.search(n)),
        "memory": sorted(os.listdir("/dev/shm")),
        "settings": [f"{n}={Path('/proc/sys', n).read_text().strip()}" for n in SETTINGS],
    }
