"""What the cluster needs of the machine, and what is read of it.

Source: design §7 and local-cluster/.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from jr2.errors import Refusal, StepFailed

from ... import tools
from ...tools import catalogue, lookup
from ..definition import services, settings
from . import cgroups

_CAP_SYS_RESOURCE: Final = 24
_NEEDED_PACKAGES: Final = (
    "containernetworking-plugins",
    "iproute2",
    "iptables",
    "ipset",
    "nftables",
    "conntrack",
    "busybox-static",
)


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


def find_programs() -> dict[str, services.Binary]:
    """Find the programs of the cluster.

    Raises:
        StepFailed: some are missing; the text names them and the command that installs them.
    """
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
    return {
        item.program.name: services.Binary(item.path, item.version)
        for item in found
        if item.path is not None
    }


def look(
    programs: Mapping[str, services.Binary],
) -> tuple[settings.Machine, cgroups.Hierarchies]:
    """Read what the settings depend on, and where the control groups are.

    Args:
        programs: what `find_programs` gave.

    Raises:
        Refusal: this machine has no control groups that pods can be put in.
    """
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
            runc=programs["runc"].path,
            shim=programs["containerd-shim-runc-v2"].path,
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
