"""The context goes into a kubeconfig and out again, and nothing else changes."""

from __future__ import annotations

import base64
import copy
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from jr2.errors import StepFailed
from jr2_cli.local_cluster import certificates, kubeconfig, layout

OTHER: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "preferences": {"colors": True},
    "clusters": [{"name": "prod", "cluster": {"server": "https://prod.example:443"}}],
    "users": [{"name": "me", "user": {"token": "CANARY"}}],
    "contexts": [{"name": "prod", "context": {"cluster": "prod", "user": "me"}}],
    "current-context": "prod",
}


@pytest.fixture
def files(tmp_path: Path) -> layout.Layout:
    files = layout.Layout(tmp_path / "cluster")
    certificates.ensure_certificates(files)
    return files


@pytest.fixture
def entries(files: layout.Layout) -> dict[str, dict[str, Any]]:
    return kubeconfig.admin_entries(files)


def test_a_new_file_is_private_holds_the_keys_and_goes_again(
    tmp_path: Path, files: layout.Layout, entries: dict[str, dict[str, Any]]
) -> None:
    path = tmp_path / "home" / ".kube" / "config"

    kubeconfig.merge(path, entries)

    assert path.stat().st_mode & 0o7777 == 0o600
    config = yaml.safe_load(path.read_text())
    assert config["current-context"] == layout.CONTEXT
    user = config["users"][0]["user"]
    assert base64.b64decode(user["client-key-data"]) == files.key("admin").read_bytes()
    assert str(files.root) not in path.read_text()
    kubeconfig.unmerge(path)
    assert not path.exists()


def test_other_contexts_and_the_current_one_stay(
    tmp_path: Path, entries: dict[str, dict[str, Any]]
) -> None:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(OTHER))

    kubeconfig.merge(path, entries)

    merged = yaml.safe_load(path.read_text())
    assert merged["current-context"] == "prod"
    assert [entry["name"] for entry in merged["contexts"]] == ["prod", layout.CONTEXT]
    kubeconfig.unmerge(path)
    assert yaml.safe_load(path.read_text()) == OTHER


def test_permissions_owner_and_a_link_stay(
    tmp_path: Path, entries: dict[str, dict[str, Any]]
) -> None:
    target = tmp_path / "real"
    target.write_text(yaml.safe_dump(OTHER))
    target.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(target, 12_345, 54_321)
    owner = (target.stat().st_uid, target.stat().st_gid)
    link = tmp_path / "config"
    link.symlink_to(target)

    kubeconfig.merge(link, entries)

    assert link.is_symlink()
    assert target.stat().st_mode & 0o7777 == 0o640
    assert (target.stat().st_uid, target.stat().st_gid) == owner
    assert layout.CONTEXT in target.read_text()


def test_an_older_entry_of_the_same_name_is_replaced_in_its_place(
    entries: dict[str, dict[str, Any]],
) -> None:
    present = copy.deepcopy(OTHER)
    present["clusters"].insert(0, {"name": layout.CONTEXT, "cluster": {"server": "https://old"}})

    merged = kubeconfig.with_context(present, entries)

    assert [entry["name"] for entry in merged["clusters"]] == [layout.CONTEXT, "prod"]
    assert merged["clusters"][0] == entries["clusters"]
    assert kubeconfig.with_context(merged, entries) == merged


def test_the_current_context_goes_only_when_it_was_ours(
    entries: dict[str, dict[str, Any]],
) -> None:
    ours = kubeconfig.with_context({}, entries)
    others = kubeconfig.with_context(OTHER, entries)

    assert "current-context" not in kubeconfig.without_context(ours)
    assert kubeconfig.without_context(others)["current-context"] == "prod"
    assert kubeconfig.holds_nothing(kubeconfig.without_context(ours))
    assert not kubeconfig.holds_nothing(kubeconfig.without_context(others))


def test_a_file_without_the_context_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "config"
    text = "# a comment that a rewrite would lose\n" + yaml.safe_dump(OTHER)
    path.write_text(text)

    kubeconfig.unmerge(path)
    kubeconfig.unmerge(tmp_path / "absent")

    assert path.read_text() == text


@pytest.mark.parametrize("text", ["{", "- a list\n", "contexts: none\n", "contexts: [prod]\n"])
def test_what_is_no_kubeconfig_is_refused_and_stays(
    tmp_path: Path, text: str, entries: dict[str, dict[str, Any]]
) -> None:
    path = tmp_path / "config"
    path.write_text(f"{text}# CANARY\n")

    with pytest.raises(StepFailed) as raised:
        kubeconfig.merge(path, entries)

    assert str(path) in raised.value.message
    assert "CANARY" not in raised.value.message
    assert path.read_text() == f"{text}# CANARY\n"


def test_the_first_file_of_kubeconfig_is_written() -> None:
    assert kubeconfig.default_path({"KUBECONFIG": ":/a/b:/c", "HOME": "/h"}) == Path("/a/b")
    assert kubeconfig.default_path({"HOME": "/h"}) == Path("/h/.kube/config")
