"""The local cluster: created, started, stopped, deleted.

Every verb may be repeated, and a verb that was killed is finished by the next one: `create` keeps
what is there and makes what is missing, `delete` takes away what it finds.

Source: design §7.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jr2.errors import Aborted, Refusal, StepFailed
from jr2_infra import processes, rules
from jr2_infra.report import Reporter

from .. import tools
from ..tools import catalogue, lookup
from . import (
    api,
    busybox_image,
    certificates,
    cgroups,
    kubeconfig,
    layout,
    leftovers,
    network,
    objects,
    plan,
    process_table,
    readiness,
    report,
    services,
    settings,
    supervisor,
)
from .layout import Layout
from .record import Record, read_record

_READY_SECONDS: Final = 120.0
_STOP_SECONDS: Final = 90.0
_PAUSE: Final = 0.05
_LOG_LINES: Final = 8
_CAP_SYS_RESOURCE: Final = 24
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_NEEDED_PACKAGES: Final = (
    "containernetworking-plugins",
    "iproute2",
    "iptables",
    "ipset",
    "nftables",
    "conntrack",
    "busybox-static",
)

_QUESTION: Final = "delete the local cluster and everything in it?"
CREATE: Final = "`jr2 cluster create`"


def check_platform(platform: str, user_id: int, verb: str) -> None:
    """Refuse where the cluster cannot run.

    Args:
        platform: `sys.platform`.
        user_id: the effective user.
        verb: the verb that was called.

    Raises:
        Refusal: this is not Linux, or the user is not root.
    """
    if platform != "linux":
        raise Refusal(
            "the local cluster runs on Linux only — use kind, which needs Docker: "
            "`kind create cluster`, then `jr2 up`"
        )
    if user_id != 0:
        raise Refusal(
            f"the local cluster needs root — run `jr2 cluster {verb}` as root, or use kind, which "
            "needs Docker: `kind create cluster`, then `jr2 up`"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The verbs.

    Args:
        reporter: where the lines go.
        environ: the environment that KUBECONFIG, HOME and PATH are read from.
        files: where the cluster lies.
    """

    reporter: Reporter
    environ: Mapping[str, str]
    files: Layout = field(default_factory=Layout)

    def create(self) -> None:
        """Make the cluster, or start the one that is there, and wait until it can be used.

        Raises:
            Refusal: it cannot run here.
            StepFailed: a program is missing, or the cluster does not come up.
        """
        check_platform(sys.platform, os.geteuid(), "create")
        with self._locked():
            record = read_record(self.files)
            if record is not None and supervisor.is_running(self.files.supervisor_lock):
                self._merge(record)
                self._say(f"cluster: runs already, in {self.files.root}")
                self._say_ready(record.kubernetes)
                return
            self._bring_up()

    def start(self) -> None:
        """Start the cluster that was stopped, with its data, and wait until it can be used.

        Raises:
            Refusal: it cannot run here.
            StepFailed: there is none, a program is missing, or it does not come up.
        """
        check_platform(sys.platform, os.geteuid(), "start")
        with self._locked():
            record = read_record(self.files)
            if record is None:
                raise StepFailed(f"there is no local cluster — {CREATE} makes one")
            if supervisor.is_running(self.files.supervisor_lock):
                self._say(f"cluster: runs already, in {self.files.root}")
                self._say_ready(record.kubernetes)
                return
            self._bring_up()

    def stop(self) -> None:
        """End every process of the cluster and of its pods; the data stay.

        Raises:
            Refusal: it cannot run here.
            StepFailed: a process does not end.
        """
        check_platform(sys.platform, os.geteuid(), "stop")
        with self._locked():
            if not self.files.root.exists():
                raise StepFailed(f"there is no local cluster — {CREATE} makes one")
            self._stop()
            self._say("stopped: `jr2 cluster start` goes on with the same data")

    def delete(self, *, yes: bool) -> None:
        """Take the cluster away with its data, and the context out of the kubeconfigs.

        Args:
            yes: do not ask whether the data may go.

        Raises:
            Refusal: it cannot run here.
            Aborted: the answer was no.
            StepFailed: something of it stays; the next `delete` goes on from there.
        """
        check_platform(sys.platform, os.geteuid(), "delete")
        with self._locked():
            record = read_record(self.files)
            existed = self.files.root.exists()
            if existed and not yes and not self.reporter.confirm(_QUESTION):
                raise Aborted(rules.ABORTED)
            if existed:
                self._stop()
            leftovers.end_pods(self.files)
            network.remove()
            leftovers.unmount(self.files.root)
            known = set() if record is None else set(record.kubeconfigs)
            for path in sorted({*known, kubeconfig.default_path(self.environ)}):
                kubeconfig.unmerge(path)
            leftovers.remove_files(self.files)
            self._say("deleted: the local cluster" if existed else "there is no local cluster")

    def _bring_up(self) -> None:
        began = time.monotonic()
        programs = _programs()
        machine, hierarchies = _machine(programs)
        self._write_settings(programs, machine)
        self._say(f"cluster: certificates and settings are in {self.files.root}")
        leftovers.forget_last_boot(self.files, _BOOT_ID.read_text().strip())
        network.prepare()
        cgroups.make_group(hierarchies, layout.CGROUP)
        self._say(f"cluster: the node has the address {layout.NODE_ADDRESS}")
        pid = self._start_supervisor()
        self._say(f"cluster: the supervisor runs (process {pid})")
        deadline = time.monotonic() + _READY_SECONDS
        self._wait("containerd", self._containerd_answers, pid, deadline)
        self._import_busybox(programs["ctr"])
        with api.Api(self.files) as server:
            version = self._wait_ready(server, pid, deadline)
        present = read_record(self.files)
        record = Record(
            kubernetes=version,
            created_at=time.time() if present is None else present.created_at,
            kubeconfigs=() if present is None else present.kubeconfigs,
        )
        self._merge(record)
        self._say(f"cluster: up in {time.monotonic() - began:.1f}s")
        self._say_ready(version)

    def _wait_ready(self, server: api.Api, pid: int, deadline: float) -> str:
        first, *rest = readiness.STAGES
        self._wait(first.name, lambda: first.holds(server), pid, deadline)
        for wanted in objects.first_objects(self.files):
            server.apply(wanted)
        self._say(f"cluster: the StorageClass {layout.STORAGE_CLASS} is there")
        for stage in rest:
            self._wait(stage.name, lambda stage=stage: stage.holds(server), pid, deadline)  # type: ignore[misc]
        self._wait("every process", self._all_healthy, pid, deadline)
        version = server.version()
        assert version is not None
        return version

    def _write_settings(self, programs: Mapping[str, Path], machine: settings.Machine) -> None:
        files = self.files
        files.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        files.root.chmod(0o700)
        for folder in (files.config, files.logs, files.etcd, files.volumes, files.config / "cni"):
            folder.mkdir(mode=0o700, exist_ok=True)
        # Pods of other users reach their volumes through it.
        files.volumes.chmod(0o755)
        certificates.ensure_certificates(files)
        if not files.encryption_config.exists():
            key = base64.b64encode(secrets.token_bytes(32)).decode()
            _write_json(files.encryption_config, settings.encryption(key))
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
            _write_json(files.kubeconfig(user), settings.component_kubeconfig(files, user))
        storage = settings.storage(files)
        _write(files.config / "containerd.toml", settings.containerd(files, machine))
        _write_json(files.config / "cni" / "10-jr2.conflist", settings.cni(files))
        _write_json(files.config / "kubelet.json", settings.kubelet(files))
        _write_json(files.config / "kube-proxy.json", settings.kube_proxy(files))
        _write(files.config / "Corefile", settings.corefile(files))
        _write(files.config / "buildkitd.toml", settings.buildkitd(files))
        _write(files.config / "local-path.json", storage["config.json"])
        _write(files.config / "helper-pod.json", storage["helperPod.yaml"])
        path = os.pathsep.join(catalogue.SYSTEM_PATHS)
        work = services.build_plan(files, programs, path)
        _write(files.plan, work.model_dump_json(indent=2))

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
        client += ["--namespace", "k8s.io"]
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

    def _containerd_answers(self) -> bool:
        return self.files.containerd_socket.is_socket()

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
                if process_table.start_ticks(supervisor_pid) is None:
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
        if what != "containerd":
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

    def _stop(self) -> None:
        if supervisor.is_running(self.files.supervisor_lock):
            self.reporter.progress("cluster: stopping")
            self._stop_supervisor()
            self.reporter.progress(None)
        elif self.files.plan.exists():
            work = plan.Plan.model_validate_json(self.files.plan.read_bytes())
            supervisor.end_leftovers(work)
        leftovers.end_pods(self.files)

    def _stop_supervisor(self) -> None:
        deadline = time.monotonic() + _STOP_SECONDS
        told: int | None = None
        while supervisor.is_running(self.files.supervisor_lock):
            # One that just started has not yet said who it is.
            state = supervisor.read_state(self.files.supervisor_state)
            if told is None and state is not None:
                told = state.pid
                with suppress(ProcessLookupError):
                    os.kill(told, signal.SIGTERM)
            if time.monotonic() > deadline:
                raise StepFailed(
                    f"the supervisor did not end in {_STOP_SECONDS:.0f}s — see "
                    f"{self.files.logs / 'supervisor.log'}"
                )
            time.sleep(_PAUSE)

    def _merge(self, record: Record) -> None:
        path = kubeconfig.default_path(self.environ)
        known = tuple(dict.fromkeys([*record.kubeconfigs, path]))
        # Noted before it is written: a delete then finds it, whatever happens between the two.
        noted = record.model_copy(update={"kubeconfigs": known})
        _write(self.files.record, noted.model_dump_json())
        entries = kubeconfig.admin_entries(self.files)
        for other in known:
            # A certificate may have been renewed: the files that already hold it get the new one.
            if other == path or other.exists():
                kubeconfig.merge(other, entries)
        self._say(f"cluster: the context {layout.CONTEXT} is in {path}")

    def _say_ready(self, version: str) -> None:
        self._say(f"ready: context {layout.CONTEXT} (Kubernetes v{version})", code="cluster-ready")

    def _say(self, text: str, *, code: str = "cluster") -> None:
        self.reporter.line(text, code=code)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One verb at a time; the lock is the folder that holds the state folder."""
        parent = self.files.root.parent
        descriptor = self._lock_folder(parent)
        try:
            yield
        finally:
            os.close(descriptor)
            with suppress(OSError):
                parent.rmdir()

    def _lock_folder(self, folder: Path) -> int:
        while True:
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._say("cluster: another `jr2 cluster` is at work, waiting")
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            # The one before us may have removed the folder; then the lock is on nothing.
            with suppress(FileNotFoundError):
                if folder.stat().st_ino == os.fstat(descriptor).st_ino:
                    return descriptor
            os.close(descriptor)


def _programs() -> dict[str, Path]:
    found = [lookup.find(catalogue.BY_NAME[name]) for name in services.PROGRAMS]
    missing = [item for item in found if item.path is None]
    if missing:
        raise StepFailed(tools.missing_text(missing))
    packages = [p.name for p in lookup.missing_packages() if p.name in _NEEDED_PACKAGES]
    if packages:
        raise StepFailed(
            f"packages of this system are missing: {', '.join(packages)} — run "
            "`jr2 tools install`, then try again"
        )
    return {item.program.name: item.path for item in found if item.path is not None}


def _machine(programs: Mapping[str, Path]) -> tuple[settings.Machine, cgroups.Hierarchies]:
    hierarchies = cgroups.read_mounts(Path("/proc/mounts").read_text())
    if hierarchies is None:
        raise Refusal(
            "no control groups with cpu, memory and pids are mounted here, which pods need — use "
            "another machine, or point kubectl at a cluster"
        )
    folder = next(Path(path) for path in catalogue.CNI_FOLDERS if Path(path, "bridge").exists())
    return (
        settings.Machine(
            may_lower_oom_score=holds_capability(
                Path("/proc/self/status").read_text(), _CAP_SYS_RESOURCE
            ),
            cni_folder=folder,
            runc=programs["runc"],
            shim=programs["containerd-shim-runc-v2"],
        ),
        hierarchies,
    )


def holds_capability(status: str, number: int) -> bool:
    """Tell whether a process holds a capability.

    Args:
        status: the content of its `/proc/<pid>/status`.
        number: the capability's number.
    """
    line = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(line.split()[1], 16) >> number & 1)


def _write(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(part, path)


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    _write(path, json.dumps(value, indent=2))
