"""Where the Orchestrator keeps its state, listens, and finds its worker.

A value comes from an argument, else from the environment, else from `jr2.names`. The last is what
the image uses; the others let a test run the program as a plain process in a folder of its own. No
secret is a setting: the digests are files.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jr2 import names


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What one Orchestrator needs to know."""

    state: Path
    """The folder of the database and the Assemblies."""
    values: Path
    """The folder with the files of the Secret `jr2-orchestrator`."""
    socket: str
    """The worker's Unix socket."""
    worker_uid: int
    """The only user id that may listen there."""
    host: str
    """The address to listen on; empty for every one, of both families."""
    port: int
    """The TCP port; 0 takes a free one, and the log says which."""
    account: Path
    """The folder of the service account; without its token no map is watched."""
    namespace: str | None
    """The Instance's namespace, which is part of the names of the Service."""
    restore: str | None
    """The backup that the store is to be restored from, once."""


def read_settings(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """Return the settings of one call of the program.

    Args:
        arguments: without the program's name.
        environment: read for `JR2_STATE_PATH`, `JR2_VALUES_PATH`, `JR2_WORKER_SOCKET`,
            `JR2_WORKER_UID`, `JR2_HOST`, `JR2_PORT`, `JR2_SERVICE_ACCOUNT_PATH` and
            `JR2_NAMESPACE` and `JR2_RESTORE`.
    """

    def default(name: str, value: object) -> str:
        return environment.get(name, str(value))

    parser = argparse.ArgumentParser(prog="jr2-orchestrator", allow_abbrev=False)
    parser.add_argument("--state", default=default("JR2_STATE_PATH", names.STATE_PATH))
    parser.add_argument("--values", default=default("JR2_VALUES_PATH", names.VALUES_PATH))
    parser.add_argument("--socket", default=default("JR2_WORKER_SOCKET", names.WORKER_SOCKET))
    parser.add_argument(
        "--worker-uid", type=int, default=int(default("JR2_WORKER_UID", names.WORKER_UID))
    )
    parser.add_argument("--host", default=default("JR2_HOST", ""))
    parser.add_argument(
        "--port", type=int, default=int(default("JR2_PORT", names.ORCHESTRATOR_PORT))
    )
    parser.add_argument(
        "--account", default=default("JR2_SERVICE_ACCOUNT_PATH", names.SERVICE_ACCOUNT_PATH)
    )
    given = parser.parse_args(list(arguments))
    return Settings(
        state=Path(given.state),
        values=Path(given.values),
        socket=given.socket,
        worker_uid=given.worker_uid,
        host=given.host,
        port=given.port,
        account=Path(given.account),
        namespace=environment.get(names.ENV_NAMESPACE) or None,
        restore=environment.get(names.ENV_RESTORE) or None,
    )
