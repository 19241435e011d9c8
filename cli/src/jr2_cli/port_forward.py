"""The way from this machine to the Orchestrator: a `kubectl port-forward` for one command.

kubectl binds an ephemeral port of 127.0.0.1 itself and says which, so no other program can take
the port between. The forward is closed with the command, whichever way the command ends.

Source: spec/converge.md §2.3, design §5.7 and §6.3.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jr2 import errors, names

from . import processes

if TYPE_CHECKING:
    import subprocess

READY_WITHIN: Final = 30.0
"""Seconds that kubectl has to announce its port."""
_ANNOUNCED = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+) ->")


class ForwardFailed(errors.StepFailed):
    """kubectl could not forward the port; its own words are in the message."""


class PortForward:
    """An open forward to the Service of the Orchestrator; use it as a context manager.

    Args:
        kubectl: the program.
        context: the context of the kubeconfig.
        namespace: the namespace of the Instance.
        env: the environment that kubectl reads its kubeconfig from; `None` is ours.
        ready_within: seconds until the port must be announced.

    Raises:
        ForwardFailed: kubectl ended, or said no port in time.
    """

    def __init__(
        self,
        kubectl: Path,
        *,
        context: str,
        namespace: str,
        env: Mapping[str, str] | None = None,
        ready_within: float = READY_WITHIN,
    ) -> None:
        service = f"service/{names.ORCHESTRATOR}"
        self._argv: tuple[str, ...] = (
            str(kubectl),
            f"--context={context}",
            f"--namespace={namespace}",
            "port-forward",
            "--address=127.0.0.1",
            service,
            f":{names.ORCHESTRATOR_PORT}",
        )
        self._env = env
        self._where = f"{service} in namespace {namespace} of {context}"
        self._said: list[str] = []
        self._process = self._start()
        try:
            self.url = f"http://127.0.0.1:{self._port(ready_within)}"
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> PortForward:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Whether kubectl still runs."""
        return self._process.poll() is None

    def failed(self, what: str) -> ForwardFailed:
        """Build the error for a forward that does not work, with kubectl's last words.

        Args:
            what: what was seen of it from outside.
        """
        if not self.alive:
            self._readers[1].join(timeout=2)
            what = "it ended"
        return ForwardFailed(self._failure(what))

    def close(self) -> None:
        """End kubectl; the port is free afterwards."""
        processes.stop(self._process)
        for reader in self._readers:
            reader.join()

    def _start(self) -> subprocess.Popen[str]:
        try:
            process = processes.start(self._argv, env=self._env)
        except OSError as error:
            raise ForwardFailed(f"cannot run {self._argv[0]}: {error.strerror}") from error
        self._announced = threading.Event()
        self._announced_port: int | None = None
        # Both pipes are read to their ends: a kubectl whose pipe is full stands still.
        self._readers = [
            threading.Thread(target=self._read_stdout, args=(process,), daemon=True),
            threading.Thread(target=self._read_stderr, args=(process,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        return process

    def _port(self, within: float) -> int:
        if not self._announced.wait(within):
            raise ForwardFailed(self._failure(f"it announced no port within {within:g}s"))
        if self._announced_port is None:
            # Its stdout ended: it is on its way out, and its last words are on stderr.
            self._readers[1].join(timeout=2)
            raise ForwardFailed(self._failure("it ended"))
        return self._announced_port

    def _failure(self, what: str) -> str:
        said = "".join(f"\n  {line}" for line in self._said[-10:])
        return f"cannot forward a port to {self._where}: kubectl port-forward: {what}{said}"

    def _read_stdout(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                found = _ANNOUNCED.search(line)
                if found and self._announced_port is None:
                    self._announced_port = int(found[1])
                    self._announced.set()
        self._announced.set()

    def _read_stderr(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        with process.stderr:
            for line in process.stderr:
                if line.strip():
                    self._said.append(line.rstrip())
