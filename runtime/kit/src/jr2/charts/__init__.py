"""Charts: a Machine as a picture that a pull request shows, `charts/<workflow>.mmd`.

- `labels`: names and texts as Mermaid reads them;
- `draw`: a Machine as a Mermaid state diagram;
- `statements`: what a Chart file says, and in what it differs from its Machine.

Source: design §4.6, ADR-0136.
"""

from .draw import draw
from .statements import Unreadable, difference

__all__ = ["Unreadable", "difference", "draw"]
