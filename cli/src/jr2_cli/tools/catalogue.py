"""Which programs jr2 needs beside Python, at which version, and how each is made.

One typed table. A `Module` is a folder with a committed `go.mod` and `go.sum` from which one or
more programs are built together, so that what they share is compiled once. A `Program` says which
package of its module it is, and how a copy that somebody else installed tells its version. A
`Package` is what the operating system must bring.

Source: design §7; the versions are the ones that were run together (ADR-0105).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from . import versions
from .official.table import Release

SYSTEM_PATHS: Final = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
)
"""Where the programs of Debian lie; `PATH` of a person without root often lacks the `sbin`s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """How a program tells its version.

    Args:
        arguments: what it is started with; it must end by itself within seconds.
        pattern: a regular expression whose first group is the version.
    """

    arguments: tuple[str, ...]
    pattern: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A folder below `modules/` from which programs are built.

    Args:
        name: the folder's name.
        folder: where it lies when it is not one of those that the command ships.
        tags: build tags.
        cgo: whether the C compiler takes part.
        embeds: files of a dependency that are copied beside `main.go` before the build:
            (module path, path below it).
    """

    name: str
    folder: Path | None = None
    tags: tuple[str, ...] = ()
    cgo: bool = False
    embeds: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program.

    Args:
        name: the name of the binary.
        version: the pinned version, without a leading `v`; it is a folder of the cache.
        module: what it is built from.
        package: the Go package of its `main`.
        link: values that the linker writes: (symbol, value).
        probe: how a copy on PATH tells its version; `None` when it cannot be asked, and then a
            copy on PATH is never used.
        accepts: which versions of a copy on PATH will do.
        release: where its project publishes it; `None` when it publishes no binary.
    """

    name: str
    version: str
    module: Module
    package: str
    link: tuple[tuple[str, str], ...] = ()
    probe: Probe | None = None
    accepts: versions.Range = field(kw_only=True)
    release: Release | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """What the operating system must bring.

    Args:
        name: the name of the package on Debian and Ubuntu.
        programs: programs that show that it is there.
        files: files of which one shows that it is there, when it brings no program.
        use: what needs it, for a message.
        static: whether the first program must be linked statically.
    """

    name: str
    programs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    use: str
    static: bool = False


def _exactly(version: str) -> versions.Range:
    return versions.Range(at_least=version, below=versions.next_patch(version))


_PULUMI = Module(name="pulumi")
_PULUMI_KUBERNETES = Module(
    name="pulumi-kubernetes",
    embeds=(
        (
            "github.com/pulumi/pulumi-kubernetes/provider/v4",
            "cmd/pulumi-resource-kubernetes/schema.json",
        ),
        (
            "github.com/pulumi/pulumi-kubernetes/provider/v4",
            "cmd/pulumi-resource-kubernetes/terraform-mapping.json",
        ),
    ),
)
_KUBERNETES = Module(name="kubernetes")
_CONTAINERD = Module(name="containerd", tags=("no_btrfs", "no_zfs"))
_ETCD = Module(name="etcd")
_COREDNS = Module(name="coredns")
_BUILDKIT = Module(name="buildkit")
_KUBE_ROUTER = Module(name="kube-router")
_LOCAL_PATH = Module(name="local-path-provisioner")
_RUNC = Module(name="runc", tags=("seccomp",), cgo=True)

KUBERNETES_VERSION: Final = "1.36.3"
_KUBERNETES_LINK = (
    ("k8s.io/component-base/version.gitVersion", f"v{KUBERNETES_VERSION}"),
    ("k8s.io/component-base/version.gitMajor", "1"),
    ("k8s.io/component-base/version.gitMinor", "36"),
    ("k8s.io/client-go/pkg/version.gitVersion", f"v{KUBERNETES_VERSION}"),
    ("k8s.io/client-go/pkg/version.gitMajor", "1"),
    ("k8s.io/client-go/pkg/version.gitMinor", "36"),
)
_SAME_MINOR = versions.Range(at_least="1.36.0", below="1.37.0")


def _github(project: str, path: str, member: str | None, **spells: str) -> Release:
    """A file that a project publishes beside a tag of its repository."""
    return Release(
        asset=project.rpartition("/")[2],
        address=f"https://github.com/{project}/releases/download/v{{version}}/{path}",
        member=member,
        spells=tuple(spells.items()),
    )


def _kubernetes_release(name: str) -> Release:
    return Release(
        asset=name, address=f"https://dl.k8s.io/release/v{{version}}/bin/{{os}}/{{arch}}/{name}"
    )


def _kubernetes(name: str) -> Program:
    return Program(
        name=name,
        version=KUBERNETES_VERSION,
        module=_KUBERNETES,
        package=f"k8s.io/kubernetes/cmd/{name}",
        link=_KUBERNETES_LINK,
        probe=Probe(arguments=("--version",), pattern=r"Kubernetes v(\S+)"),
        accepts=_SAME_MINOR,
        release=_kubernetes_release(name),
    )


def _containerd(name: str, probe: Probe) -> Program:
    return Program(
        name=name,
        version="2.4.2",
        module=_CONTAINERD,
        package=f"github.com/containerd/containerd/v2/cmd/{name}",
        probe=probe,
        accepts=versions.Range(at_least="2.2.0", below="3"),
        # The other archive needs the libc of the machine that it was made on.
        release=_github(
            "containerd/containerd",
            "containerd-static-{version}-{os}-{arch}.tar.gz",
            f"bin/{name}",
        ),
    )


def _buildkit(name: str) -> Program:
    return Program(
        name=name,
        version="0.34.2",
        module=_BUILDKIT,
        package=f"github.com/moby/buildkit/cmd/{name}",
        link=(("github.com/moby/buildkit/version.Version", "v0.34.2"),),
        probe=Probe(arguments=("--version",), pattern=r" v(\d\S*)"),
        accepts=versions.Range(at_least="0.27.0", below="1"),
        release=_github("moby/buildkit", "buildkit-v{version}.{os}-{arch}.tar.gz", f"bin/{name}"),
    )


PROGRAMS: Final[tuple[Program, ...]] = (
    Program(
        name="pulumi",
        version="3.274.1",
        module=_PULUMI,
        package="github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
        # Without a version the Automation API refuses the engine.
        link=(("github.com/pulumi/pulumi/sdk/v3/go/common/version.Version", "v3.274.1"),),
        probe=Probe(arguments=("version",), pattern=r"^v(\S+)"),
        accepts=versions.Range(at_least="3.274.0", below="4"),
        release=_github(
            "pulumi/pulumi", "pulumi-v{version}-{os}-{arch}.tar.gz", "pulumi/pulumi", amd64="x64"
        ),
    ),
    Program(
        name="pulumi-resource-kubernetes",
        version="4.34.2",
        module=_PULUMI_KUBERNETES,
        package=".",
        # The engine asks for the plugin of exactly the version that the Python SDK has.
        link=(("github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version.Version", "4.34.2"),),
        accepts=_exactly("4.34.2"),
        release=_github(
            "pulumi/pulumi-kubernetes",
            "pulumi-resource-kubernetes-v{version}-{os}-{arch}.tar.gz",
            "pulumi-resource-kubernetes",
        ),
    ),
    _kubernetes("kube-apiserver"),
    _kubernetes("kube-controller-manager"),
    _kubernetes("kube-scheduler"),
    _kubernetes("kubelet"),
    _kubernetes("kube-proxy"),
    Program(
        name="kubectl",
        version=KUBERNETES_VERSION,
        module=_KUBERNETES,
        package="k8s.io/kubernetes/cmd/kubectl",
        link=_KUBERNETES_LINK,
        probe=Probe(arguments=("version", "--client"), pattern=r"v(\d+\.\d+\.[^\s\",]+)"),
        # kubectl promises one minor version either way; 1.35 is the oldest cluster.
        accepts=versions.Range(at_least="1.35.0", below="1.38.0"),
        release=_kubernetes_release("kubectl"),
    ),
    _containerd("containerd", Probe(arguments=("--version",), pattern=r" v?(\d\S*)")),
    _containerd(
        "containerd-shim-runc-v2", Probe(arguments=("-v",), pattern=r"Version:\s*v?(\d\S*)")
    ),
    _containerd("ctr", Probe(arguments=("--version",), pattern=r" v?(\d\S*)")),
    Program(
        name="etcd",
        version="3.7.3",
        module=_ETCD,
        package="go.etcd.io/etcd/server/v3",
        probe=Probe(arguments=("--version",), pattern=r"etcd Version: (\S+)"),
        accepts=versions.Range(at_least="3.6.0", below="3.8.0"),
        release=_github(
            "etcd-io/etcd",
            "etcd-v{version}-{os}-{arch}.tar.gz",
            "etcd-v{version}-{os}-{arch}/etcd",
        ),
    ),
    Program(
        name="coredns",
        version="1.15.0",
        module=_COREDNS,
        package="github.com/coredns/coredns",
        probe=Probe(arguments=("-version",), pattern=r"CoreDNS-(\S+)"),
        accepts=versions.Range(at_least="1.12.0", below="2"),
        release=_github("coredns/coredns", "coredns_{version}_{os}_{arch}.tgz", "coredns"),
    ),
    _buildkit("buildkitd"),
    _buildkit("buildctl"),
    Program(
        name="kube-router",
        version="2.1.0",
        module=_KUBE_ROUTER,
        package="github.com/cloudnativelabs/kube-router/v2/cmd/kube-router",
        link=(("github.com/cloudnativelabs/kube-router/v2/pkg/version.Version", "v2.1.0"),),
        probe=Probe(arguments=("--version",), pattern=r"version v(\d\S*?),?\s"),
        accepts=_exactly("2.1.0"),
        release=_github(
            "cloudnativelabs/kube-router", "kube-router_{version}_{os}_{arch}.tar.gz", "kube-router"
        ),
    ),
    Program(
        name="local-path-provisioner",
        version="0.0.30",
        module=_LOCAL_PATH,
        package="github.com/rancher/local-path-provisioner",
        link=(("main.VERSION", "v0.0.30"),),
        probe=Probe(arguments=("--version",), pattern=r"version v(\d\S*)"),
        accepts=versions.Range(at_least="0.0.30", below="0.1"),
    ),
    Program(
        name="runc",
        version="1.4.3",
        module=_RUNC,
        package="github.com/opencontainers/runc",
        probe=Probe(arguments=("--version",), pattern=r"runc version (\S+)"),
        # 1.1 hides why a sandbox dies (its message names only the exit code).
        accepts=versions.Range(at_least="1.3.0", below="2"),
        release=_github("opencontainers/runc", "runc.{arch}", None),
    ),
)
"""Every program, in the order of the build: those of one module stand together."""

BY_NAME: Final = {program.name: program for program in PROGRAMS}

PACKAGES: Final[tuple[Package, ...]] = (
    Package(
        name="containernetworking-plugins",
        files=("/usr/lib/cni/bridge", "/opt/cni/bin/bridge"),
        use="the network of pods",
    ),
    Package(name="iproute2", programs=("ip",), use="the address of the node"),
    Package(name="iptables", programs=("iptables", "iptables-save"), use="NetworkPolicies"),
    Package(name="ipset", programs=("ipset",), use="NetworkPolicies"),
    Package(name="nftables", programs=("nft",), use="Services"),
    Package(name="conntrack", programs=("conntrack",), use="Services"),
    Package(
        name="busybox-static",
        programs=("busybox",),
        static=True,
        use="the image that holds a pod's sandbox",
    ),
    Package(name="gcc", programs=("gcc",), use="the build of runc"),
    Package(name="libc6-dev", files=("/usr/include/stdio.h",), use="the build of runc"),
    Package(name="pkg-config", programs=("pkg-config",), use="the build of runc"),
    Package(name="libseccomp-dev", files=("/usr/include/seccomp.h",), use="the build of runc"),
)
"""What is installed with `apt-get` on Debian and Ubuntu."""

CNI_FOLDERS: Final = ("/usr/lib/cni", "/opt/cni/bin")
"""Where distributions put the CNI plugins."""


def chosen(names: tuple[str, ...]) -> tuple[Program, ...]:
    """Pick programs by name, all of them when no name is given, in the order of the table.

    Raises:
        KeyError: with the first name that is not in the table.
    """
    for name in names:
        if name not in BY_NAME:
            raise KeyError(name)
    return tuple(p for p in PROGRAMS if not names or p.name in names)
