"""A program of a pod as a process of its own, and a client of the port that its log names."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2

from tests.waiting import LIMIT


@dataclass
class Served:
    process: subprocess.Popen[str]
    client: httpx2.Client
    first_line: dict[str, Any]

    def stop(self) -> tuple[int, list[dict[str, Any]]]:
        """Tell it to end as the kubelet does; return its exit code and what else it logged."""
        self.process.send_signal(signal.SIGTERM)
        log, _ = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, [json.loads(line) for line in log.splitlines()]


def command(module: str) -> list[str]:
    return [sys.executable, "-m", module]


def environment(**own: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PORT": "0", **own}


@contextlib.contextmanager
def served(module: str, **own: str) -> Iterator[Served]:
    """Start a program and wait until it says that it listens."""
    process = subprocess.Popen(
        command(module), env=environment(**own), stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        assert said["message"] == "listening", said
        with httpx2.Client(
            base_url=f"http://127.0.0.1:{said['port']}", timeout=LIMIT, trust_env=False
        ) as client:
            yield Served(process, client, said)
    finally:
        process.kill()
        process.wait(timeout=LIMIT)
        if process.stdout is not None:
            process.stdout.close()


def fails_to_start(module: str, **own: str) -> dict[str, Any]:
    """Start a program that cannot start; return the one line that it says."""
    done = subprocess.run(
        command(module),
        env=environment(**own),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert done.stderr == ""
    said: dict[str, Any] = json.loads(done.stdout)
    return said
