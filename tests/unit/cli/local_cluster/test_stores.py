"""The stores of Repo caches: which of them belong to the cluster, and go with it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from jr2 import names
from jr2.errors import StepFailed
from jr2_cli.local_cluster.node import stores
from jr2_infra.components.repo_cache import store_path

MOUNT = "612 598 254:0 {} /cache rw,relatime - ext4 /dev/vda rw\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """What `/var/lib/jr2` is on a machine."""
    return tmp_path / Path(names.REPO_STORE).name


@pytest.fixture
def processes(tmp_path: Path) -> Path:
    """What `/proc` is, with a file and a process that has ended in it."""
    found = tmp_path / "proc"
    (found / "7").mkdir(parents=True)
    (found / "mounts").touch()
    return found


def store(root: Path, namespace: str) -> Path:
    made = root / Path(store_path(namespace)).relative_to(names.REPO_STORE)
    (made / "clone").mkdir(parents=True)
    (made / "clone" / "HEAD").write_text("ref: refs/heads/main\n")
    return made


def has_mounted(processes: Path, number: int, shown: str, namespace: str = "mnt:[1]") -> None:
    folder = processes / str(number)
    (folder / "ns").mkdir(parents=True)
    (folder / "ns" / "mnt").symlink_to(namespace)
    (folder / "mountinfo").write_text(MOUNT.format("/") + MOUNT.format(shown))


def test_those_that_came_with_the_cluster_go(root: Path, processes: Path) -> None:
    older = store(root, "older")
    before = stores.present(root)
    newer = store(root, "newer")
    (root / "cluster" / "etcd").mkdir(parents=True)

    stores.remove(before, root, processes)

    assert before == ("older",)
    assert (older / "clone" / "HEAD").exists()
    assert not newer.parent.exists()
    assert (root / "cluster" / "etcd").exists()


@pytest.mark.parametrize(
    "shown", ["/var/lib/jr2/used/repos", "/lib/jr2/used/repos/0a1b", "/jr2/used/repos/"]
)
def test_one_that_a_process_has_mounted_stays(root: Path, processes: Path, shown: str) -> None:
    used, like = store(root, "used"), store(root, "sed")
    has_mounted(processes, 11, "/")
    has_mounted(processes, 12, shown, "mnt:[2]")

    stores.remove((), root, processes)

    assert used.exists()
    assert not like.exists()


def test_the_folder_of_all_goes_when_it_is_empty(root: Path, processes: Path) -> None:
    store(root, "one")
    store(root, "two")

    stores.remove((), root, processes)
    stores.remove((), root, processes)

    assert not root.exists()
    assert stores.present(root) == ()


def test_what_cannot_be_removed_is_named(
    root: Path, processes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = store(root, "one")

    def refuse(path: Path) -> None:
        raise PermissionError(1, "Operation not permitted", str(path / "clone"))

    monkeypatch.setattr(shutil, "rmtree", refuse)

    with pytest.raises(StepFailed) as raised:
        stores.remove((), root, processes)

    assert raised.value.printed == f"error: cannot remove {kept}/clone: Operation not permitted"
