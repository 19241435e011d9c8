"""The two programs of the Orchestrator's pod as plain processes in a folder of their own.

Nothing is faked: the worker starts real Assembly processes, the store is a real file, and a test
kills what it wants to kill.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from jr2 import names
from jr2.tree_hash import entries, hash_folder
from jr2_infra.assembly import Parcel, pack
from jr2_infra.assembly.parcel import listing_over
from tests.kit_folder import link_kit
from tests.ports import free_port
from tests.waiting import LIMIT, wait_for

LEASE = "2026-01-01T00:00:00.000000Z chaos"
"""What a publish carries when a test does not say another one."""


class Assembly:
    """A folder that is an Assembly, and its archive."""

    def __init__(
        self,
        root: Path,
        workflows: Mapping[str, str],
        packages: Mapping[str, str] | None = None,
        **manifest: Any,
    ) -> None:
        self.root = root
        folder = root / names.ASSEMBLY_INSTANCE / names.WORKFLOWS_DIR
        folder.mkdir(parents=True)
        (root / names.ASSEMBLY_PACKAGES).mkdir()
        for name, source in (packages or {}).items():
            (root / names.ASSEMBLY_PACKAGES / f"{name}.py").write_text(source)
        (root / names.ASSEMBLY_INSTANCE / names.CONFIG_FILE).write_text(
            'from jr2 import Config\n\nconfig = Config(name="chaos")\n'
        )
        for name, source in workflows.items():
            (folder / f"{name}.py").write_text(textwrap.dedent(source))
        stated = {
            "kitVersion": names.KIT_VERSION,
            "instance": "chaos",
            "workflows": sorted(workflows),
            "platform": "any",
            "python": "3.11",
            **manifest,
        }
        (root / names.ASSEMBLY_MANIFEST).write_text(json.dumps(stated))

    @property
    def hash(self) -> str:
        return hash_folder(self.root, salt="assembly")

    def parcel(self) -> Parcel:
        """Return what is sent of it."""
        return pack(entries(self.root), self.root.parent / secrets.token_hex(4))


class Pod:
    """One Orchestrator and one worker, in a folder that outlives both."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.instance_token = secrets.token_hex(24)
        self.publish_token = secrets.token_urlsafe(32)
        self.port = free_port()
        self._processes: list[subprocess.Popen[bytes]] = []
        for name in ("state", "values", "made"):
            (folder / name).mkdir()
        link_kit(folder / "kit")
        digests = {
            names.FILE_INSTANCE_TOKEN_DIGEST: self.instance_token,
            names.FILE_PUBLISH_TOKEN_DIGEST: self.publish_token,
        }
        for file, token in digests.items():
            (folder / "values" / file).write_text(hashlib.sha256(token.encode()).hexdigest())
        (folder / "values" / names.FILE_SIGNING_KEY).write_text(secrets.token_urlsafe(32))
        self.client = httpx2.Client(
            base_url=f"http://127.0.0.1:{self.port}", timeout=LIMIT, trust_env=False
        )
        self.client.headers["Authorization"] = f"Bearer {self.instance_token}"

    # --- the programs -----------------------------------------------------------------------------
    def environment(self) -> dict[str, str]:
        return {
            **{k: v for k, v in os.environ.items() if not k.startswith(("JR2_", "KUBERNETES_"))},
            "JR2_STATE_PATH": str(self.folder / "state"),
            "JR2_VALUES_PATH": str(self.folder / "values"),
            "JR2_WORKER_SOCKET": str(self.folder / "worker.sock"),
            "JR2_WORKER_ASSEMBLIES_PATH": str(self.folder / "state" / names.ASSEMBLIES_DIR),
            "JR2_KIT_PATH": str(self.folder / "kit"),
            "JR2_ORCHESTRATOR_UID": str(os.getuid()),
            "JR2_WORKER_UID": str(os.getuid()),
            "JR2_HOST": "127.0.0.1",
            "JR2_PORT": str(self.port),
        }

    def _start(self, module: str, log: str, *before: str, **more: str) -> subprocess.Popen[bytes]:
        with (self.folder / log).open("ab") as output:
            process = subprocess.Popen(
                [*before, sys.executable, "-m", module],
                env={**self.environment(), **more},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def start_worker(self) -> subprocess.Popen[bytes]:
        process = self._start("jr2_runtime.worker", "worker.log")
        wait_for("the worker's socket", (self.folder / "worker.sock").exists)
        return process

    def begin_orchestrator(self, *before: str, **more: str) -> subprocess.Popen[bytes]:
        """Start the program, and do not wait for it.

        Args:
            before: a command that starts it in its own way.
            more: of its environment.
        """
        return self._start("jr2_runtime.orchestrator", "orchestrator.log", *before, **more)

    def backup(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `jr2-orchestrator backup …` beside the program."""
        return subprocess.run(
            [sys.executable, "-m", "jr2_runtime.orchestrator", "backup", *arguments],
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )

    def start_orchestrator(self, *before: str, **more: str) -> subprocess.Popen[bytes]:
        process = self.begin_orchestrator(*before, **more)

        def answers() -> bool:
            assert process.poll() is None, self.log("orchestrator")
            with contextlib.suppress(httpx2.TransportError):
                return self.client.get("/readyz").status_code == 200
            return False

        wait_for("the Orchestrator's answer", answers)
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()

    def log(self, program: str) -> str:
        return (self.folder / f"{program}.log").read_text()

    def close(self) -> None:
        self.client.close()
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
                try:
                    process.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def change_store(self, statement: str, values: tuple[Any, ...]) -> None:
        """Change the store of a program that is not running."""
        path = self.folder / "state" / names.STATE_DATABASE
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(statement, values)

    def applied(self, run: str) -> int:
        """Return how many steps of a run the store has recorded, its start included."""
        path = self.folder / "state" / names.STATE_DATABASE
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            (seq,) = connection.execute("SELECT seq FROM runs WHERE id = ?", (run,)).fetchone()
        assert isinstance(seq, int)
        return seq

    def stored_runs(self) -> set[str]:
        """Return the ids of all runs in the store, live or settled."""
        path = self.folder / "state" / names.STATE_DATABASE
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return {run for (run,) in connection.execute("SELECT id FROM runs")}

    # --- what a client does -----------------------------------------------------------------------
    def assembly(self, workflows: Mapping[str, str], **manifest: Any) -> Assembly:
        return Assembly(self.folder / "made" / secrets.token_hex(4), workflows, **manifest)

    def publish(self, assembly: Assembly, **headers: str) -> httpx2.Response:
        """Publish as a sender does; the answer is the first refusal, or that to the commit."""
        parcel = assembly.parcel()
        asked = self.ask_missing(assembly, parcel, **headers)
        if not asked.is_success:
            return asked
        for digest in asked.json()["missing"]:
            sent = self.client.put(
                f"/blobs/{digest}",
                content=parcel.sources[digest].read_bytes(),
                headers=self.publishing(**headers),
            )
            if not sent.is_success:
                return sent
        return self.commit(assembly, parcel, **headers)

    def ask_missing(self, assembly: Assembly, parcel: Parcel, **headers: str) -> httpx2.Response:
        return self.client.post(
            f"/assemblies/{assembly.hash}/missing",
            content=listing_over(parcel.files, None, ()).model_dump_json(by_alias=True),
            headers=self.publishing(**headers),
        )

    def commit(self, assembly: Assembly, parcel: Parcel, **headers: str) -> httpx2.Response:
        return self.client.put(
            f"/assemblies/{assembly.hash}",
            content=listing_over(parcel.files, None, ()).model_dump_json(by_alias=True),
            headers=self.publishing(**headers),
        )

    def publishing(self, **headers: str) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.publish_token}",
            names.HEADER_LEASE: LEASE,
            **headers,
        }

    def start_run(self, workflow: str, given: Mapping[str, Any] | None = None) -> str:
        answer = self.client.post(f"/workflows/{workflow}/runs", json=given or {})
        assert answer.status_code == 201, answer.text
        run = answer.json()["runId"]
        assert isinstance(run, str)
        return run

    def status(self, run: str) -> dict[str, Any]:
        answer = self.client.get(f"/runs/{run}")
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert isinstance(found, dict)
        return found

    def settled(self, run: str) -> dict[str, Any]:
        def ended() -> dict[str, Any] | None:
            found = self.status(run)
            return found if found["status"] != "active" else None

        return wait_for(f"the end of run {run}", ended) or {}

    def assemblies(self) -> dict[str, Any]:
        found = self.client.get("/assemblies").json()
        assert isinstance(found, dict)
        return found


@contextlib.contextmanager
def opened() -> Iterator[Pod]:
    """A pod without its programs; no token is in its logs afterwards."""
    # A Unix socket's path has at most 107 bytes, so not below pytest's own folder.
    folder = Path(tempfile.mkdtemp(prefix="jr2-chaos-"))
    made = Pod(folder)
    try:
        yield made
    finally:
        made.close()
        logs = "".join(log.read_text() for log in folder.glob("*.log"))
        shutil.rmtree(folder, ignore_errors=True)
    assert made.instance_token not in logs
    assert made.publish_token not in logs


@pytest.fixture
def pod() -> Iterator[Pod]:
    with opened() as made:
        yield made


@pytest.fixture(scope="module")
def served_pod() -> Iterator[Pod]:
    """A pod whose programs run, for all tests of a module."""
    with opened() as made:
        made.start_worker()
        made.start_orchestrator()
        yield made
