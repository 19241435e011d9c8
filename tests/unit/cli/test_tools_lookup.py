"""Programs are found on PATH when their version will do, and else in the cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jr2.errors import StepFailed
from jr2_cli import tools
from jr2_cli.tools import catalogue, lookup, versions

KUBECTL = catalogue.BY_NAME["kubectl"]
PLUGIN = catalogue.BY_NAME["pulumi-resource-kubernetes"]


def write_program(folder: Path, name: str, said: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{said}\nEND\n")
    path.chmod(0o755)
    return path


def put_in_cache(cache_home: Path, program: catalogue.Program) -> Path:
    path = lookup.cached_binary(program, cache_home / "jr2" / "tools")
    path.parent.mkdir(parents=True)
    path.write_text("")
    path.chmod(0o755)
    return path


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
        "HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }


@pytest.mark.parametrize(
    ("name", "said", "version"),
    [
        ("pulumi", "v3.274.1", "3.274.1"),
        ("kube-apiserver", "Kubernetes v1.36.3", "1.36.3"),
        ("kubectl", "Client Version: v1.36.3\nKustomize Version: v5.8.1", "1.36.3"),
        ("containerd", "containerd github.com/containerd/containerd/v2 v2.4.2 abc", "2.4.2"),
        ("containerd", "containerd github.com/containerd/containerd/v2 2.4.2+unknown ", "2.4.2"),
        (
            "containerd-shim-runc-v2",
            "containerd-shim-runc-v2:\n  Version:  2.4.2+unknown\n  Revision: ",
            "2.4.2",
        ),
        ("ctr", "ctr github.com/containerd/containerd/v2 2.4.2+unknown", "2.4.2"),
        ("etcd", "etcd Version: 3.7.3\nGit SHA: Not provided", "3.7.3"),
        ("coredns", "CoreDNS-1.15.0\nlinux/amd64, go1.26.8, ", "1.15.0"),
        ("buildkitd", "buildkitd github.com/moby/buildkit v0.34.2 ", "0.34.2"),
        (
            "kube-router",
            "Running kube-router version v2.1.0, built on , go1.26.8",
            "2.1.0",
        ),
        ("local-path-provisioner", "local-path-provisioner version v0.0.30", "0.0.30"),
        ("runc", "runc version 1.4.3\nspec: 1.3.0\ngo: go1.26.8", "1.4.3"),
    ],
)
def test_a_copy_on_path_is_taken_when_it_says_the_pinned_version(
    environ: dict[str, str], tmp_path: Path, name: str, said: str, version: str
) -> None:
    path = write_program(tmp_path / "bin", name, said)

    found = lookup.find(catalogue.BY_NAME[name], environ)

    assert found.path == path
    assert found.source == "path"
    assert found.version is not None
    assert versions.parse(found.version) == versions.parse(version)


@pytest.mark.parametrize("said", ["Client Version: v1.20.2", "Client Version: v1.34.9"])
def test_a_copy_on_path_that_is_too_old_is_named_and_the_cache_is_used(
    environ: dict[str, str], tmp_path: Path, said: str
) -> None:
    path = write_program(tmp_path / "bin", "kubectl", said)
    cached = put_in_cache(tmp_path / "cache", KUBECTL)

    found = lookup.find(KUBECTL, environ)

    assert found.path == cached
    assert found.source == "cache"
    assert found.passed is not None
    assert found.passed.path == path
    assert found.passed.version == said.rpartition("v")[2]


def test_a_copy_that_says_nothing_is_not_used(environ: dict[str, str], tmp_path: Path) -> None:
    write_program(tmp_path / "bin", "kubectl", "unknown command")

    found = lookup.find(KUBECTL, environ)

    assert found.path is None
    assert found.passed is not None
    assert found.passed.reason == "did not tell its version"


def test_a_program_that_cannot_be_asked_is_never_taken_from_path(
    environ: dict[str, str], tmp_path: Path
) -> None:
    write_program(tmp_path / "bin", PLUGIN.name, "4.34.2")
    cached = put_in_cache(tmp_path / "cache", PLUGIN)

    found = lookup.find(PLUGIN, environ)

    assert found.path == cached


def test_another_version_in_the_cache_is_not_this_one(
    environ: dict[str, str], tmp_path: Path
) -> None:
    cached = put_in_cache(tmp_path / "cache", PLUGIN)
    cached.parent.rename(cached.parent.with_name("4.34.1"))

    assert lookup.find(PLUGIN, environ).path is None


def test_require_names_the_command_and_the_copy_that_was_passed(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_program(tmp_path / "bin", "kubectl", "Client Version: v1.20.2")
    for key, value in environ.items():
        monkeypatch.setenv(key, value)

    assert tools.locate("kubectl") is None
    with pytest.raises(StepFailed) as raised:
        tools.require("kubectl")

    assert "`jr2 tools install kubectl`" in raised.value.message
    assert str(path) in raised.value.message
    assert "1.20.2" in raised.value.message


def test_the_cache_lies_below_xdg_cache_home_and_ignores_a_relative_one() -> None:
    assert lookup.cache_folder({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/jr2/tools")
    assert lookup.cache_folder({"XDG_CACHE_HOME": "c", "HOME": "/h"}) == Path("/h/.cache/jr2/tools")
    assert lookup.cache_folder({"HOME": "/h"}) == Path("/h/.cache/jr2/tools")


def test_a_static_binary_is_told_from_one_with_a_loader(tmp_path: Path) -> None:
    script = write_program(tmp_path, "script", "")

    assert not lookup.is_static(script)
    assert not lookup.is_static(Path(os.path.realpath("/usr/bin/env")))


@pytest.mark.parametrize(
    ("version", "holds"),
    [
        ("1.35.0", True),
        ("v1.37.9", True),
        ("1.36.3+unknown", True),
        ("1.36.0-rc.1", True),
        ("1.34.99", False),
        ("1.35.0-alpha.1", False),
        ("1.38.0", False),
        ("1.38.0-rc.0", False),
        ("2", False),
        ("unknown", False),
        ("", False),
    ],
)
def test_a_range_compares_numbers_and_not_letters(version: str, holds: bool) -> None:
    assert versions.Range(at_least="1.35.0", below="1.38.0").holds(version) is holds
