"""Does on request what code that wants more than its own run would do; each try is noted."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from pydantic import Field

from jr2 import Context, ExternalEvent, Machine

LEAKED: list[bytearray] = []


class Leak(ExternalEvent):
    """Keep memory for ever, and go on."""

    megabytes: int


class Fork(ExternalEvent):
    """Leave a process behind that belongs to nobody, then end this one."""

    marker: str


class Say(ExternalEvent):
    """Write to every descriptor that there is."""


class Pry(ExternalEvent):
    """Try to open files and to signal a process."""

    files: list[str]
    process: int


class Ctx(Context):
    """The data."""

    notes: dict[str, str] = Field(default_factory=dict)


def leak(c: Ctx, e: Leak) -> Ctx:
    """Keep memory."""
    LEAKED.append(bytearray(e.megabytes * 2**20))
    return c


def fork(c: Ctx, e: Fork) -> Ctx:
    """Leave a process of a session of its own behind."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                # It may be killed at any point, so whoever reads the file finds all of it or none.
                part = Path(f"{e.marker}.part")
                part.write_text(str(os.getpid()))
                part.replace(e.marker)
                time.sleep(0.02)
        os._exit(0)
    while not Path(e.marker).exists():
        time.sleep(0.01)
    os._exit(3)


def say(c: Ctx, e: Say) -> Ctx:
    """Write what is no reply wherever a print might go."""
    print("a word that is no reply")
    os.write(1, b"another\n")
    return c.set(notes={"said": "yes"})


def tried(what: str, target: str) -> str:
    """Return what became of one try."""
    try:
        if what == "read":
            return f"got {len(Path(target).read_bytes())} bytes"
        if what == "write":
            with Path(target).open("ab"):
                return "opened it"
        os.kill(int(target), signal.SIGCONT)
    except OSError as refused:
        return type(refused).__name__
    return "signalled it"


def pry(c: Ctx, e: Pry) -> Ctx:
    """Try each, and note what came of it."""
    notes = {f"{how} {file}": tried(how, file) for file in e.files for how in ("read", "write")}
    notes["signal"] = tried("signal", str(e.process))
    notes["environment"] = " ".join(sorted(os.environ))
    return c.set(notes=notes)


m = Machine("thief", context=Ctx, start=lambda i: Ctx())
waiting = m.state("waiting", initial=True)
waiting.gate()
waiting.on(Leak, to=waiting, assign=leak)
waiting.on(Fork, to=waiting, assign=fork)
waiting.on(Say, to=waiting, assign=say)
waiting.on(Pry, to=waiting, assign=pry)
machine = m.build()
