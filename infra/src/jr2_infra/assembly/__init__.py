"""The Assembly: what the Orchestrator loads from an Instance folder.

`stage` reads the folder and its locked dependencies and gives one hash for them; `write_archive`
puts the same entries into one archive; `publish` sends it. Nothing here needs a cluster but
`publish`.

Source: seed 000 (The Assembly), design §5.5, spec/converge.md §8.
"""

from __future__ import annotations

from .archive import write_archive
from .publish import OrchestratorAnswer, assemblies, publish
from .stage import StagedAssembly, fits, stage

__all__ = [
    "OrchestratorAnswer",
    "StagedAssembly",
    "assemblies",
    "fits",
    "publish",
    "stage",
    "write_archive",
]
