"""What the verbs say before they change anything, and when there is no cluster."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from jr2.errors import Aborted, Refusal, StepFailed
from jr2_cli.local_cluster import layout, lifecycle, record
from jr2_cli.local_cluster.definition import certificates
from jr2_cli.local_cluster.supervision import plan, process_table, remains
from tests.waiting import LIMIT


class Voice:
    """A reporter that keeps its lines and answers no."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.asked: list[str] = []
        self.said = threading.Event()

    def line(self, text: str, *, code: str = "line") -> None:
        self.lines.append(text)
        self.said.set()

    def warning(self, text: str, *, code: str = "warning") -> None:
        raise AssertionError(text)

    def progress(self, text: str | None) -> None:
        pass

    def confirm(self, question: str) -> bool:
        self.asked.append(question)
        return False


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> lifecycle.Cluster:
    """A cluster in a folder of its own, on a machine with no program, for root on Linux."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing"))
    return lifecycle.Cluster(
        reporter=Voice(),
        environ={"KUBECONFIG": str(tmp_path / "kubeconfig")},
        files=layout.Layout(tmp_path / "state" / "cluster"),
    )


def test_create_names_the_programs_that_are_missing_and_leaves_nothing(
    cluster: lifecycle.Cluster,
) -> None:
    with pytest.raises(StepFailed) as raised:
        cluster.create()

    assert raised.value.message.startswith("etcd, kube-apiserver, ")
    assert "`jr2 tools install`" in raised.value.message
    assert not cluster.files.root.parent.exists()


@pytest.mark.parametrize("verb", ["start", "stop"])
def test_without_a_cluster_start_and_stop_name_create(
    cluster: lifecycle.Cluster, verb: str
) -> None:
    with pytest.raises(StepFailed, match="there is no local cluster — `jr2 cluster create`"):
        getattr(cluster, verb)()


def test_delete_asks_and_changes_nothing_when_the_answer_is_no(cluster: lifecycle.Cluster) -> None:
    cluster.files.root.mkdir(parents=True)
    (cluster.files.root / "data").touch()

    with pytest.raises(Aborted):
        cluster.delete(yes=False)

    assert isinstance(cluster.reporter, Voice)
    assert cluster.reporter.asked == ["delete the local cluster and everything in it?"]
    assert (cluster.files.root / "data").exists()


@pytest.mark.parametrize("verb", ["create", "start"])
def test_a_cluster_that_runs_is_named_and_left_alone(
    cluster: lifecycle.Cluster, verb: str, tmp_path: Path
) -> None:
    certificates.ensure_certificates(cluster.files)
    noted = record.Record(kubernetes="1.36.3", created_at=1.0)
    cluster.files.record.write_text(noted.model_dump_json())
    descriptor = remains.take_lock(cluster.files.supervisor_lock)
    assert descriptor is not None
    try:
        getattr(cluster, verb)()
    finally:
        os.close(descriptor)

    assert isinstance(cluster.reporter, Voice)
    assert cluster.reporter.lines[-2:] == [
        f"cluster: runs already, in {cluster.files.root}",
        "ready: context jr2-local (Kubernetes v1.36.3)",
    ]
    assert (tmp_path / "kubeconfig").exists() == (verb == "create")


def test_a_second_verb_waits_for_the_first(cluster: lifecycle.Cluster) -> None:
    errors: list[str] = []

    def start() -> None:
        with pytest.raises(StepFailed) as raised:
            cluster.start()
        errors.append(raised.value.message)

    second = threading.Thread(target=start, daemon=True)
    assert isinstance(cluster.reporter, Voice)
    with cluster._locked():
        second.start()
        assert cluster.reporter.said.wait(LIMIT)
        assert cluster.reporter.lines == ["cluster: another `jr2 cluster` is at work, waiting"]
    second.join(LIMIT)

    # The first one removed the folder that both had locked; the second one made it anew.
    assert errors == ["there is no local cluster — `jr2 cluster create` makes one"]
    assert not cluster.files.root.parent.exists()


@pytest.mark.parametrize("verb", ["create", "start", "stop", "delete"])
def test_each_verb_refuses_who_is_not_root_and_points_at_kind(
    cluster: lifecycle.Cluster, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    with pytest.raises(Refusal) as raised:
        getattr(cluster, verb)(**({"yes": True} if verb == "delete" else {}))

    assert f"`jr2 cluster {verb}` as root, or use kind" in raised.value.printed
    assert not cluster.files.root.parent.exists()


def test_a_supervisor_ends_when_told_though_what_it_wrote_cannot_be_read(
    cluster: lifecycle.Cluster,
) -> None:
    files = cluster.files
    for folder in (files.config, files.logs):
        folder.mkdir(parents=True)
    work = plan.Plan(
        folder=files.root,
        logs=files.logs,
        lock=files.supervisor_lock,
        # A folder that is not there: what it has to say cannot be written.
        state=files.root / "absent" / "supervisor.json",
        environment={},
        services=(plan.Service(name="worker", argv=("/bin/sleep", "600")),),
    )
    files.plan.write_text(work.model_dump_json())
    module = "jr2_cli.local_cluster.supervision.supervisor"
    child = subprocess.Popen(
        [sys.executable, "-m", module, str(files.plan)], stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + LIMIT
        while not process_table.find_marked(work.mark, work.folder):
            assert time.monotonic() < deadline, "the service does not start"
            time.sleep(0.02)

        cluster._stop_supervisor()

        assert child.wait(LIMIT) == 0
        assert remains.leftovers(work) == set()
    finally:
        child.kill()
        child.wait()
