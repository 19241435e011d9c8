"""The settings of each process, as the files that they read. Pure: facts in, texts out.

They are written anew at each start, so a newer jr2 brings its own; only the key that Secrets are
encrypted with is kept.

Source: design §7 and local-cluster/ (the flags that are known to work).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .. import layout
from ..layout import Layout

_LOCALHOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What the settings depend on beside the layout.

    Args:
        may_lower_oom_score: whether we hold CAP_SYS_RESOURCE, which protecting a sandbox from the
            kernel's memory killer needs.
        cni_folder: where the CNI plugins are.
        runc: the program.
        shim: the program `containerd-shim-runc-v2`.
    """

    may_lower_oom_score: bool
    cni_folder: Path
    runc: Path
    shim: Path


def containerd(files: Layout, machine: Machine) -> str:
    """The settings of containerd: our own folders and socket, our image for sandboxes."""
    root = files.containerd
    restrict = "false" if machine.may_lower_oom_score else "true"
    return f"""version = 3
root = {_quote(root / "root")}
state = {_quote(root / "state")}

[grpc]
  address = {_quote(files.containerd_socket)}

[ttrpc]
  address = {_quote(root / "ttrpc.sock")}

[plugins.'io.containerd.nri.v1.nri']
  disable = true

[plugins.'io.containerd.internal.v1.opt']
  path = {_quote(root / "opt")}

[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "{layout.BUSYBOX_IMAGE}"

[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = {restrict}
  netns_mounts_under_state_dir = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = [{_quote(machine.cni_folder)}]
    conf_dir = {_quote(files.config / "cni")}
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    runtime_path = {_quote(machine.shim)}
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      SystemdCgroup = false
      BinaryName = {_quote(machine.runc)}
      Root = {_quote(root / "runc")}
"""


def cni(files: Layout) -> dict[str, Any]:
    """The network of pods: one bridge; masquerading is our own nftables table's."""
    return {
        "cniVersion": "1.0.0",
        "name": layout.NETWORK_NAME,
        "plugins": [
            {
                "type": "bridge",
                "bridge": layout.POD_DEVICE,
                "isGateway": True,
                "ipMasq": False,
                "hairpinMode": True,
                "ipam": {
                    "type": "host-local",
                    "dataDir": str(files.root / "addresses"),
                    "ranges": [[{"subnet": layout.POD_SUBNET}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
            {"type": "loopback"},
        ],
    }


def nftables() -> str:
    """Our table: what pods send to the world leaves with the machine's address.

    The first lines make the file idempotent: a table must exist to be deleted.
    """
    return f"""table ip {layout.NETWORK_NAME}
delete table ip {layout.NETWORK_NAME}
table ip {layout.NETWORK_NAME} {{
  chain postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {layout.POD_RANGE} ip daddr != {{ {layout.POD_RANGE}, 224.0.0.0/4 }} masquerade
  }}
}}
"""


def kubelet(files: Layout) -> dict[str, Any]:
    """The settings of the kubelet."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": layout.NODE_ADDRESS,
        "port": layout.KUBELET_PORT,
        "readOnlyPort": 0,
        "healthzBindAddress": _LOCALHOST,
        "healthzPort": layout.KUBELET_HEALTH_PORT,
        "failCgroupV1": False,
        "failSwapOn": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{layout.CGROUP}",
        "cgroupsPerQOS": True,
        "enforceNodeAllocatable": ["pods"],
        "makeIPTablesUtilChains": False,
        "containerRuntimeEndpoint": f"unix://{files.containerd_socket}",
        "podLogsDir": str(files.pod_logs),
        "volumePluginDir": str(files.volume_plugins),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(files.certificate("ca"))},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(files.certificate("kubelet")),
        "tlsPrivateKeyFile": str(files.key("kubelet")),
        "clusterDNS": [layout.DNS_SERVICE],
        "clusterDomain": layout.CLUSTER_DOMAIN,
        "resolvConf": "/etc/resolv.conf",
        # Images are imported, not pulled: one that was collected would not come back.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "2%",
            "imagefs.available": "2%",
        },
    }


def kube_proxy(files: Layout) -> dict[str, Any]:
    """The settings of kube-proxy."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(files.kubeconfig("kube-proxy"))},
        "mode": "nftables",
        "clusterCIDR": layout.POD_RANGE,
        "hostnameOverride": layout.NODE_NAME,
        "bindAddress": layout.NODE_ADDRESS,
        "healthzBindAddress": f"{_LOCALHOST}:{layout.PROXY_HEALTH_PORT}",
        "metricsBindAddress": f"{_LOCALHOST}:{layout.PROXY_METRICS_PORT}",
        "nodePortAddresses": [f"{layout.NODE_ADDRESS}/32"],
        "conntrack": {"maxPerCore": 0},
    }


def encryption(key: str) -> dict[str, Any]:
    """The key that Secrets are encrypted with at rest.

    Args:
        key: 32 random bytes in base64.
    """
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [
            {
                "resources": ["secrets"],
                "providers": [
                    {"secretbox": {"keys": [{"name": "key1", "secret": key}]}},
                    {"identity": {}},
                ],
            }
        ],
    }


def buildkitd(files: Layout) -> str:
    """The settings of buildkitd that have no flag."""
    return f"""[otel]
  socketPath = {_quote(files.buildkit / "otel.sock")}
"""


def corefile(files: Layout) -> str:
    """The settings of CoreDNS, which runs on the node and resolves the rest as the node does."""
    return f""".:{layout.DNS_PORT} {{
  bind {layout.NODE_ADDRESS}
  errors
  ready {_LOCALHOST}:{layout.COREDNS_READY_PORT}
  kubernetes {layout.CLUSTER_DOMAIN} in-addr.arpa ip6.arpa {{
    kubeconfig {files.kubeconfig("coredns")} {layout.CONTEXT}
    ttl 5
  }}
  forward . /etc/resolv.conf
  cache 5
}}
"""


def component_kubeconfig(files: Layout, user: str) -> dict[str, Any]:
    """The kubeconfig of one of the cluster's processes; it names files instead of holding them."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": layout.CONTEXT,
                "cluster": {
                    "server": layout.SERVER,
                    "certificate-authority": str(files.certificate("ca")),
                },
            }
        ],
        "users": [
            {
                "name": user,
                "user": {
                    "client-certificate": str(files.certificate(user)),
                    "client-key": str(files.key(user)),
                },
            }
        ],
        "contexts": [
            {"name": layout.CONTEXT, "context": {"cluster": layout.CONTEXT, "user": user}}
        ],
        "current-context": layout.CONTEXT,
    }


def storage(files: Layout) -> dict[str, str]:
    """The ConfigMap data of local-path-provisioner: where volumes lie, and how one is made."""
    helper = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "helper-pod"},
        "spec": {
            "priorityClassName": "system-node-critical",
            "containers": [
                {
                    "name": "helper-pod",
                    "image": layout.BUSYBOX_IMAGE,
                    "imagePullPolicy": "IfNotPresent",
                }
            ],
        },
    }
    paths = [{"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": [str(files.volumes)]}]
    return {
        "config.json": json.dumps({"nodePathMap": paths}),
        "setup": '#!/bin/sh\nset -eu\nmkdir -m 0777 -p "$VOL_DIR"\n',
        "teardown": '#!/bin/sh\nset -eu\nrm -rf "$VOL_DIR"\n',
        "helperPod.yaml": json.dumps(helper),
    }


def _quote(path: Path) -> str:
    """A path as a TOML string; TOML's escapes are those of JSON."""
    return json.dumps(str(path))
