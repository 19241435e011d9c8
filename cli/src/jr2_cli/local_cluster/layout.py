"""Where the local cluster keeps its files, and the names and addresses that it uses.

Everything lies below one folder that only root can enter. The node's address belongs to a bridge
device of our own, so nothing listens on an interface that the machine is reached by.

Source: design §7.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jr2 import names

STATE_FOLDER: Final = Path("/var/lib/jr2/cluster")

CONTEXT: Final = names.LOCAL_CONTEXT
"""Name of the context, the cluster and the user in a kubeconfig."""
NODE_NAME: Final = names.LOCAL_CONTEXT
NETWORK_NAME: Final = names.LOCAL_CONTEXT
"""Name of the CNI network and of our nftables table."""
NODE_DEVICE: Final = "jr2node"
POD_DEVICE: Final = "jr2pods"
CGROUP: Final = names.LOCAL_CONTEXT
"""The cgroup below which the kubelet puts all pods."""

NODE_ADDRESS: Final = "10.245.255.1"
POD_SUBNET: Final = "10.244.0.0/24"
POD_RANGE: Final = "10.244.0.0/16"
SERVICE_RANGE: Final = "10.96.0.0/16"
KUBERNETES_SERVICE: Final = "10.96.0.1"
DNS_SERVICE: Final = "10.96.0.10"
CLUSTER_DOMAIN: Final = "cluster.local"

API_PORT: Final = 6443
KUBELET_PORT: Final = 10250
DNS_PORT: Final = 1053
SERVER: Final = f"https://{NODE_ADDRESS}:{API_PORT}"

# On 127.0.0.1 only.
ETCD_PORT: Final = 22379
ETCD_PEER_PORT: Final = 22380
CONTROLLER_MANAGER_PORT: Final = 10257
SCHEDULER_PORT: Final = 10259
KUBELET_HEALTH_PORT: Final = 10248
PROXY_HEALTH_PORT: Final = 10256
PROXY_METRICS_PORT: Final = 10249
COREDNS_READY_PORT: Final = 18181
ROUTER_METRICS_PORT: Final = 20241

BUSYBOX_IMAGE: Final = "jr2.local/busybox:1"
"""Our image of busybox: a pod's sandbox, and the helper of the volumes."""
STORAGE_CLASS: Final = "local-path"
STORAGE_PROVISIONER: Final = "jr2.dev/local-path"
STORAGE_NAMESPACE: Final = "local-path-storage"


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of a cluster.

    Args:
        root: the folder that holds all of them.
    """

    root: Path = STATE_FOLDER

    @property
    def pki(self) -> Path:
        """Certificates and keys."""
        return self.root / "pki"

    @property
    def config(self) -> Path:
        """Generated settings of the processes; written anew at each start."""
        return self.root / "config"

    @property
    def logs(self) -> Path:
        """One log for each process."""
        return self.root / "log"

    @property
    def pod_logs(self) -> Path:
        """Logs of containers, where the kubelet keeps them."""
        return self.root / "pod-logs"

    @property
    def etcd(self) -> Path:
        """The data of etcd."""
        return self.root / "etcd"

    @property
    def kubelet(self) -> Path:
        """The kubelet's own folder."""
        return self.root / "kubelet"

    @property
    def volume_plugins(self) -> Path:
        """Where kubelet and controllers look for volume plugins; there are none."""
        return self.root / "volume-plugins"

    @property
    def containerd(self) -> Path:
        """The folder of containerd: images, containers and their state."""
        return self.root / "containerd"

    @property
    def containerd_socket(self) -> Path:
        """The socket of containerd."""
        return self.root / "containerd.sock"

    @property
    def buildkit(self) -> Path:
        """The folder of buildkitd."""
        return self.root / "buildkit"

    @property
    def buildkit_socket(self) -> Path:
        """The socket of buildkitd."""
        return self.root / "buildkitd.sock"

    @property
    def volumes(self) -> Path:
        """Where volumes of the StorageClass lie."""
        return self.root / "volumes"

    @property
    def encryption_config(self) -> Path:
        """The key that Secrets are encrypted with at rest; it lives as long as the data."""
        return self.pki / "encryption.yaml"

    @property
    def plan(self) -> Path:
        """What the supervisor runs."""
        return self.config / "supervisor.json"

    @property
    def supervisor_lock(self) -> Path:
        """Locked by the supervisor for as long as it lives."""
        return self.root / "supervisor.lock"

    @property
    def supervisor_state(self) -> Path:
        """What the supervisor says about its processes."""
        return self.root / "supervisor.json"

    @property
    def record(self) -> Path:
        """What `create` noted: versions, and the kubeconfigs that hold the context."""
        return self.root / "cluster.json"

    @property
    def boot_note(self) -> Path:
        """The boot in which the cluster was last started."""
        return self.root / "boot-id"

    @property
    def before(self) -> Path:
        """What the machine was like before it had a cluster."""
        return self.root / "before.json"

    def kubeconfig(self, user: str) -> Path:
        """The kubeconfig of one of the cluster's own users."""
        return self.config / f"{user}.kubeconfig"

    def certificate(self, name: str) -> Path:
        """A certificate."""
        return self.pki / f"{name}.crt"

    def key(self, name: str) -> Path:
        """The key of a certificate."""
        return self.pki / f"{name}.key"
