"""Files that only root may read, written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write(path: Path, data: bytes | str) -> None:
    """Write a file with mode 0600; a reader sees the old one or the new one.

    Args:
        path: the file; an older one is replaced.
        data: its content; a text is written as UTF-8.

    Raises:
        OSError: it cannot be written.
    """
    part = path.with_name(f".{path.name}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)
        file.flush()
        # A key that is lost in a power cut would be made anew, and the data with it be lost.
        os.fsync(file.fileno())
    os.replace(part, path)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a value as JSON, which programs that read YAML read as well."""
    write(path, json.dumps(value, indent=2))
