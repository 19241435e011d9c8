"""The stand-in for Pulumi's language host: it serves, and ends without a word."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import LIMIT

HOST = Path(__file__).resolve().parents[3] / "programs" / "pulumi-language-python"


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_quietly(stop: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, str(HOST), "127.0.0.1:1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert int(child.stdout.readline()) > 0
        child.send_signal(stop)
        out, err = child.communicate(timeout=LIMIT)

    assert (child.returncode, out, err) == (0, "", "")
