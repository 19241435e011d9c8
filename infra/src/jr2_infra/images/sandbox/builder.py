"""Whether Sandbox Images can be built for the nodes and reach them, before a build begins.

What a builder can build for is asked of the builder: BuildKit lists the platforms that it, or an
emulator that the kernel knows, can run. A builder that gives no list decides nothing.

Source: seed 003 (Rules), spec/converge.md §7.3 (Emulation preflight), ADR-0038.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

from jr2 import names
from jr2.errors import StepFailed

from ... import processes

_SECONDS: Final = 30.0
_VARIANT: Final = re.compile(r"^([a-z0-9]+/[a-z0-9]+)(?:/v\d+)?\*?$")


class Builder(Protocol):
    """Something that builds images."""

    def platforms(self) -> tuple[str, ...] | None:
        """Return the platforms that it builds for; `None` when it does not say."""


class Buildx:
    """The builder of Docker.

    Args:
        docker: the program.
    """

    def __init__(self, docker: Path) -> None:
        self._docker = docker

    def platforms(self) -> tuple[str, ...] | None:
        """Return what `docker buildx inspect` lists."""
        return _asked([self._docker, "buildx", "inspect"], buildx_platforms)


class LocalBuildKit:
    """The BuildKit of the local cluster.

    Args:
        buildctl: the program.
        socket: where buildkitd listens.
    """

    def __init__(self, buildctl: Path, socket: Path) -> None:
        self._buildctl = buildctl
        self._socket = socket

    def platforms(self) -> tuple[str, ...] | None:
        """Return what the workers of buildkitd list."""
        address = f"unix://{self._socket}"
        return _asked(
            [self._buildctl, "--addr", address, "debug", "workers", "--format", "{{json .}}"],
            buildkit_platforms,
        )


def buildx_platforms(text: str) -> tuple[str, ...] | None:
    """Read `docker buildx inspect`; a star marks a platform that a person chose for the node."""
    found: dict[str, None] = {}
    for said in text.splitlines():
        label, colon, value = said.partition(":")
        if colon and label.strip() == "Platforms":
            for word in value.split(","):
                matched = _VARIANT.match(word.strip())
                if matched:
                    found[matched[1]] = None
    return tuple(found) or None


def buildkit_platforms(text: str) -> tuple[str, ...] | None:
    """Read `buildctl debug workers` as JSON."""
    try:
        workers = json.loads(text)
        found = dict.fromkeys(
            f"{one['os']}/{one['architecture']}"
            for worker in workers
            for one in worker["platforms"]
        )
    except (ValueError, KeyError, TypeError):
        return None
    return tuple(found) or None


def check_manifest_list(platforms: Sequence[str], registry: str | None) -> StepFailed | None:
    """Return why images for several platforms have no way to the nodes, or `None`.

    Args:
        platforms: what images are needed for.
        registry: `registry` of the config.
    """
    if len(platforms) < 2 or registry is not None:
        return None
    return StepFailed(
        f"this cluster needs a {', '.join(platforms)} build, which docker buildx delivers by "
        "PUSHING a manifest list (kind load cannot carry one) — set `registry` in "
        f"{names.CONFIG_FILE}, or name a single platform with `platforms`"
    )


def check_emulation(needed: Sequence[str], targets: Sequence[str] | None) -> StepFailed | None:
    """Return why this host cannot build, or `None`.

    Args:
        needed: the platforms to build for.
        targets: what the builder builds for; `None` when it does not say.
    """
    missing = [] if targets is None else [item for item in needed if item not in targets]
    if targets is None or not missing:
        return None
    processors = ",".join(item.partition("/")[2] for item in missing)
    return StepFailed(
        f"this host cannot build for {', '.join(missing)}: a foreign architecture's RUN steps need "
        "qemu binfmt emulation, and none is registered (this builder targets "
        f"{', '.join(targets)}). Install it, then re-run:\n"
        f"  docker run --privileged --rm tonistiigi/binfmt --install {processors}"
    )


def _asked(
    argv: Sequence[str | Path], read: Callable[[str], tuple[str, ...] | None]
) -> tuple[str, ...] | None:
    try:
        done = processes.run(argv, timeout=_SECONDS)
    except (OSError, processes.TimeoutExpired):
        return None
    return read(done.stdout) if done.returncode == 0 else None
