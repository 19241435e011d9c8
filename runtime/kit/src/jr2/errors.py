"""The errors that jr2 raises on purpose, and how each of them is printed.

One root, `Jr2Error`. Its children say what happened to the cluster: a `Refusal` is a rule that was
not met, and nothing was changed; a `StepFailed` is a step that could not be done. Warnings are
values, not exceptions. The text of an error is whole: `str(error)` is what the command prints
after the prefix, over as many lines as it takes.

Source: design §5.7 and style rule 7.
"""

from __future__ import annotations

from typing import ClassVar


class Jr2Error(Exception):
    """The root of every error that jr2 raises on purpose.

    Args:
        message: the whole text after the prefix; further lines are printed as they are.
        prefix: what stands before the first line; `""` prints the message bare.
    """

    default_prefix: ClassVar[str] = "error: "

    def __init__(self, message: str, *, prefix: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.prefix = self.default_prefix if prefix is None else prefix

    def __str__(self) -> str:
        return self.message

    @property
    def printed(self) -> str:
        """The lines that the command prints for this error."""
        return f"{self.prefix}{self.message}"


class Refusal(Jr2Error):
    """A rule is not met: jr2 refuses before it changes what the rule protects."""

    default_prefix = "refusing: "


class StepFailed(Jr2Error):
    """A step could not be done; what came before it stands."""


class Usage(Jr2Error):
    """The command was called in a way that it does not know; exit code 2."""


class Aborted(Jr2Error):
    """A person said no, or there was nobody to ask; printed bare, exit code 1."""

    default_prefix = ""


class BuildRefused(Refusal):
    """A Machine is not written as the authoring rules ask; raised where it is defined or built.

    Each text names the Machine, and the state when there is one, so that `jr2 check` can print it
    as it is. A build says all that it finds at once.

    Args:
        problems: a text for each rule that is not met; the message has a line for each.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
