"""The environment that other programs inherit: what a person exported, without what `.env` filled.

`.env` holds secrets for the config of one Instance. The command fills its own environment from it,
since the config reads it there; the engine, its plugins, kubectl and the `exec` plugins of a
kubeconfig have no use for it, and none of them gets it.

Source: spec/converge.md §2.2, design §5.1.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Final

_PLACES: Final = frozenset({"KUBECONFIG"})
"""Names of files, which a program must look for where the command does."""

_withheld: frozenset[str] = frozenset()


def withhold(names: Iterable[str]) -> None:
    """Keep variables to this process; each call takes the place of the one before.

    Args:
        names: the names that were filled from `.env`.
    """
    global _withheld
    _withheld = frozenset(names) - _PLACES


def environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment that another program may have.

    Args:
        environ: ours.
    """
    return {name: value for name, value in environ.items() if name not in _withheld}
