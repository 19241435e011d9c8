"""What every dynamic provider of the Converge has in common.

A provider does one step, in the process of the engine's Python plugin. It has no state of its own:
everything comes in through its inputs and the run file. It says what it does by `say`, and an
error that it means goes to the failure file, from which the command prints it.

Source: design §5.4, libraries.md §2.1.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, Final

from pulumi import dynamic

from jr2.errors import Jr2Error

from .engine.failure import write_failure

PROVIDER_KEY: Final = "__provider"
SAY: Final = "jr2-say "
"""What a line on standard output starts with when it is for the person who converges."""

MARKER: Final = "jr2 says why in the failure file"


class ProviderMarker(Exception):
    """Raised after an error went to the failure file; the engine only learns that it failed."""

    def __init__(self) -> None:
        super().__init__(MARKER)


def say(text: str, *, code: str = "line") -> None:
    """Say one line of the contract; it reaches the person in the order of the calls.

    Args:
        text: the line.
        code: its stable name in `--json`.
    """
    _send({"line": text, "code": code})


def warn(text: str, *, code: str = "warning") -> None:
    """Say a warning; `text` holds the whole line."""
    _send({"warning": text, "code": code})


def progress(text: str | None) -> None:
    """Show what takes long; `None` takes the progress line away."""
    _send({"progress": text})


class StepProvider(dynamic.ResourceProvider):  # type: ignore[misc]
    """A step of the Converge: a subclass implements `act` and nothing else.

    `act` must be safe to repeat: a converge may be killed between any two of its writes.
    """

    serialize_as_secret_always = False

    def act(self, inputs: Mapping[str, str], previous: Mapping[str, str] | None) -> None:
        """Do the step.

        Args:
            inputs: what the program asks for.
            previous: the inputs that stand now; `None` when the step was never done.

        Raises:
            Jr2Error: why it cannot be done; the command prints it as it is.
        """
        raise NotImplementedError

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> Any:
        """Compare the named inputs; the class behind `__provider` is no difference."""
        return dynamic.DiffResult(changes=_inputs(olds) != _inputs(news))

    def create(self, props: dict[str, Any]) -> Any:
        """Do the step for the first time."""
        return dynamic.CreateResult(type(self).__name__, self._done(props, None))

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> Any:
        """Do the step again; the inputs are the outputs, or the engine would lose them."""
        return dynamic.UpdateResult(self._done(news, _inputs(olds)))

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """Do nothing: what a step did in the cluster goes with its objects."""

    def _done(self, props: Mapping[str, Any], previous: Mapping[str, str] | None) -> dict[str, Any]:
        inputs = _inputs(props)
        try:
            self.act(inputs, previous)
        except Jr2Error as error:
            write_failure(error)
            raise ProviderMarker from None
        return dict(inputs)


def _inputs(props: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, value in props.items() if name != PROVIDER_KEY}


def _send(message: Mapping[str, Any]) -> None:
    # One write for a line, so that the four threads of the plugin never mix two of them.
    sys.stdout.write(SAY + json.dumps(message) + "\n")
    sys.stdout.flush()
