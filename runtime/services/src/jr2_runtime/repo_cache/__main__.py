"""`python -m jr2_runtime.repo_cache`."""

from __future__ import annotations

import sys

from jr2_runtime.repo_cache import main

sys.exit(main())
