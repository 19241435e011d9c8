"""How an error of a dynamic provider reaches the person as it was written.

The engine shows an exception of a provider as a traceback. So the provider writes its error to a
file that the command named and raises a marker; the command reads the file and drops what the
engine says. The first error of a run stands, whatever fails after it.

Source: design §5.4, libraries.md §2.1 (rule 6).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from jr2.errors import Aborted, Jr2Error, Refusal, StepFailed

ENV_FAILURE_FILE: Final = "JR2_FAILURE_FILE"

_CLASSES: Final[Mapping[str, type[Jr2Error]]] = {
    "refusal": Refusal,
    "step": StepFailed,
    "aborted": Aborted,
}


def write_failure(error: Jr2Error, environ: Mapping[str, str] = os.environ) -> None:
    """Write an error to the failure file, unless another one stands there already.

    Args:
        error: what to print.
        environ: where the file's path comes from; without it, as in a plain `pulumi up`, the error
            goes to standard error.
    """
    path = environ.get(ENV_FAILURE_FILE)
    if not path:
        os.write(2, f"{error.printed}\n".encode())
        return
    kind = next((name for name, cls in _CLASSES.items() if isinstance(error, cls)), "step")
    body = json.dumps({"kind": kind, "message": error.message, "prefix": error.prefix})
    # Written aside and linked into place: whoever reads the file reads all of it.
    aside = Path(f"{path}.{os.getpid()}.{id(error)}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(body)
    try:
        os.link(aside, path)
    except FileExistsError:
        pass
    finally:
        aside.unlink()


def read_failure(path: Path) -> Jr2Error | None:
    """Return the error that a provider wrote; `None` when none did."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return _CLASSES[body["kind"]](body["message"], prefix=body["prefix"])
