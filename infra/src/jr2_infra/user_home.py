"""The home folder of the user, where caches, keys and settings of other programs are looked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from jr2.errors import StepFailed


def folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the home folder: `HOME`, else what the system knows of the user.

    Args:
        environ: the environment.

    Raises:
        StepFailed: neither says one, as in a container whose user has a number and no name.
    """
    said = environ.get("HOME")
    if said:
        return Path(said)
    try:
        return Path.home()
    except RuntimeError as error:
        raise StepFailed(
            f"HOME is not set, and the user {os.getuid()} has no home folder — set HOME to a "
            "folder that you may write"
        ) from error
