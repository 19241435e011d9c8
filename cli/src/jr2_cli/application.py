"""The cyclopts application: each verb by name, its code imported when it runs.

An argument that cyclopts does not take becomes a `Usage` error with the one line that helps; help
of a verb is plain text on stderr.

Source: libraries.md §3 (row CLI), spec/converge.md §2.1.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

import cyclopts

from jr2 import errors

from . import verbs

_MISSING = re.compile(r'Command "[^"]*" parameter (\S+) requires an argument')


def build() -> cyclopts.App:
    """Return the application with every verb registered by its import path."""
    app = cyclopts.App(
        name="jr2",
        version_flags=(),
        help_format="plaintext",
        help_formatter="plain",
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for verb in verbs.VERBS:
        if verb.code.endswith(":app"):
            app.command(verb.code, name=verb.name, help=verb.summary)
        else:
            app.command(
                verb.code,
                name=verb.name,
                help=f"{verb.summary}.",
                help_epilogue="\n".join(["Examples:", *(f"  {line}" for line in verb.examples)]),
                result_action="return_value",
                suppress_keyboard_interrupt=False,
            )
    app.register_install_completion_command(
        help="Complete the commands in bash, zsh or fish.", result_action="return_value"
    )
    return app


def run(arguments: Sequence[str]) -> int:
    """Run one verb and return its exit code.

    Raises:
        Usage: the arguments are not the verb's.
        Jr2Error: what the verb raises.
    """
    from rich.console import Console

    _check_unicode(arguments)
    console = Console(file=sys.stderr, highlight=False, markup=False, emoji=False)
    try:
        result = build()(
            list(arguments),
            console=console,
            error_console=console,
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
    except cyclopts.CycloptsError as error:
        raise errors.Usage(_usage_text(error, arguments)) from None
    return result if isinstance(result, int) else 0


def _check_unicode(arguments: Sequence[str]) -> None:
    """Refuse a byte that is no UTF-8: nothing but a path could carry it any further.

    Raises:
        Usage: an argument holds one.
    """
    verb = verbs.find(arguments[0])
    if verb is not None and verb.takes_paths:
        return
    for before, argument in zip(("", *arguments), arguments, strict=False):
        try:
            argument.encode()
        except UnicodeEncodeError:
            option, equals, _ = argument.partition("=")
            if not (equals and option.startswith("--")):
                option = before
            name = option if option.startswith("-") else "an argument"
            raise errors.Usage(f"{name} is not valid Unicode") from None


def _usage_text(error: cyclopts.CycloptsError, arguments: Sequence[str]) -> str:
    """Build the line for arguments that are not the verb's."""
    verb = arguments[0]
    if isinstance(error, cyclopts.UnusedCliTokensError) and error.unused_tokens:
        said = f'unexpected argument "{error.unused_tokens[0]}"'
    else:
        said = _one_line(error)
    return f"jr2 {verb}: {said}\n`jr2 {verb} --help` shows what it takes"


def _one_line(error: cyclopts.CycloptsError) -> str:
    said = " ".join(str(error).split()).removesuffix(".")
    missing = _MISSING.fullmatch(said)
    if missing is not None:
        name = missing[1]
        said = f"{name} needs a value" if name.startswith("-") else f"{name} is missing"
    return said
