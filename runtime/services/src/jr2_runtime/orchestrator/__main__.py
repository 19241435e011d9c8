"""`python -m jr2_runtime.orchestrator`."""

from __future__ import annotations

import sys

from jr2_runtime.orchestrator import main

sys.exit(main())
