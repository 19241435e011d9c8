"""The supervisor: who may connect, what it starts, and that a connection and its process are one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jr2 import frames, names
from jr2_runtime.worker import spawn, supervisor
from jr2_runtime.worker.settings import Settings, read_settings
from tests.waiting import LIMIT

pytestmark = pytest.mark.anyio

HASH = "a" * 64
STUB = """
import json, os, socket, struct, sys, time
connection = socket.socket(fileno=int(sys.argv[1]))
connection.recv(1)  # as the real one, it speaks when it is asked
facts = {
    "environment": sorted(os.environ),
    "descriptors": sorted(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(
        f"/proc/self/fd/{n}")),
    "stdin": os.readlink("/proc/self/fd/0"),
    "blocking": os.get_blocking(connection.fileno()),
    "session": os.getsid(0) == os.getpid(),
    "pid": os.getpid(),
}
child = os.fork() if len(sys.argv) > 2 else 1
if child == 0:
    time.sleep(600)
head = json.dumps(facts).encode()
connection.sendall(struct.pack(">II", len(head), 0) + head)
what = connection.recv(100)
if what == b"spin":
    while True:
        pass
"""


def launch(*more: str) -> Any:
    def argv(python: str, kit: str, assembly: str, descriptor: int) -> list[str]:
        return [python, "-I", "-S", "-c", STUB, str(descriptor), *more]

    return argv


@pytest.fixture
def settings(short_folder: Path) -> Settings:
    (short_folder / "assemblies" / HASH).mkdir(parents=True)
    return Settings(
        socket=str(short_folder / "s"),
        assemblies=str(short_folder / "assemblies"),
        kit_path="",
        python=sys.executable,
        peer_uid=os.getuid(),
        memory=256 * 2**20,
        socket_group=None,
    )


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[supervisor.Supervisor]:
    made = supervisor.Supervisor(settings)
    running = asyncio.ensure_future(made.serve())
    async with asyncio.timeout(LIMIT):
        await made.listening.wait()
    try:
        yield made
    finally:
        made.stop()
        async with asyncio.timeout(LIMIT):
            await running


async def open_assembly(
    settings: Settings, wanted: Any = HASH
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, Any]:
    reader, writer = await asyncio.open_unix_connection(settings.socket)
    writer.write(frames.encode({"open": wanted}))
    async with asyncio.timeout(LIMIT):
        received = await frames.read(reader)
    return reader, writer, received and received[0]


async def facts(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> dict[str, Any]:
    writer.write(b"?")
    async with asyncio.timeout(LIMIT):
        received = await frames.read(reader)
    assert received is not None
    return received[0]


def is_there(process: int) -> bool:
    return os.path.exists(f"/proc/{process}")


async def gone(process: int) -> None:
    async with asyncio.timeout(LIMIT):
        while is_there(process):  # noqa: ASYNC110 - another process ends
            await asyncio.sleep(0.005)


async def test_a_process_gets_its_connection_and_nothing_else(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "launch_argv", launch())
    monkeypatch.setenv("SECRET", "canary")
    leak = os.open(settings.assemblies, os.O_RDONLY)
    async with serving(settings):
        reader, writer, answer = await open_assembly(settings)
        assert answer == {"ok": True}
        found = await facts(reader, writer)
        writer.close()
        await gone(found["pid"])
    os.close(leak)
    assert found["environment"] == sorted(spawn.ENVIRONMENT)
    assert found["descriptors"] == [0, 1, 2, 3]
    assert found["stdin"] == "/dev/null"
    assert found["blocking"] is True
    assert found["session"] is True


async def test_a_hang_up_kills_a_process_that_does_not_listen(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "launch_argv", launch())
    async with serving(settings):
        reader, writer, _ = await open_assembly(settings)
        process = (await facts(reader, writer))["pid"]
        writer.write(b"spin")
        await writer.drain()
        writer.close()
        await gone(process)


async def test_the_connection_ends_with_its_process_though_a_child_holds_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "launch_argv", launch("fork"))
    async with serving(settings):
        reader, writer, _ = await open_assembly(settings)
        process = (await facts(reader, writer))["pid"]
        os.kill(process, signal.SIGKILL)
        async with asyncio.timeout(LIMIT):
            assert await reader.read() == b""
        writer.close()


async def test_what_is_no_assembly_is_refused(settings: Settings) -> None:
    async with serving(settings):
        for wanted, text in (
            ("b" * 64, "there is no Assembly bbbbbbbbbbbb"),
            ("../" + HASH, "64 hex digits"),
            (HASH.upper(), "64 hex digits"),
            (None, "64 hex digits"),
            (["x"], "64 hex digits"),
        ):
            _, writer, answer = await open_assembly(settings, wanted)
            assert text in answer["error"]
            writer.close()


async def test_another_user_and_a_stranger_to_the_wire_are_cut(settings: Settings) -> None:
    async with serving(replace(settings, peer_uid=os.getuid() + 1)):
        reader, writer = await asyncio.open_unix_connection(settings.socket)
        async with asyncio.timeout(LIMIT):
            with_reset: bytes | None = None
            try:
                with_reset = await reader.read()
            except ConnectionResetError:
                with_reset = b""
        assert with_reset == b""
        writer.close()
    async with serving(settings):
        for nonsense in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 8, b"\0\0\0\x02\0\0\0\0[]"):
            reader, writer = await asyncio.open_unix_connection(settings.socket)
            writer.write(nonsense)
            async with asyncio.timeout(LIMIT):
                try:
                    received = await reader.read()
                except ConnectionResetError:
                    received = b""
            assert received == b"" or b"64 hex digits" in received
            writer.close()


async def test_a_left_socket_is_replaced_and_only_owner_and_group_may_use_it(
    settings: Settings,
) -> None:
    Path(settings.socket).write_text("left")  # noqa: ASYNC240 - before anything runs
    async with serving(settings):
        _, writer, answer = await open_assembly(settings, "b" * 64)
        assert "error" in answer
        assert os.stat(settings.socket).st_mode & 0o777 == 0o660
        writer.close()
    assert os.listdir(os.path.dirname(settings.socket)) == ["assemblies"]


def test_the_defaults_are_those_of_the_image() -> None:
    settings = read_settings([], {})
    assert settings.socket == names.WORKER_SOCKET
    assert settings.assemblies == names.WORKER_ASSEMBLIES_PATH
    assert settings.kit_path == names.KIT_PATH
    assert settings.peer_uid == names.ORCHESTRATOR_UID


def test_the_supervisor_imports_no_service() -> None:
    code = textwrap.dedent(
        """
        import json, sys
        before = set(sys.modules)
        import jr2_runtime.worker.program, jr2_runtime.worker.supervisor
        print(json.dumps(sorted({name.split(".")[0] for name in set(sys.modules) - before})))
        print(json.dumps([name for name in sys.modules if name.startswith("jr2_runtime.")]))
        """
    )
    output = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=LIMIT
    ).stdout.splitlines()
    top, own = (json.loads(line) for line in output)
    kit = {"jr2", "pydantic", "pydantic_core", "annotated_types", "typing_extensions"}
    kit |= {"typing_inspection"}
    others = {
        name
        for name in top
        if name not in sys.stdlib_module_names and not name.startswith("_") and name not in kit
    }
    assert others == {"jr2_runtime"}
    assert {name.split(".")[1] for name in own} == {"worker"}
