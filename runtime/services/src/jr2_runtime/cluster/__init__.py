"""How a program in a pod reaches the API server, and follows a list of objects there."""

from __future__ import annotations

from .connection import Cluster
from .following import Follow, WatchBroken

__all__ = ["Cluster", "Follow", "WatchBroken"]
