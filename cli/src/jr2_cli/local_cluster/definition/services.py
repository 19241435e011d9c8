"""The processes of the cluster and their flags. Pure: the places of the programs in, a plan out.

Source: design §7 and local-cluster/ (the flags that are known to work).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .. import layout
from ..layout import Layout
from ..supervision import plan

PROGRAMS: Final = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "containerd",
    "containerd-shim-runc-v2",
    "ctr",
    "runc",
    "coredns",
    "kube-router",
    "local-path-provisioner",
    "buildkitd",
)
"""What `jr2 cluster create` needs of the table of programs."""

_LOCALHOST: Final = "127.0.0.1"
RENEWAL_MODULE: Final = "jr2_cli.local_cluster.renewal"
_RENEWAL_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class Binary:
    """A program of this machine.

    Args:
        path: where it is.
        version: its version.
    """

    path: Path
    version: str | None


def build_plan(
    files: Layout, programs: Mapping[str, Binary], path: str, interpreter: str
) -> plan.Plan:
    """Write down the cluster's processes for the supervisor.

    Args:
        files: where everything lies.
        programs: the place of each program of `PROGRAMS`.
        path: the folders of the operating system's programs, as in PATH.
        interpreter: the Python that the supervisor runs in, for its chores.
    """
    # containerd looks for runc, and the shim for containerd, on PATH.
    folders = dict.fromkeys(str(program.path.parent) for program in programs.values())
    return plan.Plan(
        folder=files.root,
        logs=files.logs,
        lock=files.supervisor_lock,
        state=files.supervisor_state,
        environment={
            "PATH": ":".join([*folders, path]),
            "HOME": str(files.root),
            "LANG": "C.UTF-8",
            "NODE_NAME": layout.NODE_NAME,
        },
        services=(
            _etcd(files, programs["etcd"]),
            _containerd(files, programs["containerd"]),
            _api_server(files, programs["kube-apiserver"]),
            _controller_manager(files, programs["kube-controller-manager"]),
            _scheduler(files, programs["kube-scheduler"]),
            _kubelet(files, programs["kubelet"]),
            _kube_proxy(files, programs["kube-proxy"]),
            _coredns(files, programs["coredns"]),
            _kube_router(files, programs["kube-router"]),
            _local_path(files, programs["local-path-provisioner"]),
            _buildkitd(files, programs["buildkitd"]),
        ),
        chores=(
            plan.Chore(
                name="renewal",
                argv=(interpreter, "-I", "-m", RENEWAL_MODULE, str(files.root)),
                every_seconds=_RENEWAL_SECONDS,
            ),
        ),
    )


def _etcd(files: Layout, program: Binary) -> plan.Service:
    client = f"https://{_LOCALHOST}:{layout.ETCD_PORT}"
    peer = f"https://{_LOCALHOST}:{layout.ETCD_PEER_PORT}"
    authority = str(files.certificate("etcd-ca"))
    certificate, key = str(files.certificate("etcd")), str(files.key("etcd"))
    return plan.Service(
        name="etcd",
        version=program.version,
        argv=(
            str(program.path),
            f"--data-dir={files.etcd}",
            f"--name={layout.NODE_NAME}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster={layout.NODE_NAME}={peer}",
            "--client-cert-auth=true",
            f"--trusted-ca-file={authority}",
            f"--cert-file={certificate}",
            f"--key-file={key}",
            "--peer-client-cert-auth=true",
            f"--peer-trusted-ca-file={authority}",
            f"--peer-cert-file={certificate}",
            f"--peer-key-file={key}",
            "--log-level=warn",
            "--auto-compaction-retention=1h",
        ),
        probe=plan.Probe(
            kind="https",
            target=f"{client}/readyz",
            authority=files.certificate("etcd-ca"),
            certificate=files.certificate("etcd-client"),
            key=files.key("etcd-client"),
        ),
    )


def _containerd(files: Layout, program: Binary) -> plan.Service:
    return plan.Service(
        name="containerd",
        version=program.version,
        argv=(str(program.path), "--config", str(files.config / "containerd.toml")),
        probe=plan.Probe(kind="unix", target=str(files.containerd_socket)),
        # The shims of pods name the socket with `-address`, and outlive containerd by design.
        strays=str(files.containerd_socket),
    )


def _api_server(files: Layout, program: Binary) -> plan.Service:
    return plan.Service(
        name="kube-apiserver",
        version=program.version,
        argv=(
            str(program.path),
            f"--etcd-servers=https://{_LOCALHOST}:{layout.ETCD_PORT}",
            f"--etcd-cafile={files.certificate('etcd-ca')}",
            f"--etcd-certfile={files.certificate('etcd-client')}",
            f"--etcd-keyfile={files.key('etcd-client')}",
            f"--encryption-provider-config={files.encryption_config}",
            f"--bind-address={layout.NODE_ADDRESS}",
            f"--advertise-address={layout.NODE_ADDRESS}",
            f"--secure-port={layout.API_PORT}",
            f"--tls-cert-file={files.certificate('kube-apiserver')}",
            f"--tls-private-key-file={files.key('kube-apiserver')}",
            f"--client-ca-file={files.certificate('ca')}",
            f"--kubelet-certificate-authority={files.certificate('ca')}",
            f"--kubelet-client-certificate={files.certificate('kubelet-client')}",
            f"--kubelet-client-key={files.key('kubelet-client')}",
            # The node's name resolves nowhere: logs, exec and port-forward go to its address.
            "--kubelet-preferred-address-types=InternalIP",
            f"--service-account-key-file={files.pki / 'service-accounts.pub'}",
            f"--service-account-signing-key-file={files.key('service-accounts')}",
            f"--service-account-issuer=https://kubernetes.default.svc.{layout.CLUSTER_DOMAIN}",
            f"--service-cluster-ip-range={layout.SERVICE_RANGE}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--anonymous-auth=false",
            "--allow-privileged=true",
            "--profiling=false",
        ),
        after=("etcd",),
        probe=_kubernetes_probe(files, f"{layout.SERVER}/readyz"),
    )


def _controller_manager(files: Layout, program: Binary) -> plan.Service:
    return plan.Service(
        name="kube-controller-manager",
        version=program.version,
        argv=(
            str(program.path),
            f"--kubeconfig={files.kubeconfig('kube-controller-manager')}",
            f"--bind-address={_LOCALHOST}",
            f"--secure-port={layout.CONTROLLER_MANAGER_PORT}",
            f"--tls-cert-file={files.certificate('kube-controller-manager')}",
            f"--tls-private-key-file={files.key('kube-controller-manager')}",
            f"--service-account-private-key-file={files.key('service-accounts')}",
            f"--root-ca-file={files.certificate('ca')}",
            f"--cluster-cidr={layout.POD_RANGE}",
            "--allocate-node-cidrs=false",
            f"--flex-volume-plugin-dir={files.volume_plugins}",
            "--use-service-account-credentials=true",
            # At the first start it makes an account and a token for each controller; the default
            # of 20 requests a second made that the longest part of it.
            "--kube-api-qps=200",
            "--kube-api-burst=300",
            "--leader-elect=false",
            "--profiling=false",
        ),
        after=("kube-apiserver",),
        probe=_kubernetes_probe(
            files, f"https://{_LOCALHOST}:{layout.CONTROLLER_MANAGER_PORT}/healthz"
        ),
    )


def _scheduler(files: Layout, program: Binary) -> plan.Service:
    return plan.Service(
        name="kube-scheduler",
        version=program.version,
        argv=(
            str(program.path),
            f"--kubeconfig={files.kubeconfig('kube-scheduler')}",
            f"--bind-address={_LOCALHOST}",
            f"--secure-port={layout.SCHEDULER_PORT}",
            f"--tls-cert-file={files.certificate('kube-scheduler')}",
            f"--tls-private-key-file={files.key('kube-scheduler')}",
            "--leader-elect=false",
            "--profiling=false",
        ),
        after=("kube-apiserver",),
        probe=_kubernetes_probe(files, f"https://{_LOCALHOST}:{layout.SCHEDULER_PORT}/healthz"),
    )


def _kubelet(files: Layout, program: Binary) -> plan.Service:
    return plan.Service(
        name="kubelet",
        version=program.version,
        argv=(
            str(program.path),
            f"--config={files.config / 'kubelet.json'}",
            f"--kubeconfig={files.kubeconfig('kubelet')}",
            f"--hostname-override={layout.NODE_NAME}",
            f"--node-ip={layout.NODE_ADDRESS}",
            f"--root-dir={files.kubelet}",
        ),
        after=("kube-apiserver", "containerd"),
        probe=plan.Probe(
            kind="http", target=f"http://{_LOCALHOST}:{layout.KUBELET_HEALTH_PORT}/healthz"
        ),
        group_ends=layout.CGROUP,
    )


def _kube_proxy(files: Layout, program: Binary) -> plan.Service:
    return plan.Service(
        name="kube-proxy",
        version=program.version,
        argv=(str(program.path), f"--config={files.config / 'kube-proxy.json'}"),
        after=("kube-apiserver",),
        probe=plan.Probe(
            kind="http", target=f"http://{_LOCALHOST}:{layout.PROXY_HEALTH_PORT}/livez"
        ),
    )


def _coredns(files: Layout, program: Binary) -> plan.Service:
    return plan.Service(
        name="coredns",
        version=program.version,
        argv=(str(program.path), "-conf", str(files.config / "Corefile")),
        after=("kube-apiserver",),
        probe=plan.Probe(
            kind="http", target=f"http://{_LOCALHOST}:{layout.COREDNS_READY_PORT}/ready"
        ),
    )


def _kube_router(files: Layout, program: Binary) -> plan.Service:
    return plan.Service(
        name="kube-router",
        version=program.version,
        argv=(
            str(program.path),
            "--run-router=false",
            "--run-firewall=true",
            "--run-service-proxy=false",
            "--run-loadbalancer=false",
            f"--kubeconfig={files.kubeconfig('kube-router')}",
            f"--hostname-override={layout.NODE_NAME}",
            f"--service-cluster-ip-range={layout.SERVICE_RANGE}",
            "--enable-ipv6=false",
            # Its health check listens on every address, and cannot be told otherwise.
            "--health-port=0",
            f"--metrics-addr={_LOCALHOST}",
            f"--metrics-port={layout.ROUTER_METRICS_PORT}",
        ),
        after=("kube-apiserver",),
        # It ends with a panic when its node is not there yet.
        starts_when=_kubernetes_probe(files, f"{layout.SERVER}/api/v1/nodes/{layout.NODE_NAME}"),
        probe=plan.Probe(
            kind="http", target=f"http://{_LOCALHOST}:{layout.ROUTER_METRICS_PORT}/metrics"
        ),
    )


def _local_path(files: Layout, program: Binary) -> plan.Service:
    return plan.Service(
        name="local-path-provisioner",
        version=program.version,
        argv=(
            str(program.path),
            "start",
            f"--kubeconfig={files.kubeconfig('local-path-provisioner')}",
            f"--config={files.config / 'local-path.json'}",
            f"--helper-image={layout.BUSYBOX_IMAGE}",
            f"--helper-pod-file={files.config / 'helper-pod.json'}",
            "--configmap-name=local-path-config",
            f"--namespace={layout.STORAGE_NAMESPACE}",
            f"--provisioner-name={layout.STORAGE_PROVISIONER}",
            "--service-account-name=local-path-provisioner",
        ),
        after=("kube-apiserver",),
    )


def _buildkitd(files: Layout, program: Binary) -> plan.Service:
    return plan.Service(
        name="buildkitd",
        version=program.version,
        argv=(
            str(program.path),
            f"--addr=unix://{files.buildkit_socket}",
            f"--root={files.buildkit}",
            f"--config={files.config / 'buildkitd.toml'}",
            "--oci-worker=false",
            "--containerd-worker=true",
            f"--containerd-worker-addr={files.containerd_socket}",
            "--containerd-worker-namespace=k8s.io",
            "--containerd-worker-snapshotter=overlayfs",
            "--containerd-worker-net=host",
        ),
        after=("containerd",),
        probe=plan.Probe(kind="unix", target=str(files.buildkit_socket)),
    )


def _kubernetes_probe(files: Layout, target: str) -> plan.Probe:
    return plan.Probe(
        kind="https",
        target=target,
        authority=files.certificate("ca"),
        certificate=files.certificate("bootstrap"),
        key=files.key("bootstrap"),
    )
