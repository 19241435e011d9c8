"""Who may reach, read and be what: addresses, files, users."""

from __future__ import annotations

import base64
import contextlib
import os
import secrets
import socket
import struct
from pathlib import Path

import pytest

from jr2_cli.local_cluster import layout
from tests.waiting import wait_for

from .conftest import STATE, Machine, Witness, cluster_processes

pytestmark = pytest.mark.cluster

LISTENS = "0A"
UNCONNECTED = "07"


def address(text: str) -> str:
    """An address as people write it; the kernel writes each word with its lowest byte first."""
    words = [struct.pack("<I", int(text[i : i + 8], 16)) for i in range(0, len(text), 8)]
    family = socket.AF_INET if len(words) == 1 else socket.AF_INET6
    return socket.inet_ntop(family, b"".join(words))


def test_an_address_of_the_kernel_is_read() -> None:
    assert address("0100007F") == "127.0.0.1"
    assert address("00000000000000000000000000000000") == "::"


def listeners(pids: set[int]) -> dict[str, set[str]]:
    """The addresses that processes wait on, for each table of the kernel."""
    sockets = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for link in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    sockets.add(os.readlink(link))
    found: dict[str, set[str]] = {}
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            waits = LISTENS if table.startswith("tcp") else UNCONNECTED
            if fields[3] == waits and f"socket:[{fields[9]}]" in sockets:
                found.setdefault(table, set()).add(address(fields[1].partition(":")[0]))
    return found


def test_nothing_listens_beyond_loopback_and_the_node(running: Machine, witness: Witness) -> None:
    pids = cluster_processes()
    assert {pid for pid in running.pids().values() if pid is not None} < pids

    found = listeners(pids)

    assert found == {"tcp": {"127.0.0.1", layout.NODE_ADDRESS}, "udp": {layout.NODE_ADDRESS}}


def test_everything_of_the_cluster_is_behind_a_folder_of_root(running: Machine) -> None:
    status = STATE.stat()
    files = layout.Layout()

    assert (status.st_uid, status.st_mode & 0o777) == (0, 0o700)
    for folder in (files.pki, files.config, files.logs, files.etcd):
        assert (folder.stat().st_uid, folder.stat().st_mode & 0o077) == (0, 0), folder
    for path in [*files.pki.iterdir(), *files.config.rglob("*"), files.record]:
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_user_that_is_not_root_reads_nothing_and_reaches_no_socket(running: Machine) -> None:
    files = layout.Layout()
    child = os.fork()
    if child == 0:
        # Nothing of pytest may run here: the answer is the exit code.
        code = 0
        try:
            os.setgroups([])
            os.setgid(65_534)
            os.setuid(65_534)
            for path in (files.key("admin"), files.record, files.etcd):
                with contextlib.suppress(PermissionError):
                    os.open(path, os.O_RDONLY)
                    code = 1
            for path in (files.containerd_socket, files.buildkit_socket):
                with socket.socket(socket.AF_UNIX) as client, contextlib.suppress(PermissionError):
                    client.connect(str(path))
                    code = 2
        except BaseException:
            code = 3
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_jr2_is_a_user_of_its_own_whose_rights_are_a_binding(running: Machine) -> None:
    who = running.kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
    groups = running.kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.groups}")

    assert who == "jr2"
    assert "jr2-local:admins" in groups
    assert "system:masters" not in groups
    binding = running.get("clusterrolebinding", "jr2-local:admins")
    assert binding["roleRef"]["name"] == "cluster-admin"


def test_a_secret_is_encrypted_at_rest_and_a_config_map_is_not(witness: Witness) -> None:
    hidden, shown = (f"at-rest-{secrets.token_hex(8)}" for _ in range(2))
    witness.kubectl("create", "secret", "generic", "rest", f"--from-literal=key={hidden}")
    witness.kubectl("create", "configmap", "rest", f"--from-literal=key={shown}")

    def is_on_disk(text: str) -> bool:
        for path in layout.Layout().etcd.rglob("*"):
            # etcd writes some files under another name first.
            with contextlib.suppress(FileNotFoundError):
                if path.is_file() and text.encode() in path.read_bytes():
                    return True
        return False

    wait_for("the ConfigMap is on the disk", lambda: is_on_disk(shown))
    assert not is_on_disk(hidden)
    assert not is_on_disk(base64.b64encode(hidden.encode()).decode())
