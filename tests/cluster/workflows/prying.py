"""Looks around from inside for whatever it can get at, and reports what it found."""

from __future__ import annotations

import ctypes
import hashlib
import os
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import Field

from jr2 import Context, ExternalEvent, Machine

IMAGE_OR_KERNEL = ("/usr", "/proc", "/sys", "/dev")
PTRACE_ATTACH = 16


class Pry(ExternalEvent):
    """Try everything."""

    addresses: list[tuple[str, int]]
    """The requests of `say` go to them."""
    say: list[str]


class Ctx(Context):
    """What was found."""

    files: dict[str, str] = Field(default_factory=dict)
    """Each file beside the image's that can be read, and the SHA-256 of its bytes."""
    writable: list[str] = Field(default_factory=list)
    """Each folder and file in which something can be written."""
    processes: dict[str, str] = Field(default_factory=dict)
    """Each process that is to be seen, and its command."""
    environment: dict[str, str] = Field(default_factory=dict)
    environments: list[str] = Field(default_factory=list)
    """What the environments of the others hold, joined."""
    tries: dict[str, str] = Field(default_factory=dict)
    """What was tried, and the name of the error that came of it, or what was got."""


def seen(top: str) -> Iterator[Path]:
    """Every path below a folder that is no image's and no kernel's."""
    for folder, folders, names in os.walk(top):
        folders[:] = [
            name for name in folders if not str(Path(folder, name)).startswith(IMAGE_OR_KERNEL)
        ]
        yield Path(folder)
        for name in names:
            yield Path(folder, name)


def digest(path: Path) -> str | None:
    """The digest of a file that can be read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return None
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def tried(action: Callable[[], object]) -> str:
    """What came of it."""
    try:
        return str(action())
    except (OSError, ValueError) as refused:
        return type(refused).__name__


def checked(result: int) -> int:
    """The result of a call of the C library."""
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def asked(host: str, port: int, text: str) -> str:
    """The first line of what a server answers."""
    with socket.create_connection((host, port), timeout=60) as connection:
        connection.sendall(text.encode())
        return connection.recv(200).decode(errors="replace").split("\r\n")[0]


def pry(c: Ctx, e: Pry) -> Ctx:
    """Look around."""
    paths = list(seen("/"))
    digests = {str(path): digest(path) for path in paths}
    libc = ctypes.CDLL(None, use_errno=True)
    processes = {}
    environments = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            except OSError:  # It has ended.
                continue
            processes[folder.name] = command
            environments.append(tried((folder / "environ").read_text))
    tries = {
        "become root": tried(lambda: os.setuid(0)),
        "a file of root": tried(lambda: Path("/etc/shadow").read_text()),
        "mount": tried(lambda: checked(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None))),
        "a namespace": tried(lambda: checked(libc.unshare(0x10000000))),
        "a raw socket": tried(
            lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        ),
        "a device": tried(lambda: Path("/dev/mem").read_bytes()),
        "the memory of the kernel": tried(lambda: Path("/proc/kcore").read_bytes()[:1]),
        "a setting of the kernel": tried(
            lambda: Path("/proc/sys/kernel/core_pattern").write_text("|/tmp/x")
        ),
        "the limit of its memory": tried(
            lambda: Path("/sys/fs/cgroup/memory.max").write_text("max")
        ),
        "a group of its own": tried(lambda: Path("/sys/fs/cgroup/mine").mkdir()),
        "trace the first process": tried(
            lambda: checked(libc.ptrace(PTRACE_ATTACH, 1, None, None))
        ),
        "a limit of its own": tried(lambda: _lift()),
    }
    for host, port in e.addresses:
        for text in e.say:
            tries[f"{text.split(' HTTP')[0]} at {port}"] = tried(
                lambda host=host, port=port, text=text: asked(host, port, text)  # type: ignore[misc]
            )
    return c.set(
        files={path: found for path, found in digests.items() if found is not None},
        writable=[str(path) for path in paths if os.access(path, os.W_OK)],
        processes=processes,
        environment=dict(os.environ),
        environments=environments,
        tries=tries,
    )


def _lift() -> object:
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return signal.SIGKILL


m = Machine("prying", context=Ctx, start=lambda i: Ctx())
waiting = m.state("waiting", initial=True)
waiting.gate()
waiting.on(Pry, to=waiting, assign=pry)
machine = m.build()
