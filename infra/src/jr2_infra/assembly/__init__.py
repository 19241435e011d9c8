"""The Assembly: what the Orchestrator loads from an Instance folder.

`stage` reads the folder and its locked dependencies and gives one hash for them; `write_parcel`
lists the same entries with their digests; `publish` sends what the Orchestrator lacks of them.
Nothing here needs a cluster but `publish`.

Source: seed 000 (The Assembly), design §5.5, spec/converge.md §8.
"""

from __future__ import annotations

from .parcel import Parcel, pack, read_parcel, write_parcel
from .publish import BrokeOff, OrchestratorAnswer, assemblies, publish
from .stage import StagedAssembly, fits, stage

__all__ = [
    "BrokeOff",
    "OrchestratorAnswer",
    "Parcel",
    "StagedAssembly",
    "assemblies",
    "fits",
    "pack",
    "publish",
    "read_parcel",
    "stage",
    "write_parcel",
]
