"""`python -m jr2_runtime.effector`."""

from __future__ import annotations

import sys

from jr2_runtime.effector import main

sys.exit(main())
