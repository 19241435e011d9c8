"""Stage the Assembly: gather its entries, check them, and give them one hash.

The same folder and lock give the same hash on every machine: no clock, user, umask, checkout path
or listing order reaches it. Staging changes nothing outside the Instance's `.jr2/`.

Source: seed 000 (The Assembly), design §5.5, spec/converge.md §8.
"""

from __future__ import annotations

import json
import platform as host
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from jr2 import names
from jr2.errors import StepFailed
from jr2.tree_hash import Entry, tree_hash
from jr2.wire import AssemblyManifest

from ..facts import kit
from ..facts.instance import InstanceFacts
from . import seal
from .dependencies import DependencyFolder, package_entries, required_by
from .kit_closure import kit_closure
from .lockfile import find_lockfile
from .own_files import excluded_globs, own_entries

HASH_SALT: Final = "assembly"
ANY_PLATFORM: Final = "any"
"""What the manifest says when no file is native."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedAssembly:
    """An Assembly that was checked and has its hash.

    Args:
        hash: 64 hex digits.
        manifest: what stands in `assembly.json`.
        parts: every entry, `assembly.json` too.
    """

    hash: str
    manifest: AssemblyManifest
    parts: tuple[Entry, ...]

    @property
    def short(self) -> str:
        """The hash as it is shown."""
        return self.hash[: names.SHORT_HASH]


def image_platform(platforms: Iterable[str]) -> str:
    """Return the platform that native wheels are chosen for.

    Args:
        platforms: the config's `platforms`; with none that the Kit knows it is the machine's own
            processor, since the cluster is not read, and `platforms` is not judged, before the
            Assembly is made.
    """
    for platform in platforms:
        if platform in names.KIT_PLATFORMS:
            return platform
    return "linux/arm64" if host.machine() in {"arm64", "aarch64"} else "linux/amd64"


def _natives(parts: Iterable[Entry]) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in parts:
        if entry.kind == "link":
            continue
        if isinstance(entry.content, bytes):
            head = entry.content[:20]
        else:
            with entry.content.open("rb") as file:
                head = file.read(20)
        platform = seal.native_platform(head)
        if platform is not None:
            found[entry.path] = platform
    return found


def _below(parts: Iterable[Entry], folder: str) -> list[str]:
    return [p.path.removeprefix(f"{folder}/") for p in parts if p.path.startswith(f"{folder}/")]


def fits(platform: str, nodes: Sequence[str]) -> bool:
    """Whether an Assembly for `platform` can be loaded on nodes of these platforms."""
    return platform == ANY_PLATFORM or platform in nodes


def stage(instance: InstanceFacts, *, platform: str | None = None) -> StagedAssembly:
    """Stage and seal the Assembly of an Instance.

    Args:
        instance: what `jr2 check` found.
        platform: what native wheels are chosen for, once the nodes are known; before that the
            config says it, or the machine's own processor.

    Raises:
        StepFailed: the rules on lockfiles, second copies, symlinks, staging paths and binaries.
        Refusal: a Workflow of the folder is not in the Assembly.
    """
    root = instance.root
    platform = platform or image_platform(instance.config.platforms or ())
    lock = find_lockfile(root)
    if instance.kit_version != names.KIT_VERSION:
        raise StepFailed(
            f"cannot stage the Assembly: it is for Kit version {instance.kit_version} and this jr2"
            f" is {names.KIT_VERSION} (ADR-0056)"
        )
    closure = kit_closure(instance.checkout)
    dependencies = DependencyFolder(root, lock, platform, closure)
    folder = dependencies.prepare()
    own = own_entries(root, excluded_globs(root, kit.read_pyproject(root)))
    packages = list(package_entries(folder))
    parts = [*own, *packages]

    workflows = [workflow.name for workflow in instance.workflows]
    natives = _natives(parts)
    for problem in (
        seal.second_copies(
            required_by(folder),
            _below(own, names.ASSEMBLY_INSTANCE),
            _below(packages, names.ASSEMBLY_PACKAGES),
            closure,
        ),
        seal.escaping_link(parts),
        # Only a build on this machine can write its path: locked wheels come as they are.
        seal.staging_path(packages, str(dependencies.cache)),
        seal.missing_workflows(workflows, (entry.path for entry in parts)),
        seal.wrong_binaries(natives, platform, names.IMAGE_PYTHON),
        seal.too_much(parts),
    ):
        if problem is not None:
            raise problem

    manifest = AssemblyManifest(
        kit_version=names.KIT_VERSION,
        instance=instance.name,
        workflows=sorted(workflows),
        platform=platform if natives else ANY_PLATFORM,
        python="{}.{}".format(*names.IMAGE_PYTHON),
    )
    text = json.dumps(manifest.model_dump(by_alias=True), sort_keys=True, indent=2) + "\n"
    parts.append(Entry(names.ASSEMBLY_MANIFEST, "file", text.encode()))
    parts.sort(key=lambda entry: entry.path.encode())
    return StagedAssembly(
        hash=tree_hash(parts, salt=HASH_SALT), manifest=manifest, parts=tuple(parts)
    )
