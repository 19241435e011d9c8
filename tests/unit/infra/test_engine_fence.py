"""A provider writes only while its command lives and has the Lease."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from jr2.errors import StepFailed
from jr2_infra import process_table
from jr2_infra.engine import fence, run_file


class LeaseServer:
    """An API server with the Leases of two namespaces in it."""

    def __init__(self) -> None:
        self.nonces: dict[str, str | None] = {}
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = self.path.split("/")
                found = parts[-1] == "jr2-converge" and parts[-3] in owner.nonces
                lease = {
                    "metadata": {"resourceVersion": "1"},
                    "spec": {"holderIdentity": owner.nonces.get(parts[-3])},
                }
                body = json.dumps(lease if found else {"message": "not found"}).encode()
                self.send_response(200 if found else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)


@pytest.fixture
def server() -> Iterator[LeaseServer]:
    made = LeaseServer()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


@pytest.fixture
def run(server: LeaseServer, tmp_path: Path) -> dict[str, str]:
    kubeconfig = tmp_path / "kubeconfig"
    address = f"http://127.0.0.1:{server.server.server_port}"
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "current-context": "c",
                "clusters": [{"name": "c", "cluster": {"server": address}}],
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
@pytest.mark.parametrize("nonce", ["another", None, "gone"])
def test_no_write_after_another_run_took_one_of_them_over(
    server: LeaseServer, run: dict[str, str], namespace: str, nonce: str | None
) -> None:
    server.nonces = {**OURS, namespace: nonce}
    if nonce == "gone":
        del server.nonces[namespace]

    with pytest.raises(
        StepFailed, match=f"another `jr2 up` took over the converge of {namespace};"
    ):
        fence.check(run)


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

    with pytest.raises(StepFailed, match="took over the converge of demo"):
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
