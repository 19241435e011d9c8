"""Copies of the store on its own volume, and the way back to one of them.

Source: design §4.3, ADR-0143.
"""

from __future__ import annotations

from .copies import BackupFailed, Backups
from .restore import RestoreFailed, finish, prepare

__all__ = ["BackupFailed", "Backups", "RestoreFailed", "finish", "prepare"]
