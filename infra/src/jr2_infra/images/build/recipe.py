"""What each Kit image holds, as data.

The lower layers are shared: Debian's Python and what it needs, the closure of the distribution
`jr2`, the packages of the services, and our own sources with the launchers. An edit of our sources
thus renews the smallest layer only, and where it is one of the Kit, the machine code of its kernel
in the image of the Orchestrator (`compiled`). The Harness image has two more: what an Agent finds in the
stock Sandbox Image, and the tree that runs in any image (`tree`).

Source: design §6.1, §6.2 and §4.4 (a worker never sees the packages of the services).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from jr2 import names

PYTHON_MINOR: Final = names.IMAGE_PYTHON
PYTHON_VERSION: Final = ".".join(map(str, PYTHON_MINOR))
PYTHON: Final = "/usr/bin/python3"
STANDARD_LIBRARY: Final = f"/usr/lib/python{PYTHON_VERSION}"
CERTIFICATES: Final = "etc/ssl/certs/ca-certificates.crt"
"""The bundle of certificate authorities, below the root of each image."""

ENVIRONMENT: Final = (
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG=C.UTF-8",
    "PYTHONDONTWRITEBYTECODE=1",
    "PYTHONUNBUFFERED=1",
)

PLATFORMS: Final = {
    "amd64": "x86_64-manylinux_2_36",
    "arm64": "aarch64-manylinux_2_36",
}
"""OCI architecture → what uv installs wheels for; Debian 12 has glibc 2.36."""

HARNESS_HOME: Final = "/home/jr2"
USERS: Final = {
    names.IMAGE_ORCHESTRATOR: (names.ORCHESTRATOR_UID, "/tmp"),  # noqa: S108 - in the image
    "jr2-worker": (names.WORKER_UID, "/tmp"),  # noqa: S108
    names.IMAGE_OPERATOR: (names.OPERATOR_UID, "/tmp"),  # noqa: S108
    "jr2": (names.HARNESS_UID, HARNESS_HOME),
}
"""User → its uid, which is its gid too, and its home."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendored:
    """A file of somebody else's package that lies among our sources.

    Args:
        name: of its package of npm.
        version: of that package.
        file: its path in `jr2_runtime`.
        sha256: of the file, hex.
        licence: as SPDX writes it.
    """

    name: str
    version: str
    file: str
    sha256: str
    licence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KitImage:
    """One Kit image.

    Args:
        name: its repository below the Kit's home.
        title: a line for people.
        debian: the sets of Debian packages that its layers are made of, the lowest first.
        has_tree: whether it carries the tree that runs in any image.
        is_compiled: whether it carries machine code of the Kit's kernel (`compiled`).
        requirements: the file in `requirements/` with its pinned packages, without `.txt`.
        python: the interpreter of its launchers.
        programs: a launcher's path and the module whose `main` it calls; the first is the
            entrypoint, and with none it is the interpreter.
        leaves_out: folders of `jr2_runtime` that it does not run.
        uid: the numeric user; a pod names its own, this one serves who runs the image by hand.
        limit: bytes that its layers may hold together.
        vendored: files among our sources that are not ours.
    """

    name: str
    title: str
    debian: tuple[str, ...] = ("base",)
    has_tree: bool = False
    is_compiled: bool = False
    requirements: str
    python: str = PYTHON
    programs: tuple[tuple[str, str], ...]
    leaves_out: frozenset[str]
    uid: int
    limit: int = 250 * 2**20
    vendored: tuple[Vendored, ...] = ()

    @property
    def lists(self) -> tuple[str, ...]:
        """The sets of Debian packages that decide its content, those of the build included."""
        tools = ("tools",) if self.has_tree else ()
        compiler = ("compiler",) if self.is_compiled else ()
        return (*self.debian, *tools, *compiler)

    @property
    def pins(self) -> tuple[str, ...]:
        """The files in `requirements/` that decide its content, without `.txt`."""
        compiler = ("compiler",) if self.is_compiled else ()
        return ("kit", self.requirements, *compiler)


ELK: Final = Vendored(
    name="elkjs",
    version="0.12.1",
    file="console/static/elk-worker.min.js",
    sha256="dca3a19d9ec37f5634bf5876b4ebd2455c3f43f0d32570136c13c13edaba9bfb",
    licence="EPL-2.0",
)
"""Lays out the Console's picture (ADR-0113)."""
ORCHESTRATOR: Final = KitImage(
    name=names.IMAGE_ORCHESTRATOR,
    title="The Orchestrator of a jr2 Instance, and the worker that runs its Workflows",
    is_compiled=True,
    requirements="orchestrator",
    programs=(
        (names.LAUNCHER_ORCHESTRATOR, "jr2_runtime.orchestrator"),
        (names.LAUNCHER_WORKER, "jr2_runtime.worker"),
    ),
    leaves_out=frozenset({"operator", "repo_cache", "harness", "custodian", "effector"}),
    uid=names.ORCHESTRATOR_UID,
    vendored=(ELK,),
)
OPERATOR: Final = KitImage(
    name=names.IMAGE_OPERATOR,
    title="The operator that all jr2 Instances of a cluster share, and the Repo cache of each",
    requirements="operator",
    programs=(
        (names.LAUNCHER_OPERATOR, "jr2_runtime.operator"),
        (names.LAUNCHER_REPO_CACHE, "jr2_runtime.repo_cache"),
    ),
    leaves_out=frozenset({"orchestrator", "worker", "console", "harness", "custodian", "effector"}),
    uid=names.OPERATOR_UID,
)
HARNESS: Final = KitImage(
    name=names.IMAGE_HARNESS,
    title="The Harness of jr2, for any image at /opt/jr2, and the stock Sandbox Image",
    debian=("base", "harness"),
    has_tree=True,
    requirements="harness",
    python=names.TREE_PYTHON,
    programs=(
        (names.LAUNCHER_HARNESS, "jr2_runtime.harness"),
        (names.LAUNCHER_EFFECTOR, "jr2_runtime.effector"),
    ),
    leaves_out=frozenset(
        {"orchestrator", "worker", "operator", "repo_cache", "console", "cluster"}
    ),
    uid=names.HARNESS_UID,
    limit=400 * 2**20,
)
KIT_IMAGES: Final = (ORCHESTRATOR, OPERATOR, HARNESS)

IMPORT_PATH: Final = f"""\
# The import path is the standard library, the Kit and the services, and nothing else.
import sys

sys.path += ["{names.KIT_PATH}", "{names.SERVICES_PATH}"]
"""

LAUNCHER: Final = f"""#!{{python}} -ISB
{IMPORT_PATH}
from {{module}} import main

sys.exit(main())
"""
"""A launcher's text; `-I` reads no environment, `-S` no site folder, and `-B` writes no cache."""
