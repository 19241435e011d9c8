"""Where the supervisor listens and what it starts; every value has its place in `jr2.names`.

A value comes from an argument, else from the environment, else from `jr2.names`. The last is what
the image uses; the others let a test run the program as a plain process in a folder of its own.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jr2 import names


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What one supervisor needs to know."""

    socket: str
    """The path of the Unix socket that it listens on."""
    assemblies: str
    """The folder that holds one folder for each Assembly, named by its hash."""
    kit_path: str
    """The folder that holds the closure of the distribution `jr2`, and nothing else."""
    python: str
    """The interpreter of the Assembly processes."""
    peer_uid: int
    """The only user id that may connect."""
    memory: int
    """Bytes of data that each Assembly process may have."""
    socket_group: int | None
    """The group of the socket; `None` leaves it as the folder gives it."""


MEMORY: Final = 320 * 2**20
"""Of the 512 MiB of the container: one process may be at its limit while another works."""


def read_settings(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """Return the settings of one call of the program.

    Args:
        arguments: without the program's name.
        environment: read for `JR2_WORKER_SOCKET`, `JR2_WORKER_ASSEMBLIES_PATH`, `JR2_KIT_PATH`,
            `JR2_PYTHON`, `JR2_ORCHESTRATOR_UID`, `JR2_STATE_GROUP` and `JR2_WORKER_MEMORY`.
    """

    def default(name: str, value: object) -> str:
        return environment.get(name, str(value))

    parser = argparse.ArgumentParser(prog="jr2-worker", allow_abbrev=False)
    parser.add_argument("--socket", default=default("JR2_WORKER_SOCKET", names.WORKER_SOCKET))
    parser.add_argument(
        "--assemblies",
        default=default("JR2_WORKER_ASSEMBLIES_PATH", names.WORKER_ASSEMBLIES_PATH),
    )
    parser.add_argument("--kit-path", default=default("JR2_KIT_PATH", names.KIT_PATH))
    parser.add_argument("--python", default=default("JR2_PYTHON", sys.executable))
    parser.add_argument(
        "--peer-uid", type=int, default=int(default("JR2_ORCHESTRATOR_UID", names.ORCHESTRATOR_UID))
    )
    parser.add_argument(
        "--socket-group", type=int, default=int(default("JR2_STATE_GROUP", names.STATE_GROUP))
    )
    parser.add_argument(
        "--memory", type=int, default=int(default("JR2_WORKER_MEMORY", MEMORY)), metavar="BYTES"
    )
    given = parser.parse_args(list(arguments))
    return Settings(
        socket=given.socket,
        assemblies=given.assemblies,
        kit_path=given.kit_path,
        python=given.python,
        peer_uid=given.peer_uid,
        memory=given.memory,
        socket_group=given.socket_group if given.socket_group in os.getgroups() else None,
    )
