"""`python -m jr2_runtime.operator`."""

from __future__ import annotations

import sys

from jr2_runtime.operator import main

sys.exit(main())
