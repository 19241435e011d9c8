"""What the pod tells the Effector: the key that it shares with the Orchestrator, and its port.

Source: spec/runtime.md §4, design §6.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from jr2 import names, signed

_HIGHEST_PORT: Final = 65_535


class BadSettings(Exception):
    """A file or a variable of the pod is missing or is not what it should be; no value is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What one Effector is told.

    Args:
        key: the key of this placement; the Orchestrator derives the same one.
        port: where it listens.
    """

    key: bytes = field(repr=False)
    port: int


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read the settings.

    Args:
        environment: read for `JR2_VALUES_PATH` and `PORT`.

    Raises:
        BadSettings: the file of the key cannot be read or holds none, or the port is none.
    """
    port = environment.get("PORT", str(names.EFFECTOR_PORT))
    if not port.isascii() or not port.isdigit() or int(port) > _HIGHEST_PORT:
        raise BadSettings("PORT is no port")
    folder = Path(environment.get("JR2_VALUES_PATH", names.EFFECTOR_VALUES_PATH))
    place = folder / names.FILE_SIGNING_KEY
    try:
        key = signed.read_key(place.read_text("ascii"))
    except (OSError, UnicodeError) as failed:
        raise BadSettings(f"{place} cannot be read") from failed
    except signed.BadKey as bad:
        raise BadSettings(f"{place}: {bad}") from bad
    return Settings(key=key, port=int(port))
