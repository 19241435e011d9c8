"""Whether each value is there and can be used: the part of step 10 that reads no cluster.

Only what a pod or an Effect uses needs a value. A value is printable ASCII with no space at its
ends, since a header must carry it; what is wrong with one is said, and never the value.

Source: seed 003 (Rules, `secrets`), field case 6, ADR-0059.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import SecretStr

from jr2 import names
from jr2.config import EnvVar

from .. import headers
from .entries import PROVIDER_FIELD, Entry
from .rules import ADR


def value_problem(text: str) -> str | None:
    """Return why a header cannot carry a text that is not empty, or `None`; never the text."""
    return None if headers.can_carry(text) else f"{headers.PROBLEM} {ADR}"


def problems(entries: Sequence[Entry]) -> Iterator[str]:
    """Give what is wrong with the values that the config gives.

    Args:
        entries: those that are used.
    """
    for entry in entries:
        if entry.value is not None and entry.value_from is not None:
            yield f"{entry.where} needs exactly one of value or value_from — not both {ADR}"
        elif entry.value is not None:
            yield from _of_value(entry, entry.value)
        elif entry.value_from is None:
            yield (
                f"{entry.where} needs exactly one of value or value_from — {entry.name} has "
                f"neither, which is what an unset .env variable reads as: set {entry.name} in "
                f"{names.ENV_FILE}, or reference a Secret with "
                f'value_from=SecretKeyRef(name="<name>", key="<key>") {ADR}'
            )


def env_problems(env: Sequence[EnvVar]) -> Iterator[str]:
    """Give the variables of `harness.env` that have no value at all, or one that no process takes.

    Args:
        env: the variables.
    """
    for index, variable in enumerate(env):
        where = f"harness.env[{index}]"
        if variable.value is not None:
            if "\0" in variable.value.get_secret_value():
                yield f"{where}.value holds a NUL character, which no variable can have {ADR}"
        elif variable.value_from is None:
            yield (
                f"{where} needs exactly one of value or value_from — {variable.name} has neither, "
                f"which is what an unset .env variable reads as: set {variable.name} in "
                f"{names.ENV_FILE} {ADR}"
            )


def _of_value(entry: Entry, value: SecretStr) -> Iterator[str]:
    text = value.get_secret_value()
    if not text:
        fix = (
            f"leave it out, or set its variable in {names.ENV_FILE}"
            if entry.where == PROVIDER_FIELD
            else f"set {entry.name} in {names.ENV_FILE}"
        )
        yield f"{entry.value_at} is empty — {fix} {ADR}"
    elif (problem := value_problem(text)) is not None:
        yield f"{entry.value_at} {problem}"
