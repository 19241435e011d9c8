"""The context goes into a kubeconfig and out again, and nothing else changes."""

from __future__ import annotations

import base64
import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from jr2.errors import StepFailed
from jr2_cli.local_cluster import kubeconfig, layout
from jr2_cli.local_cluster.definition import certificates

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
    assert not path.parent.exists()


def test_what_a_killed_write_left_is_no_hindrance_and_goes(
    tmp_path: Path, entries: dict[str, dict[str, Any]]
) -> None:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(OTHER))
    (tmp_path / ".config.jr2-part").write_text("half")

    kubeconfig.merge(path, entries)
    assert not list(tmp_path.glob(".*"))
    (tmp_path / ".config.jr2-part").symlink_to(tmp_path / "elsewhere")
    kubeconfig.unmerge(path)

    assert not list(tmp_path.glob(".*"))


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
    config = copy.deepcopy(OTHER)
    config["clusters"].insert(0, {"name": layout.CONTEXT, "cluster": {"server": "https://old"}})

    kubeconfig.put_context(config, entries, becomes_current=True)

    assert [entry["name"] for entry in config["clusters"]] == [layout.CONTEXT, "prod"]
    assert config["clusters"][0] == entries["clusters"]
    again = copy.deepcopy(config)
    kubeconfig.put_context(again, entries, becomes_current=True)
    assert again == config


def test_the_current_context_goes_only_when_it_was_ours(
    entries: dict[str, dict[str, Any]],
) -> None:
    ours: dict[str, Any] = {}
    others = copy.deepcopy(OTHER)
    for config in (ours, others):
        kubeconfig.put_context(config, entries, becomes_current=True)
    assert ours["current-context"] == layout.CONTEXT

    for config in (ours, others):
        kubeconfig.take_context(config)

    assert "current-context" not in ours
    assert others["current-context"] == "prod"
    assert kubeconfig.holds_nothing(ours)
    assert not kubeconfig.holds_nothing(others)


WRITTEN_BY_HAND = """\
# mine
apiVersion: v1
clusters:
{i}- cluster:
{i}    server: https://prod.example:443 # the one that earns money
{i}  name: prod
# who may do what
contexts:
{i}- context: {{cluster: prod, user: "me"}}
{i}  name: prod
current-context: 'prod'
kind: Config
preferences:
  colors: yes
users:
{i}- name: me
{i}  user:
{i}    token: 0123
{i}    exec:
{i}      command: >-
{i}        folded
{i}        text
x-unknown: {{a: 1e3, c: 0x1F, d: 1_000}}
# the end
"""


@pytest.mark.parametrize("indent", ["", "  "])
def test_comments_quotes_and_unknown_keys_stay_as_they_are(
    tmp_path: Path, entries: dict[str, dict[str, Any]], indent: str
) -> None:
    path = tmp_path / "config"
    before = WRITTEN_BY_HAND.format(i=indent)
    path.write_text(before)

    kubeconfig.merge(path, entries)

    lines = path.read_text().splitlines()
    left = iter(lines)
    assert all(line in left for line in before.splitlines())
    assert len(lines) == len(before.splitlines()) + 4 + 4 + 4
    kubeconfig.unmerge(path)
    assert path.read_text() == before


def test_a_kubeconfig_in_json_stays_one(tmp_path: Path, entries: dict[str, dict[str, Any]]) -> None:
    path = tmp_path / "config"
    path.write_text(json.dumps(OTHER))

    kubeconfig.merge(path, entries)
    kubeconfig.unmerge(path)

    assert json.loads(path.read_text()) == OTHER


def test_the_current_context_of_a_later_file_stays_the_current_one(
    tmp_path: Path, entries: dict[str, dict[str, Any]]
) -> None:
    # kubectl takes it from the first file that names one.
    first, second = tmp_path / "first", tmp_path / "second"
    second.write_text(yaml.safe_dump(OTHER))
    broken = tmp_path / "broken"
    broken.write_text("{")
    files = kubeconfig.paths({"KUBECONFIG": f"{first}:{broken}:{second}"})

    assert kubeconfig.says_current(files[1:])
    assert not kubeconfig.says_current([first, broken])
    kubeconfig.merge(first, entries, becomes_current=False)

    assert "current-context" not in yaml.safe_load(first.read_text())
    assert second.read_text() == yaml.safe_dump(OTHER)


def test_a_refresh_changes_only_a_file_that_still_has_the_context(
    tmp_path: Path, entries: dict[str, dict[str, Any]]
) -> None:
    has, has_not = tmp_path / "has", tmp_path / "has-not"
    kubeconfig.merge(has, entries)
    has_not.write_text(yaml.safe_dump(OTHER))
    newer = copy.deepcopy(entries)
    newer["users"]["user"]["client-certificate-data"] = "bmV3"

    for path in (has, has_not, tmp_path / "absent"):
        kubeconfig.refresh(path, newer)

    assert yaml.safe_load(has.read_text())["users"] == [newer["users"]]
    assert has_not.read_text() == yaml.safe_dump(OTHER)
    assert not (tmp_path / "absent").exists()


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
