"""`python -m jr2_runtime.harness`."""

from __future__ import annotations

import sys

from jr2_runtime.harness import main

sys.exit(main())
