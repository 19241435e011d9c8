"""What the live objects say that jr2 applied: the checkpoint, the proof, and what is more.

Source: design §5.2 (The cluster is the state).
"""

from __future__ import annotations

from .checkpoint import checkpoint
from .compare import FieldChange
from .derive import derive
from .fields import is_applied
from .live import LiveObject, LiveObjects, ObjectKey, key_of, live_objects
from .more import More, healing, nothing_more
from .proof import Difference, differences, settled
from .sealing import Sealer

__all__ = [
    "Difference",
    "FieldChange",
    "LiveObject",
    "LiveObjects",
    "More",
    "ObjectKey",
    "Sealer",
    "checkpoint",
    "derive",
    "differences",
    "healing",
    "is_applied",
    "key_of",
    "live_objects",
    "nothing_more",
    "settled",
]
