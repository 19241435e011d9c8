"""What each Kit image holds, as data.

Four layers, the lower ones shared: Debian's Python and what it needs, the closure of the
distribution `jr2`, the packages of the services, and our own sources with the launchers. An edit of
our sources thus renews the smallest layer only.

Source: design §6.1 and §4.4 (a worker never sees the packages of the services).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from jr2 import names

DEBIAN_SUITE: Final = "bookworm"
DEBIAN_PACKAGES: Final = ("python3", "ca-certificates", "libc-bin", "tzdata")
"""What is asked for; Debian's own dependencies come with it, recommended packages do not."""

LEFT_OUT: Final = (
    "/usr/share/bash-completion/*",
    "/usr/share/bug/*",
    "/usr/share/debconf/*",
    "/usr/share/doc/*",
    "/usr/share/doc-base/*",
    "/usr/share/info/*",
    "/usr/share/lintian/*",
    "/usr/share/locale/*",
    "/usr/share/man/*",
    "/usr/share/perl5/*",
    "/usr/share/pixmaps/*",
    "/usr/share/applications/*",
    "/usr/share/zoneinfo/right/*",
    "/usr/lib/*/gconv/*",
    "/usr/lib/python3.11/test/*",
    "/etc/cron.*",
    "/etc/logrotate.d/*",
)
"""Paths of Debian packages that a service never reads."""

PYTHON: Final = "/usr/bin/python3"
PYTHON_VERSION: Final = "3.11"
STANDARD_LIBRARY: Final = "/usr/lib/python3.11"

ENVIRONMENT: Final = (
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG=C.UTF-8",
    "PYTHONDONTWRITEBYTECODE=1",
    "PYTHONUNBUFFERED=1",
)

UNPACKED_LIMIT: Final = 250 * 2**20
"""Bytes that a Kit image may hold, its layers together."""

PLATFORMS: Final = {
    "amd64": "x86_64-manylinux_2_36",
    "arm64": "aarch64-manylinux_2_36",
}
"""OCI architecture → what uv installs wheels for; Debian 12 has glibc 2.36."""

USERS: Final = {
    names.IMAGE_ORCHESTRATOR: names.ORCHESTRATOR_UID,
    "jr2-worker": names.WORKER_UID,
    names.IMAGE_OPERATOR: names.OPERATOR_UID,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KitImage:
    """One Kit image.

    Args:
        name: its repository below the Kit's home.
        title: a line for people.
        requirements: the file in `requirements/` with its pinned packages, without `.txt`.
        programs: a launcher's path and the module whose `main` it calls; the first is the
            entrypoint.
        leaves_out: folders of `jr2_runtime` that it does not run.
        uid: the numeric user; a pod names its own, this one serves who runs the image by hand.
    """

    name: str
    title: str
    requirements: str
    programs: tuple[tuple[str, str], ...]
    leaves_out: frozenset[str]
    uid: int


ORCHESTRATOR: Final = KitImage(
    name=names.IMAGE_ORCHESTRATOR,
    title="The Orchestrator of a jr2 Instance, and the worker that runs its Workflows",
    requirements="orchestrator",
    programs=(
        (names.LAUNCHER_ORCHESTRATOR, "jr2_runtime.orchestrator"),
        (names.LAUNCHER_WORKER, "jr2_runtime.worker"),
    ),
    leaves_out=frozenset({"operator", "repo_cache", "harness", "custodian", "effector"}),
    uid=names.ORCHESTRATOR_UID,
)
OPERATOR: Final = KitImage(
    name=names.IMAGE_OPERATOR,
    title="The operator that all jr2 Instances of a cluster share",
    requirements="operator",
    programs=((names.LAUNCHER_OPERATOR, "jr2_runtime.operator"),),
    leaves_out=frozenset({"orchestrator", "worker", "console", "harness", "custodian", "effector"}),
    uid=names.OPERATOR_UID,
)
KIT_IMAGES: Final = (ORCHESTRATOR, OPERATOR)

LAUNCHER: Final = f"""#!{PYTHON} -ISB
# The import path is the standard library, the Kit and the services, and nothing else.
import sys

sys.path += ["{names.KIT_PATH}", "{names.SERVICES_PATH}"]

from {{module}} import main

sys.exit(main())
"""
"""A launcher's text; `-I` reads no environment, `-S` no site folder, and `-B` writes no cache."""
