"""What is built for Sandboxes, and what is said when it cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from jr2.walk import WalkedParts, WalkedSandbox
from jr2_infra.images.sandbox import builder, contexts

AMD, ARM = "linux/amd64", "linux/arm64"


def sandbox(image: str | None = None) -> WalkedSandbox:
    return WalkedSandbox(
        path=[], route=[], image=image, user=None, effector=False, memory="2Gi", cpu="1"
    )


def parts(*images: str | None) -> WalkedParts:
    return WalkedParts(
        sandboxes=[sandbox(image) for image in images],
        images=[image for image in images if image is not None],
        default_image=None in images,
    )


def test_folders_are_built_once_and_refs_of_a_registry_never(tmp_path: Path) -> None:
    folder = f"file://{tmp_path}/workflows/an%20image"
    found = contexts.contexts(tmp_path, [parts(folder, "r.example/a:1"), parts(folder)])
    assert found == (tmp_path / "workflows" / "an image",)


def test_the_instances_own_image_is_built_when_a_machine_needs_it_and_it_is_there(
    tmp_path: Path,
) -> None:
    assert contexts.contexts(tmp_path, [parts(None)]) == ()
    (tmp_path / "images" / "default").mkdir(parents=True)
    assert contexts.contexts(tmp_path, [parts(None)]) == ()
    (tmp_path / "images" / "default" / "Dockerfile").touch()
    assert contexts.contexts(tmp_path, [parts(None)]) == (tmp_path / "images" / "default",)
    assert contexts.contexts(tmp_path, [parts("r.example/a:1")]) == ()


def test_the_line_says_what_is_not_built(tmp_path: Path) -> None:
    assert contexts.line(tmp_path, [WalkedParts()], ()) == (
        "sandbox images: skipped (no registered Machine composes a Sandbox)"
    )
    assert contexts.line(tmp_path, [parts("r.example/a:1")], ()) == (
        "sandbox images: none to build (each is pulled from a registry)"
    )
    found = (tmp_path / "images" / "default", Path("/elsewhere"))
    assert contexts.line(tmp_path, [parts(None)], found) == (
        "sandbox images: images/default, /elsewhere not built — this version of jr2 does not "
        "build them yet"
    )


def test_two_platforms_need_a_registry() -> None:
    error = builder.check_manifest_list((AMD, ARM), None)
    assert error is not None
    assert error.printed == (
        "error: this cluster needs a linux/amd64, linux/arm64 build, which docker buildx delivers "
        "by PUSHING a manifest list (kind load cannot carry one) — set `registry` in "
        "jr2_config.py, or name a single platform with `platforms`"
    )
    assert builder.check_manifest_list((AMD, ARM), "r.example/team") is None
    assert builder.check_manifest_list((ARM,), None) is None


def test_a_platform_that_the_builder_lacks_names_the_emulator() -> None:
    error = builder.check_emulation((AMD, ARM), (AMD, "linux/386"))
    assert error is not None
    assert error.printed == (
        "error: this host cannot build for linux/arm64: a foreign architecture's RUN steps need "
        "qemu binfmt emulation, and none is registered (this builder targets linux/amd64, "
        "linux/386). Install it, then re-run:\n"
        "  docker run --privileged --rm tonistiigi/binfmt --install arm64"
    )
    assert builder.check_emulation((AMD,), (AMD,)) is None
    assert builder.check_emulation((AMD, ARM), None) is None


BUILDX = """Name:   default
Driver: docker

Nodes:
Name:      default
Endpoint:  default
Status:    running
Buildkit:  v0.28.1
Platforms: linux/amd64*, linux/amd64/v2, linux/arm/v7, linux/386
Labels:
 a: linux/riscv64
"""


def program(folder: Path, script: str) -> Path:
    file = folder / "program"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


def test_docker_is_asked_for_its_platforms(tmp_path: Path) -> None:
    (tmp_path / "said").write_text(BUILDX)
    docker = program(tmp_path, f'[ "$*" = "buildx inspect" ] && exec cat {tmp_path}/said; exit 9')
    assert builder.Buildx(docker).platforms() == (AMD, "linux/arm", "linux/386")


def test_the_buildkit_of_the_local_cluster_is_asked_for_its_platforms(tmp_path: Path) -> None:
    (tmp_path / "said").write_text(
        '[{"id": "x", "platforms": [{"architecture": "amd64", "os": "linux"},'
        ' {"architecture": "amd64", "os": "linux", "variant": "v2"},'
        ' {"architecture": "386", "os": "linux"}]}]'
    )
    buildctl = program(
        tmp_path,
        'case "$*" in "--addr unix:///s debug workers --format {{json .}}") '
        f"exec cat {tmp_path}/said;; esac; exit 9",
    )
    found = builder.LocalBuildKit(buildctl, Path("/s")).platforms()
    assert found == (AMD, "linux/386")


@pytest.mark.parametrize("script", ["exit 1", "echo nonsense", "echo '[{}]'", ":"])
def test_a_builder_that_gives_no_list_decides_nothing(tmp_path: Path, script: str) -> None:
    file = program(tmp_path, script)
    assert builder.Buildx(file).platforms() is None
    assert builder.LocalBuildKit(file, Path("/s")).platforms() is None
    assert builder.Buildx(tmp_path / "none").platforms() is None
