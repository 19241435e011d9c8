"""The way from this machine to the Orchestrator: a `kubectl port-forward`.

kubectl binds an ephemeral port of 127.0.0.1 itself and says which, so no other program can take
the port between. Both of its pipes are read to their ends, since a kubectl whose pipe is full stands
still, and its last words are kept for an error. kubectl announces the port before anything behind it
answers, so whoever is about to send waits for an answer first. Whoever is about to send a token has
the answer prove that it comes from the Instance: a port that kubectl let go may be another program's.

Source: spec/converge.md §2.3, design §5.7 and §6.3.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jr2 import errors, names, signed

from . import processes

if TYPE_CHECKING:
    import subprocess

READY_WITHIN: Final = 30.0
"""Seconds that kubectl has to announce its port."""
ANSWER_WITHIN: Final = 30.0
"""Seconds that the Orchestrator has to answer through a port that was announced."""
_LOOK_SECONDS: Final = 0.1
_ANNOUNCED = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+) ->")


class ForwardFailed(errors.StepFailed):
    """kubectl could not forward the port; its own words are in the message."""


class NotTheInstance(errors.StepFailed):
    """What answers through the port is not the Instance's Orchestrator."""


def _proves(content: bytes, signing_key: str, nonce: str) -> bool:
    try:
        given = json.loads(content).get("proof")
        key = signed.read_key(signing_key)
    except (ValueError, AttributeError):
        return False
    return isinstance(given, str) and signed.is_proof(key, nonce, given)


class PortForward:
    """An open forward to the Service of the Orchestrator; use it as a context manager.

    Args:
        kubectl: the program.
        context: the context of the kubeconfig; `None` takes the current one.
        namespace: the namespace of the Instance.
        env: the environment that kubectl reads its kubeconfig from; `None` is what other programs
            inherit of ours.
        ready_within: seconds until the port must be announced.
        start: starts a program whose streams come through pipes; a command that ends its programs
            in its own way gives its own.
        stop: ends what `start` started, and waits until it is gone.

    Raises:
        ForwardFailed: kubectl ended, or said no port in time.
    """

    def __init__(
        self,
        kubectl: Path,
        *,
        context: str | None,
        namespace: str,
        env: Mapping[str, str] | None = None,
        ready_within: float = READY_WITHIN,
        start: Callable[..., subprocess.Popen[str]] = processes.start,
        stop: Callable[[subprocess.Popen[str]], None] = processes.stop,
    ) -> None:
        service = f"service/{names.ORCHESTRATOR}"
        self._argv: tuple[str, ...] = (
            str(kubectl),
            *([f"--context={context}"] if context is not None else []),
            f"--namespace={namespace}",
            "port-forward",
            "--address=127.0.0.1",
            service,
            f":{names.ORCHESTRATOR_PORT}",
        )
        self._env = env
        self._where = f"{service} in namespace {namespace}"
        if context is not None:
            self._where += f" of {context}"
        self._said: list[str] = []
        self._stop = stop
        self._process = self._start(start)
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

    def wait_until_it_answers(
        self, within: float = ANSWER_WITHIN, *, signing_key: str | None = None
    ) -> None:
        """Wait until the Orchestrator answers through the port.

        Args:
            within: seconds.
            signing_key: of the Instance; the answer must sign a nonce with it. `None` takes any
                answer, for whoever sends no token.

        Raises:
            ForwardFailed: kubectl ended, or nothing answered in time.
            NotTheInstance: something else answered.
        """
        import httpx2

        until = time.monotonic() + within
        nonce = secrets.token_urlsafe(32)
        # No token is sent before something answers, and no proxy is for 127.0.0.1.
        with httpx2.Client(base_url=self.url, timeout=within, trust_env=False) as client:
            while True:
                try:
                    answer = client.get("/healthz", headers={names.HEADER_NONCE: nonce})
                    if signing_key is None or _proves(answer.content, signing_key, nonce):
                        return
                    raise NotTheInstance(
                        f"what answers for {self._where} does not prove that it is the Instance's "
                        "Orchestrator, so no token was sent — is it of an older jr2? Then run "
                        "`jr2 up`"
                    )
                except httpx2.HTTPError as error:
                    if not self.alive or time.monotonic() > until:
                        raise self.failed(str(error) or type(error).__name__) from error
                time.sleep(_LOOK_SECONDS)

    def close(self) -> None:
        """End kubectl; the port is free afterwards."""
        self._stop(self._process)
        for reader in self._readers:
            reader.join()

    def _start(self, start: Callable[..., subprocess.Popen[str]]) -> subprocess.Popen[str]:
        try:
            process = start(self._argv, env=self._env)
        except OSError as error:
            raise ForwardFailed(f"cannot run {self._argv[0]}: {error.strerror}") from error
        self._announced = threading.Event()
        self._announced_port: int | None = None
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
