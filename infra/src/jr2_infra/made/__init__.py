"""Which objects of a namespace a converge made: only those may a converge delete.

Labels and `managedFields` can be forged by whoever may write an object. A uid cannot, and the list
of uids stands where only those write who may also say whose the namespace is.

Source: design §5.2, ADR-0154.
"""

from __future__ import annotations

from .keep import keep
from .record import Made, Marking, Marks, left_lines, marking, read, settled

__all__ = ["Made", "Marking", "Marks", "keep", "left_lines", "marking", "read", "settled"]
