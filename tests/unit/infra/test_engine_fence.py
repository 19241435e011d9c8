"""A provider writes only while its command lives and has the Lease."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from jr2.errors import StepFailed
from jr2_infra import process_table
from jr2_infra.engine import fence, run_file
from tests.far_side import FarSide, Quiet


class LeaseServer:
    """An API server with the Leases of two namespaces in it, each of a holder with its verb."""

    def __init__(self) -> None:
        self.nonces: dict[str, str | None] = {}
        self.verb, self.url = "up", ""

    def answer(self, path: str) -> tuple[int, dict[str, object]]:
        *_, namespace, _, name = path.split("/")
        if name != "jr2-converge" or namespace not in self.nonces:
            return 404, {"message": "not found"}
        holder = {"user": "bob", "host": "far", "pid": 7, "started": "noon", "verb": self.verb}
        annotations = {"jr2.dev/lease-holder": json.dumps(holder)}
        return 200, {
            "metadata": {"resourceVersion": "1", "annotations": annotations},
            "spec": {"holderIdentity": self.nonces[namespace]},
        }


@pytest.fixture
def server() -> Iterator[LeaseServer]:
    made = LeaseServer()

    class Handler(Quiet):
        def do_GET(self) -> None:
            self.reply(*made.answer(self.path))

    with FarSide(Handler) as listening:
        made.url = listening.url
        yield made


@pytest.fixture
def run(server: LeaseServer, tmp_path: Path) -> dict[str, str]:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "current-context": "c",
                "clusters": [{"name": "c", "cluster": {"server": server.url}}],
                "contexts": [{"name": "c", "context": {"cluster": "c"}}],
            }
        )
    )
    return {
        run_file.KUBECONFIG: str(kubeconfig),
        run_file.WRAPPER_PID: str(os.getpid()),
        run_file.WRAPPER_START: process_table.start_of(os.getpid()) or "",
        run_file.LEASES: run_file.leases_text([("demo", "mine"), ("jr2-system", "shared")]),
    }


OURS: dict[str, str | None] = {"demo": "mine", "jr2-system": "shared"}


def test_a_write_is_allowed_while_the_leases_are_ours(
    server: LeaseServer, run: dict[str, str]
) -> None:
    server.nonces = OURS
    fence.check(run)


@pytest.mark.parametrize("namespace", list(OURS))
@pytest.mark.parametrize(
    ("nonce", "verb", "words"),
    [
        (
            "another",
            "up",
            'another `jr2 up` took over the converge of namespace "{}": bob on far (pid 7, '
            "since noon); nothing more is written here",
        ),
        (
            "another",
            "down",
            'a `jr2 down` took over namespace "{}" and removes it: bob on far (pid 7, since '
            "noon); nothing more is written here",
        ),
        (
            None,
            "up",
            'another run took over namespace "{}" and has ended — run the command again; '
            "nothing more is written here",
        ),
        (
            "gone",
            "up",
            'the Lease jr2-converge of namespace "{}" was removed, so another run may write — '
            "run the command again; nothing more is written here",
        ),
    ],
)
def test_no_write_after_another_run_took_one_of_them_over(
    server: LeaseServer,
    run: dict[str, str],
    namespace: str,
    nonce: str | None,
    verb: str,
    words: str,
) -> None:
    server.nonces, server.verb = {**OURS, namespace: nonce}, verb
    if nonce == "gone":
        del server.nonces[namespace]

    with pytest.raises(StepFailed) as caught:
        fence.check(run)

    assert str(caught.value) == words.format(namespace)


@pytest.mark.parametrize("leases", [None, "", "[]"])
def test_no_write_by_a_run_that_took_no_lease(
    server: LeaseServer, run: dict[str, str], leases: str | None
) -> None:
    server.nonces = OURS
    del run[run_file.LEASES]
    if leases is not None:
        run[run_file.LEASES] = leases

    with pytest.raises(StepFailed, match="started without a Lease; nothing is written"):
        fence.check(run)


def test_a_lease_without_a_nonce_is_nobodys(server: LeaseServer, run: dict[str, str]) -> None:
    server.nonces = {"demo": ""}
    run[run_file.LEASES] = run_file.leases_text([("demo", "")])

    with pytest.raises(StepFailed, match='took over namespace "demo" and has ended'):
        fence.check(run)


def test_no_write_after_the_command_is_gone(server: LeaseServer, run: dict[str, str]) -> None:
    server.nonces = OURS
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"]) as command:
        run[run_file.WRAPPER_PID] = str(command.pid)
        run[run_file.WRAPPER_START] = process_table.start_of(command.pid) or ""
        fence.check(run)
        command.kill()

    with pytest.raises(StepFailed, match="that started this step is gone"):
        fence.check(run)


def test_a_process_that_came_by_the_commands_number_does_not_count(
    server: LeaseServer, run: dict[str, str]
) -> None:
    server.nonces = OURS
    run[run_file.WRAPPER_START] = "an earlier start"

    with pytest.raises(StepFailed, match="that started this step is gone"):
        fence.check(run)
