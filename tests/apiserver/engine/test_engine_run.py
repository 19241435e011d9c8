"""One run of the real engine: its errors, its folder, its end by force, and the Lease."""

from __future__ import annotations

import base64
import contextlib
import copy
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jr2.errors import StepFailed
from jr2_infra import process_table
from jr2_infra.derived import differences
from jr2_infra.engine import minder
from jr2_infra.lease import ConvergeLease, nonce_of
from jr2_infra.resources import DynamicResource
from tests.apiserver.gateway import DROPPED, Gateway, gateway
from tests.waiting import LIMIT, wait_for

if TYPE_CHECKING:
    from tests.apiserver.engine.conftest import Cluster


def test_the_words_of_the_api_are_one_readable_error(cluster: Cluster) -> None:
    wanted = copy.deepcopy(cluster.objects)
    service = next(obj for obj in wanted if obj["kind"] == "Service")
    service["spec"]["ports"][0]["port"] = 99999

    with pytest.raises(StepFailed) as caught:
        cluster.engine(cluster.program(wanted))

    text = str(caught.value)
    assert text.startswith(f"cannot apply Service {cluster.namespace}/service: ")
    assert "must be between 1 and 65535" in text
    assert "\n" not in text
    assert "Traceback" not in text


def test_an_error_of_a_dynamic_provider_is_printed_as_it_was_written(cluster: Cluster) -> None:
    step = DynamicResource(
        name="preflight",
        kind="ProviderPreflight",
        inputs={"models": "some/model"},
        derived=None,
        component="part",
    )

    with pytest.raises(StepFailed) as caught:
        cluster.engine(cluster.program(steps=[step]))

    assert caught.value.printed == "error: this Kit cannot check a model yet: some/model"


def test_a_step_that_stands_is_same_and_says_its_lines(cluster: Cluster) -> None:
    step = DynamicResource(
        name="preflight",
        kind="ProviderPreflight",
        inputs={"models": "some/model"},
        derived={"models": "some/model"},
        component="part",
        unchanged=("preflight: stands",),
    )
    reporter = cluster.reporter()

    result = cluster.engine(cluster.program(steps=[step]), reporter=reporter)

    assert {outcome.operation for outcome in result.steps} == {"same"}
    assert reporter.lines == ["part: reached", "preflight: stands"]


def test_no_value_of_a_secret_is_in_the_folder_of_a_run(cluster: Cluster, tmp_path: Path) -> None:
    """Read again and again while the engine creates and updates Secrets."""
    wanted = copy.deepcopy(cluster.objects)
    secret = next(obj for obj in wanted if obj["kind"] == "Secret")
    secret["data"]["new"] = base64.b64encode(f"{cluster.canary}-new".encode()).decode()
    wanted.append({**copy.deepcopy(secret), "metadata": {**secret["metadata"], "name": "second"}})
    over, seen, files = threading.Event(), list[str](), set[str]()

    def read_all() -> None:
        while not over.is_set():
            for path in (Path(top, name) for top, _, names in os.walk(tmp_path) for name in names):
                try:
                    content = b"" if path.is_symlink() else path.read_bytes()
                except OSError:
                    continue
                files.add(path.name)
                text = content.decode("utf-8", "replace")
                seen.extend(
                    f"{path}: {word}"
                    for word in (cluster.canary, cluster.coded[:16])
                    if word in text
                )

    reader = threading.Thread(target=read_all)
    reader.start()
    try:
        cluster.engine(cluster.program(wanted), folder_root=tmp_path)
    finally:
        over.set()
        reader.join()

    assert "engine-test.0123456789ab.json" in files
    assert seen == []
    assert list(tmp_path.iterdir()) == []
    cluster.delete(wanted[-1])
    cluster.change(cluster.named("Secret"), {"data": {"new": None}}, manager="jr2")


RUN = """
import json, sys
from pathlib import Path
from jr2_infra import kube
from jr2_infra.engine.run import run_engine
from jr2_infra.resources import Component, KubernetesResource, Program
from jr2_infra.tooling import Tooling

spec = json.loads(sys.stdin.read())

class Reporter:
    def line(self, text, *, code="line"): pass
    def warning(self, text, *, code="warning"): pass
    def progress(self, text): pass

def started(session, start, mark):
    print(json.dumps([session, start, mark]), flush=True)

run_engine(
    Program(
        project="jr2", stack="engine-test.0123456789ab",
        components=(Component(name="part", type="Part"),),
        resources=tuple(
            KubernetesResource(name=f"map-{at}", object=obj, component="part")
            for at, obj in enumerate(spec["objects"])
        ),
    ),
    {},
    tooling=Tooling(**{name: Path(path) for name, path in spec["tooling"].items()}),
    kubeconfig_text=kube.load_context(None, {"KUBECONFIG": spec["kubeconfig"]}).kubeconfig_text(),
    run_settings={}, reporter=Reporter(), started=started, folder_root=Path(spec["folder"]),
)
"""


@pytest.fixture
def between(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with gateway(cluster.server, tmp_path_factory.mktemp("gateway")) as made:
        yield made


LET_THROUGH = 4
# Fewer than the engine works on at once (four for each core): were each of its places taken by one
# that is held, those to be let through would never be begun.
HELD = 3


class Running:
    """A command with an engine in the middle of its run.

    Some of the creates are through, and the others never get to the server: the run cannot come
    to its end, however slow or quick the machine is.
    """

    def __init__(self, cluster: Cluster, folder: Path, between: Gateway) -> None:
        between.answer = self._held
        self._waiting, self._over = threading.Event(), threading.Event()
        self.maps = [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": f"map-{at}",
                    "namespace": cluster.namespace,
                    "annotations": cluster.annotations,
                },
                "data": {"a": "b"},
            }
            for at in range(LET_THROUGH + HELD)
        ]
        self.session, self.start, self.mark = 0, "", ""
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(RUN)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            self._begin(cluster, between, folder)
        except BaseException:
            self.end()
            raise

    def _begin(self, cluster: Cluster, between: Gateway, folder: Path) -> None:
        """Hand the program over, and wait until it stands in the middle."""
        tooling = cluster.tooling
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        json.dump(
            {
                "objects": self.maps,
                "kubeconfig": str(between.kubeconfig),
                "folder": str(folder),
                "tooling": {
                    "pulumi": str(tooling.pulumi),
                    "kubernetes_plugin": str(tooling.kubernetes_plugin),
                    "kubectl": str(tooling.kubectl),
                },
            },
            self.process.stdin,
        )
        self.process.stdin.close()
        self.session, self.start, self.mark = json.loads(self.process.stdout.readline())
        wait_for("minder, engine and plugin run", lambda: len(self.members()) >= 3)
        assert self._waiting.wait(LIMIT)
        wait_for(
            "some of the objects exist",
            lambda: all(cluster.get(obj) for obj in self.maps[:LET_THROUGH]),
        )

    def _held(self, method: str, path: str) -> object:
        name = path.rpartition("/")[2]
        if method == "GET" or name in {f"map-{at}" for at in range(LET_THROUGH)}:
            return None
        self._waiting.set()
        self._over.wait()
        return DROPPED

    def members(self) -> list[int]:
        return minder.session_members(self.session)

    def end(self) -> None:
        self._over.set()
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
        if self.session:
            process_table.end_left_over(self.session, self.start, self.mark)


def test_a_killed_run_leaves_no_process_and_its_folder_goes_unread(
    cluster: Cluster, between: Gateway, tmp_path: Path
) -> None:
    """4a and 4e: kill -9 of the command in the middle; the next run adopts what is there."""
    running = Running(cluster, tmp_path, between)
    try:
        running.process.send_signal(signal.SIGKILL)
        wait_for("every process of the run is gone", lambda: not running.members())
        (left,) = tmp_path.iterdir()
        (
            left / "state" / ".pulumi" / "stacks" / "jr2" / "engine-test.0123456789ab.json"
        ).write_text('{"version": 3, "checkpoint": {"half')
    finally:
        running.end()

    objects = [cluster.named("Namespace"), *running.maps]
    program, live = cluster.program(objects), cluster.live(objects)
    existed = {key for key in live if key.kind == "ConfigMap"}
    cluster.engine(program, live, folder_root=tmp_path)

    assert existed
    assert list(tmp_path.iterdir()) == []
    after = cluster.live(objects)
    assert differences(program, after) == []
    for key in existed:
        versions = [found[key]["metadata"]["resourceVersion"] for found in (live, after)]
        assert versions[0] == versions[1]
    cluster.http.request(
        "DELETE",
        f"/api/v1/namespaces/{cluster.namespace}/configmaps",
        params={"labelSelector": "!engine-test"},
    )


@pytest.mark.parametrize("who", ["pulumi up", "pulumi-resource-kubernetes"])
def test_a_killed_engine_or_plugin_ends_the_run_with_an_error_and_the_next_one_finishes(
    cluster: Cluster, between: Gateway, tmp_path: Path, who: str
) -> None:
    """`kill -9` in the middle of the creates: the command lives, and says so."""
    running = Running(cluster, tmp_path, between)
    try:
        victims = [pid for pid in running.members() if who in command_line(pid)]
        for pid in victims:
            # One that was about to become another program, or to end, may have done so by now.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        code = running.process.wait(timeout=LIMIT)
        assert running.members() == []
        assert list(tmp_path.iterdir()) == []
    finally:
        running.end()

    assert victims
    assert code == 1, "a run whose engine was killed is no success"
    objects = [cluster.named("Namespace"), *running.maps]
    program, live = cluster.program(objects), cluster.live(objects)
    assert len(live) == 1 + LET_THROUGH, "it was in the middle"
    cluster.engine(program, live, folder_root=tmp_path)
    assert differences(program, cluster.live(objects)) == []
    cluster.http.request(
        "DELETE",
        f"/api/v1/namespaces/{cluster.namespace}/configmaps",
        params={"labelSelector": "!engine-test"},
    )


def command_line(pid: int) -> str:
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""
    return "" if "minder.py" in line else line


def test_an_interrupt_ends_everything_before_the_command(
    cluster: Cluster, between: Gateway, tmp_path: Path
) -> None:
    """4f."""
    running = Running(cluster, tmp_path, between)
    try:
        running.process.send_signal(signal.SIGINT)
        running.process.wait(timeout=LIMIT)
        assert running.members() == []
        assert list(tmp_path.iterdir()) == []
    finally:
        running.end()
        cluster.http.request(
            "DELETE",
            f"/api/v1/namespaces/{cluster.namespace}/configmaps",
            params={"labelSelector": "!engine-test"},
        )


def test_the_lease_on_a_real_server(cluster: Cluster) -> None:
    """4b and 4g with the system's own clock."""
    first = ConvergeLease(cluster.http, cluster.namespace)
    with first.held(cluster.reporter()):
        with pytest.raises(StepFailed, match="another `jr2 up` converges namespace"):
            ConvergeLease(cluster.http, cluster.namespace).acquire(cluster.reporter())
        assert nonce_of(cluster.http, cluster.namespace) == first.nonce
    assert nonce_of(cluster.http, cluster.namespace) is None

    left = ConvergeLease(cluster.http, cluster.namespace)
    left.acquire(cluster.reporter())
    reporter = cluster.reporter()
    second = ConvergeLease(cluster.http, cluster.namespace)
    second.acquire(reporter)
    assert len(reporter.lines) == 1
    assert second.stamp.acquired > left.stamp.acquired > first.stamp.acquired
    assert not left.renew()
    second.release()
