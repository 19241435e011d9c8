"""Plain Pulumi interrupts its program once or more, at any time: it ends without a trace."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.waiting import LIMIT

# Each script ends in an interpreter that waits for the call of a thread, as one waits for the
# answer of the engine, until its standard input is closed.
_THREAD = """
import sys, time
from concurrent.futures import ThreadPoolExecutor, thread

def call():
    while not thread._shutdown:
        time.sleep(0.005)
    print("ending", flush=True)
    sys.stdin.read()

pool = ThreadPoolExecutor(1)
pool.submit(call)
"""
_LEAVES = f"""
from jr2_cli import interrupt
interrupt.leave_at_first()
{_THREAD}
print("ready", flush=True)
time.sleep(3600)
"""
_FAILED = f"""
import asyncio
from jr2_cli import interrupt
from jr2_infra.plain import run
interrupt.leave_at_first()
{_THREAD}
async def program():
    asyncio.current_task().add_done_callback(run._over)
    raise ValueError

try:
    asyncio.run(program())
except ValueError:
    print("ready", flush=True)
    sys.exit(1)
"""


@pytest.mark.parametrize(
    ("script", "first", "code"),
    [(_LEAVES, signal.SIGINT, 130), (_FAILED, None, 1)],
    ids=["interrupted", "failed"],
)
def test_an_interrupt_of_an_ending_program_says_nothing(
    script: str, first: signal.Signals | None, code: int
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        if first is not None:
            child.send_signal(first)
        # The interpreter waits for its threads.
        assert child.stdout.readline() == "ending\n"
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=LIMIT)

    assert (child.returncode, err) == (code, "")
