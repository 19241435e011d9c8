"""`python -m jr2_runtime.worker`."""

from __future__ import annotations

import sys

from jr2_runtime.worker import main

sys.exit(main())
