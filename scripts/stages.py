#!/usr/bin/env python3
"""Runs stages of the test suite in three streams, and says what was red first.

Much of the suite waits for a cluster, so one stream leaves half of a machine idle. `cluster` holds
the stages that need the one local cluster, in their order; `others` need nothing of one another.
One stream begins with the cluster's, the others take from the rest, and whoever is done first goes
on with those that are left. The cluster's stages take longest, so the rest gets what they leave of
the processors.

What a stage prints is shown in one piece when it ends, so that nothing is mixed. A set-up that is
red ends its stream's own stages, since they stand on it; red tests end nothing, so that one run
shows all that is wrong. At the end stand the time of each stage and, whole, the output of the stage
that was red first. An interrupt ends what runs and shows what it had printed.

Source: design §8 (the whole of `scripts/test` in 25 minutes), ADR-0168.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

CHECKOUT = Path(__file__).resolve().parents[1]
PATIENCE = 40.0
"""Seconds that a stage has to end after an interrupt, before it is killed."""
PYTEST = ("pytest", "-q")
SHARED = ("-n", "2", "--dist", "worksteal")
"""Two processes that share the tests: neighbours stay together, and so do what they set up."""
IN_ORDER = (*PYTEST, "-p", "no:randomly")
TAKERS = 2
"""Streams beside the one of the cluster."""
BEHIND = 10
"""How much nicer is what runs beside the cluster's stages."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One command of the suite.

    Args:
        name: what the time table calls it.
        command: the program and its arguments.
        is_set_up: the stages after it in its own list stand on it.
    """

    name: str
    command: Sequence[str]
    is_set_up: bool = False


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a stage ended.

    Args:
        stage: which one.
        code: its exit code.
        seconds: how long it took.
        output: what it printed on both streams.
    """

    stage: Stage
    code: int
    seconds: float
    output: str

    @property
    def row(self) -> str:
        """Its line of the time table."""
        ended = "FAILED after " if self.code else ""
        return f"  {self.stage.name}: {ended}{self.seconds:.0f} s"


@dataclass
class Suite:
    """Stages, and how those that ended went.

    Args:
        say: shows some text.
        cwd: where the commands run.
    """

    say: Callable[[str], None]
    cwd: Path = CHECKOUT
    ended: list[Ended] = field(default_factory=list)
    skipped: list[Stage] = field(default_factory=list)
    _running: dict[str, tuple[subprocess.Popen[bytes], IO[bytes]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_over: bool = False

    def run(self, stage: Stage, *, is_behind: bool = False) -> bool:
        """Run one stage and show what it printed; return whether it was green.

        Args:
            stage: which one.
            is_behind: it gets what the other stages leave of the processors.
        """
        with tempfile.TemporaryFile() as output:
            began = time.monotonic()
            with self._lock:
                if self._is_over:
                    return False
                self.say(f"== {stage.name}: begins")
                try:
                    # A session of its own: an interrupt of ours reaches it once, and all of it.
                    child = subprocess.Popen(
                        stage.command,
                        cwd=self.cwd,
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                except OSError as error:
                    text = f"cannot run {stage.command[0]}: {error.strerror}\n"
                    self._end(Ended(stage=stage, code=127, seconds=0, output=text))
                    return False
                self._running[stage.name] = (child, output)
                if is_behind:
                    _put_behind(child.pid)
            code = child.wait()
            with self._lock:
                del self._running[stage.name]
                self._end(
                    Ended(
                        stage=stage,
                        code=code,
                        seconds=time.monotonic() - began,
                        output=_whole(output),
                    )
                )
        return code == 0

    def in_turn(self, stages: Sequence[Stage]) -> None:
        """Run stages one after another; those after a red set-up are left out."""
        for number, stage in enumerate(stages):
            if not self.run(stage) and stage.is_set_up:
                self.skipped += stages[number + 1 :]
                return

    def beside(self, cluster: Sequence[Stage], others: Sequence[Stage]) -> None:
        """Run one list in a stream and the other one in several; return when all are done."""
        left = list(others)

        def take(*, is_behind: bool = True) -> None:
            while True:
                with self._lock:
                    if not left or self._is_over:
                        return
                    stage = left.pop(0)
                self.run(stage, is_behind=is_behind)

        def first() -> None:
            self.in_turn(cluster)
            take(is_behind=False)

        works = [first, *[take] * TAKERS]
        streams = [threading.Thread(target=each, daemon=True) for each in works]
        for stream in streams:
            stream.start()
        for stream in streams:
            # A wait without a limit would not be ended by a signal on every platform.
            while stream.is_alive():
                stream.join(0.5)

    def alone(self, stage: Stage) -> None:
        """Run one stage with nothing beside it."""
        self.beside((stage,), ())

    def interrupt(self) -> None:
        """End all that runs, and show what it had printed."""
        with self._lock:
            self._is_over = True
            running = dict(self._running)
        for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            for child, _ in running.values():
                if child.poll() is None:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(child.pid, sent)
            end = time.monotonic() + PATIENCE
            while any(child.poll() is None for child, _ in running.values()):
                if time.monotonic() > end:
                    break
                time.sleep(0.1)
        end = time.monotonic() + PATIENCE
        while self._running and time.monotonic() < end:
            time.sleep(0.1)

    def report(self, before: Sequence[str], seconds: float) -> int:
        """Show the time table and the first red stage; return the exit code.

        Args:
            before: rows of what was done before.
            seconds: how long the stages took together.
        """
        rows = [*before, *(each.row for each in self.ended)]
        rows += [f"  {stage.name}: not run" for stage in self.skipped]
        self.say("\n".join(["== time", *rows, f"  the streams together: {seconds:.0f} s"]))
        red = [each for each in self.ended if each.code]
        if red:
            self.say(f"== the first that failed: {red[0].stage.name}\n{red[0].output.rstrip()}")
            self.say(f"FAILED: {', '.join(each.stage.name for each in red)}")
        return 1 if red or self.skipped else 0

    def _end(self, ended: Ended) -> None:
        self.ended.append(ended)
        self.say(f"== {ended.row.strip()}\n{ended.output.rstrip()}".rstrip())


def _put_behind(leader: int) -> None:
    """Lower the share of a stage, both as processes and, where Linux groups sessions, as a group."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PGRP, leader, os.nice(0) + BEHIND)
    with contextlib.suppress(OSError):
        Path(f"/proc/{leader}/autogroup").write_text(str(BEHIND))


def _whole(output: IO[bytes]) -> str:
    output.seek(0)
    return output.read().decode(errors="replace")


COMPILED = ("scripts/with-compiled-kernel",)
"""The kernel is machine code in pods, so what is killed and what is compared runs it too."""
_DOCS_INDEX = "tests/unit/kit/test_docs_index.py"
"""The pages are not in the image."""
_LOCAL = "tests/cluster/local_cluster"
_WHOLE_MACHINE = f"{_LOCAL}/test_create_and_delete.py"
FIRST = Stage(name="local cluster, made and deleted", command=(*IN_ORDER, _WHOLE_MACHINE))
"""It compares the machine before and after, so nothing else may run."""
CLUSTER = (
    Stage(
        name="local cluster, killed",
        command=(*IN_ORDER, _LOCAL, f"--ignore={_WHOLE_MACHINE}"),
    ),
    Stage(name="cluster", command=("jr2", "cluster", "create"), is_set_up=True),
    Stage(name="Kit images", command=("scripts/build-kit-images",), is_set_up=True),
    Stage(name="cluster tests", command=(*IN_ORDER, "tests/cluster", f"--ignore={_LOCAL}")),
)
FAST = (
    Stage(
        name="unit and contract tests", command=(*PYTEST, *SHARED, "tests/unit", "tests/contract")
    ),
    Stage(name="types, under each checker", command=(*PYTEST, "tests/typing")),
    Stage(name="Charts and the Console in the browser", command=(*PYTEST, "tests/browser")),
    Stage(name="branches of the kernel", command=("scripts/kernel-branches",)),
)
OTHERS = (
    Stage(name="API server tests", command=(*PYTEST, "tests/apiserver")),
    FAST[0],
    Stage(name="chaos tests", command=(*COMPILED, *PYTEST, "tests/chaos")),
    Stage(
        name="the Kit with a compiled kernel",
        command=(*COMPILED, *PYTEST, *SHARED, "tests/unit/kit", f"--ignore={_DOCS_INDEX}"),
    ),
    *FAST[1:],
    Stage(name="registry tests", command=(*PYTEST, "tests/registry")),
    Stage(name="image tests", command=(*PYTEST, "tests/images")),
)
"""Those that wait a lot stand beside those that do not."""
LAST = Stage(name="speed, side by side", command=(*IN_ORDER, "tests/bench"))
"""A measurement needs the machine for itself."""


def has_cluster() -> bool:
    """Whether there is a local cluster, running or stopped."""
    asked = subprocess.run(
        ("jr2", "cluster", "status", "--json"), capture_output=True, text=True, check=False
    )
    try:
        return bool(json.loads(asked.stdout)["state"] != "absent")
    except (ValueError, KeyError):
        # What cannot be read may be there, and its data are not ours to delete.
        return True


def main(arguments: Sequence[str]) -> int:
    """Run the suite; return its exit code.

    Args:
        arguments: `--fast` for what needs no cluster, then the rows of what was done before.
    """
    began = time.monotonic()
    is_fast = "--fast" in arguments
    before = [f"  {row}" for row in arguments if row != "--fast"]
    suite = Suite(say=lambda text: print(text, file=sys.stderr, flush=True))

    def end(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    is_ours = not is_fast and not has_cluster()
    is_interrupted = False
    try:
        if is_fast:
            suite.beside((), FAST)
        else:
            suite.alone(FIRST)
            suite.beside(CLUSTER, OTHERS)
            suite.alone(LAST)
    except KeyboardInterrupt:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        is_interrupted = True
        suite.interrupt()
    if is_ours:
        subprocess.run(("jr2", "cluster", "delete", "--yes"), capture_output=True, check=False)
    code = suite.report(before, time.monotonic() - began)
    return 130 if is_interrupted else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
