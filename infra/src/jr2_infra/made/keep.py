"""Write the record of what was made, so that no other run's is overwritten.

It stands on the Namespace: whoever may write there may also say whose the namespace is, and may
delete all that is in it. The write is guarded by the text that was read, and by the version of the
Namespace, which other controllers write, too.

Source: design §5.2, ADR-0154.
"""

from __future__ import annotations

from typing import Final

import httpx2

from jr2 import names
from jr2.errors import StepFailed

from ..api import Api, ApiError, words
from ..closed_list import NAMESPACE
from .record import Made

_TRIES: Final = 8
_CONFLICT: Final = 409


def keep(api: Api, namespace: str, made: Made, *, over: str | None) -> str:
    """Write a record over the one that was read, and return its text.

    Args:
        api: the API server.
        namespace: the Instance's, whose Lease this run holds.
        made: the record.
        over: the text that this run read or wrote last; `None` when there was none.

    Raises:
        StepFailed: somebody else wrote it meanwhile, or the API server refuses.
    """
    text, path = made.text(), NAMESPACE.path(name=namespace)
    if text == over:
        return text
    try:
        for _ in range(_TRIES):
            metadata = (api.get(path) or {}).get("metadata") or {}
            if (metadata.get("annotations") or {}).get(names.ANNOTATION_MADE) != over:
                raise _failed(namespace, "another run wrote it meanwhile")
            body = {
                "resourceVersion": metadata.get("resourceVersion"),
                "annotations": {names.ANNOTATION_MADE: text},
            }
            try:
                api.merge_patch(path, {"metadata": body}, manager=names.RECORD_MANAGER)
            except ApiError as error:
                if error.status != _CONFLICT:
                    raise
            else:
                return text
    except ApiError as error:
        raise _failed(namespace, error.message) from error
    except httpx2.HTTPError as error:
        raise _failed(namespace, f"the API server stopped answering ({words(error)})") from error
    raise _failed(namespace, "the Namespace changed each time it was to be written")


def _failed(namespace: str, why: str) -> StepFailed:
    return StepFailed(
        f'cannot write down on namespace "{namespace}" which objects this converge makes: {why} — '
        "run `jr2 up` again"
    )
