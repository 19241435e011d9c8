"""Every refusal, error and warning of seed 003, in its order, with the tests that show its text.

The lines that its examples show of steps that go well follow at the end.

A text is the seed's, after the word table of the design: `<…>` stands for a value, and `…` for a
part that the seed itself leaves open. Two texts have another place than in the seed, as the design
says: lockfiles are met in step 4, and the folder of a Sandbox Image in `jr2 check`.

What only a pod of a Harness, an Effector or a Sandbox can show, and the answers of a model
provider, are not in this table yet.
"""

from __future__ import annotations

from typing import Final

from tests.contract.seed_003.rows import (
    assembly,
    cluster,
    folder,
    git,
    machines,
    rollout,
    secrets,
    steps,
)
from tests.contract.seed_003.rows.row import Row

ROWS: Final[tuple[Row, ...]] = (
    *folder.ROWS,
    *machines.ROWS,
    *assembly.ROWS,
    *cluster.ROWS,
    *secrets.ROWS,
    *rollout.ROWS,
    *git.ROWS,
    *steps.ROWS,
)
