"""What a person or a pipeline must be allowed to do to converge, to preview and to use an Instance.

`grants` says it as data, `manifests` writes it as the Roles of docs/rights.md, and `review` asks the
API server before the first write of a converge, so that a right which is missing is named while
nothing was changed.

Source: design §6.3.
"""

from __future__ import annotations

from .grants import Grant, converge, preview, remove, use
from .manifests import manifests
from .review import check_rights

__all__ = ["Grant", "check_rights", "converge", "manifests", "preview", "remove", "use"]
