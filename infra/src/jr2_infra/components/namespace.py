"""The namespace of an Instance: the cluster's mark of who owns it.

Source: spec/converge.md §5.1 and §6.1.
"""

from __future__ import annotations

from typing import Any

from jr2 import names

from ..closed_list import NAMESPACE
from .base import wanted


def namespace(instance: str, name: str) -> dict[str, Any]:
    """Return the wanted Namespace; its one label is the Instance's name."""
    return wanted(NAMESPACE, name, labels={names.LABEL_INSTANCE: instance})
