"""What the command tells its dynamic providers: a file that only its owner reads.

Environment and inputs of a resource would show the values to every child process or in an event;
the file is in the run's own folder and goes with it.

Source: design §5.2 (fencing) and §5.4.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

ENV_RUN_FILE: Final = "JR2_RUN_FILE"
FILE_NAME: Final = "run.json"

KUBECONFIG: Final = "kubeconfig"
"""Path of a kubeconfig with the one context of this run."""
KUBECTL: Final = "kubectl"
"""Path of the program kubectl."""
WRAPPER_PID: Final = "wrapper_pid"
WRAPPER_START: Final = "wrapper_start"
"""When the command's process was started, as `process_table.start_of` says it."""
NAMESPACE: Final = "namespace"
LEASES: Final = "leases"
"""The namespaces of the Leases that this run holds, each with its nonce (`leases_text`);
`engine.fence` asks for every one of them before each write."""


def leases_text(leases: Iterable[tuple[str, str]]) -> str:
    """Return what stands under `LEASES`.

    Args:
        leases: namespace and nonce of each Lease.
    """
    return json.dumps([list(pair) for pair in leases])


def leases_of(run: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return namespace and nonce of each Lease that the run holds.

    Raises:
        KeyError: the run file does not say.
    """
    return [(str(namespace), str(nonce)) for namespace, nonce in json.loads(run[LEASES])]


def write_run_file(path: Path, settings: Mapping[str, str]) -> None:
    """Write the run file, readable by its owner alone."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(dict(settings), file)


def read_run_file(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what the command told its providers.

    Raises:
        KeyError: the process was not started by a converge.
    """
    body = json.loads(Path(environ[ENV_RUN_FILE]).read_text(encoding="utf-8"))
    return {str(name): str(value) for name, value in body.items()}
