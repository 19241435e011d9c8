"""`python -m jr2_cli`: the same as the script `jr2`."""

from __future__ import annotations

import sys

from .main import main

if __name__ == "__main__":
    sys.exit(main())
