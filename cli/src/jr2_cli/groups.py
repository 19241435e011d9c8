"""The verbs of a group, such as `jr2 tools`, each with its own name.

A function that is registered as it is gets the name of the running program in some of its usage
texts, so they would differ between `jr2` and `python -m jr2_cli`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import cyclopts

_Verb = TypeVar("_Verb", bound=Callable[..., object])


def verb(group: cyclopts.App, name: str) -> Callable[[_Verb], _Verb]:
    """Return a decorator that makes a function a verb of a group.

    Args:
        group: the application of the group.
        name: what is typed after the group.
    """

    def register(function: _Verb) -> _Verb:
        made = cyclopts.App(name=name)
        made.default(function)
        group.command(made)
        return function

    return register
