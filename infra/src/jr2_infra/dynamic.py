"""What every dynamic provider of the Converge has in common.

A provider does one step, in the process of the engine's Python plugin. It has no state of its own:
everything comes in through its inputs and the run file. Under `jr2 up` it says what it does by
`say`, and an error that it means goes to the failure file, from which the command prints it. Under
plain Pulumi, where no command listens, it prints its lines as they are, and the error is the text
that the engine shows.

Source: design §5.4, libraries.md §2.1, ADR-0123.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Mapping
from typing import Any, Final

from pulumi import dynamic

from jr2.errors import Jr2Error

from .engine.failure import write_failure
from .engine.run_file import ENV_RUN_FILE

PROVIDER_KEY: Final = "__provider"
SAY: Final = "jr2-say "
"""What a line on standard output starts with when it is for the person who converges."""

NONCE: Final = "nonce"
"""The input that names the run of a plain `pulumi up`; under `jr2 up` no step has it."""
DUE: Final = "due"
"""The input that says whether the facts call for the step, whatever a plain state remembers."""
IS_DUE: Final = "true"
NOT_DUE: Final = "false"

MARKER: Final = "jr2 says why in the failure file"


class ProviderMarker(Exception):
    """Raised after an error went to the failure file; the engine only learns that it failed."""

    def __init__(self) -> None:
        super().__init__(MARKER)


class SaidError(Exception):
    """Raised with the text of an error where Pulumi itself shows it to the person."""


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
        """Compare the named inputs; neither the class behind `__provider` nor the run counts.

        A step that is due counts as changed.
        """
        due = news.get(DUE) == IS_DUE
        return dynamic.DiffResult(changes=due or _named(olds) != _named(news))

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
            if NONCE in inputs:
                _show_errors_as_they_are()
                raise SaidError(error.printed) from None
            write_failure(error)
            raise ProviderMarker from None
        return dict(inputs)


def _inputs(props: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, value in props.items() if name != PROVIDER_KEY}


def _named(props: Mapping[str, Any]) -> dict[str, str]:
    """Return the inputs that a person reads as the difference."""
    return {name: value for name, value in _inputs(props).items() if name not in (NONCE, DUE)}


def _send(message: Mapping[str, Any]) -> None:
    if ENV_RUN_FILE not in os.environ:
        # No command reads it: what is printed is what Pulumi shows.
        text = message.get("line") or message.get("warning")
        if text:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()
        return
    # One write for a line, so that the four threads of the plugin never mix two of them.
    sys.stdout.write(SAY + json.dumps(message) + "\n")
    sys.stdout.flush()


def _show_errors_as_they_are() -> None:
    """Let Pulumi's plugin answer with the text of a `SaidError` and without its traceback.

    The plugin's program formats whatever was raised by `traceback.format_exc`, and nothing else
    that a provider can do reaches its answer.
    """
    plugin = sys.modules["__main__"]
    if hasattr(plugin, "DynamicResourceProviderServicer"):
        plugin.traceback = _Traces  # type: ignore[attr-defined]


class _Traces:
    """Stands for the module `traceback` in Pulumi's plugin."""

    @staticmethod
    def format_exc() -> str:
        error = sys.exc_info()[1]
        return str(error) if isinstance(error, SaidError) else traceback.format_exc()
