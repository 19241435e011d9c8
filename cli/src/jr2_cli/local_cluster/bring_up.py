"""Bringing a cluster up: from its files to one that a first pod can use.

Each wait ends when it holds, when the supervisor is gone, or after two minutes; then the text names
the processes that are at fault, with the last lines of their logs.

Source: design §7.
"""

from __future__ import annotations

import base64
import functools
import os
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jr2 import names
from jr2.errors import StepFailed
from jr2_infra import process_table as identity
from jr2_infra import processes
from jr2_infra.report import Reporter

from ..tools import catalogue, lookup
from . import api, layout, private_files, readiness, report
from .definition import busybox_image, certificates, objects, services, settings
from .layout import Layout
from .node import before, cgroups, conflicts, leftovers, machine, network
from .supervision import plan, probes, remains, supervisor

_READY_SECONDS: Final = 120.0
_PAUSE: Final = 0.05
_LOG_LINES: Final = 8
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class BringUp:
    """One start of the cluster.

    Args:
        reporter: where the lines go.
        files: where the cluster lies.
    """

    reporter: Reporter
    files: Layout

    def run(self) -> str:
        """Write the settings, start the supervisor, and wait until all of it works.

        Returns:
            The version of the API server, without `v`.

        Raises:
            Refusal: it cannot run here.
            StepFailed: a program is missing, or the cluster does not come up.
        """
        began = time.monotonic()
        programs = machine.find_programs()
        facts, hierarchies = machine.look(programs)
        conflicts.check_routes()
        if not remains.known_leftovers(self.files.plan):
            conflicts.check_ports()
        write_settings(self.files, programs, facts)
        self._say(f"cluster: certificates and settings are in {self.files.root}")
        leftovers.forget_last_boot(self.files, _BOOT_ID.read_text().strip())
        before.note(self.files)
        network.prepare()
        cgroups.make_group(hierarchies, layout.CGROUP)
        self._say(f"cluster: the node has the address {layout.NODE_ADDRESS}")
        since = time.time()
        pid = self._start_supervisor()
        deadline = time.monotonic() + _READY_SECONDS
        # It ends what an earlier one left running before it says who it is.
        self._wait("the supervisor", lambda: self._is_supervised_by(pid), pid, deadline)
        self._wait("containerd", self._containerd_answers, pid, deadline)
        self._import_busybox(programs["ctr"].path)
        with api.Api(self.files) as server:
            version = self._wait_ready(server, since, pid, deadline)
        self._say(f"cluster: up in {time.monotonic() - began:.1f}s")
        return version

    def wait_until_healthy(self) -> None:
        """Wait until every process of a cluster that runs already answers.

        Raises:
            StepFailed: one of them does not.
        """
        state = remains.read_state(self.files.supervisor_state)
        if state is not None and not self._all_healthy():
            deadline = time.monotonic() + _READY_SECONDS
            self._wait("every process", self._all_healthy, state.pid, deadline)

    def _wait_ready(self, server: api.Api, since: float, pid: int, deadline: float) -> str:
        first, *rest = readiness.STAGES
        self._wait(first.name, functools.partial(first.holds, server, since), pid, deadline)
        for wanted in objects.first_objects(self.files):
            server.apply(wanted)
        self._say(f"cluster: the StorageClass {layout.STORAGE_CLASS} is there")
        for stage in rest:
            self._wait(stage.name, functools.partial(stage.holds, server, since), pid, deadline)
        self._wait("every process", self._all_healthy, pid, deadline)
        version = server.version()
        assert version is not None
        return version

    def _start_supervisor(self) -> int:
        return processes.detach(
            [sys.executable, "-I", "-m", supervisor.__name__, self.files.plan],
            env={
                "PATH": os.pathsep.join(catalogue.SYSTEM_PATHS),
                "HOME": str(self.files.root),
                "LANG": "C.UTF-8",
            },
            cwd=self.files.root,
            log=self.files.logs / "supervisor.log",
        )

    def _import_busybox(self, ctr: Path) -> None:
        client: list[str | Path] = [ctr, "--address", self.files.containerd_socket]
        client += ["--namespace", names.CONTAINERD_NAMESPACE]
        listed = processes.run([*client, "images", "list", "--quiet"])
        if layout.BUSYBOX_IMAGE in listed.stdout.split():
            return
        busybox = lookup.system_program("busybox")
        assert busybox is not None
        applets = processes.run([busybox, "--list"]).stdout.split()
        archive = self.files.config / "busybox.tar"
        busybox_image.write_archive(busybox, applets, archive)
        done = processes.run([*client, "images", "import", archive])
        archive.unlink()
        if done.returncode != 0:
            raise StepFailed(f"containerd does not take {layout.BUSYBOX_IMAGE}: {done.stderr}")
        self._say(f"cluster: the image {layout.BUSYBOX_IMAGE} is there")

    def _is_supervised_by(self, pid: int) -> bool:
        state = remains.read_state(self.files.supervisor_state)
        return state is not None and state.pid == pid

    def _containerd_answers(self) -> bool:
        return probes.answers(plan.Probe(kind="unix", target=str(self.files.containerd_socket)))

    def _all_healthy(self) -> bool:
        return all(entry.healthy for entry in report.process_reports(self.files))

    def _wait(
        self, what: str, holds: Callable[[], bool], supervisor_pid: int, deadline: float
    ) -> None:
        """Wait until something holds; say which process is at fault when it never does."""
        began = time.monotonic()
        self.reporter.progress(f"cluster: waiting for {what}")
        try:
            while not holds():
                if identity.start_of(supervisor_pid) is None:
                    raise StepFailed(
                        self._failure(f"the supervisor ended, before {what} was there")
                    )
                if time.monotonic() > deadline:
                    raise StepFailed(
                        self._failure(f"{what}: not there after {_READY_SECONDS:.0f}s")
                    )
                time.sleep(_PAUSE)
        finally:
            self.reporter.progress(None)
        self._say(f"cluster: {what}: ok after {time.monotonic() - began:.1f}s")

    def _failure(self, text: str) -> str:
        lines = [f"the local cluster does not come up — {text}"]
        ill = [entry.name for entry in report.process_reports(self.files) if not entry.healthy]
        for name in ill[:3] or ["supervisor"]:
            log = self.files.logs / f"{name}.log"
            lines.append(f"  last lines of {log}:")
            with suppress(OSError):
                text = log.read_text(errors="replace")
                lines += [f"    {line}" for line in text.splitlines()[-_LOG_LINES:]]
        lines.append("see `jr2 cluster status`; `jr2 cluster delete` takes it away")
        return "\n".join(lines)

    def _say(self, text: str) -> None:
        self.reporter.line(text, code="cluster")


def write_settings(
    files: Layout, programs: Mapping[str, services.Binary], facts: settings.Machine
) -> None:
    """Write what every process reads; keys, and the data that they protect, stay.

    Args:
        files: where the cluster lies.
        programs: the place of each program.
        facts: what was read of the machine.
    """
    files.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    files.root.chmod(0o700)
    for folder in (files.config, files.logs, files.etcd, files.volumes, files.config / "cni"):
        folder.mkdir(mode=0o700, exist_ok=True)
    # Pods of other users reach their volumes through it.
    files.volumes.chmod(0o755)
    certificates.ensure_certificates(files)
    if not files.encryption_config.exists():
        key = base64.b64encode(secrets.token_bytes(32)).decode()
        private_files.write_json(files.encryption_config, settings.encryption(key))
    for user in (
        "bootstrap",
        "kube-controller-manager",
        "kube-scheduler",
        "kubelet",
        "kube-proxy",
        "coredns",
        "kube-router",
        "local-path-provisioner",
    ):
        private_files.write_json(files.kubeconfig(user), settings.component_kubeconfig(files, user))
    storage = settings.storage(files)
    private_files.write(files.config / "containerd.toml", settings.containerd(files, facts))
    private_files.write_json(files.config / "cni" / "10-jr2.conflist", settings.cni(files))
    private_files.write_json(files.config / "kubelet.json", settings.kubelet(files))
    private_files.write_json(files.config / "kube-proxy.json", settings.kube_proxy(files))
    private_files.write(files.config / "Corefile", settings.corefile(files))
    private_files.write(files.config / "buildkitd.toml", settings.buildkitd(files))
    private_files.write(files.config / "local-path.json", storage["config.json"])
    private_files.write(files.config / "helper-pod.json", storage["helperPod.yaml"])
    path = os.pathsep.join(catalogue.SYSTEM_PATHS)
    work = services.build_plan(files, programs, path, sys.executable)
    private_files.write(files.plan, work.model_dump_json(indent=2))
