"""The command `jr2`: from the arguments to an exit code; `main` begins it.

Nothing heavy is imported before the verb is known: `jr2 --help` needs the standard library alone.
`run` never raises; an error that jr2 knows is printed as it is, and one that it does not know is
named by its place, without its words, since they may hold a secret.

Exit codes: 0 done, 1 refused or failed, 2 called wrongly, 130 interrupted.

Source: spec/converge.md §2.1 and §2.4, design §5.7 and §8.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import env_file, handoff, incomplete, instance_folder, interrupt, output, streams, verbs

if TYPE_CHECKING:
    from .output import Output

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2

_HELP = ("help", "--help", "-h")
_INSTALL_COMPLETION = "--install-completion"


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Args:
        arguments: what follows `jr2`; `None` takes it from the process.
    """
    streams.reopen_closed()
    given = list(sys.argv[1:] if arguments is None else arguments)
    out = output.begin()
    try:
        code = _until_its_end(given, out)
        out.close()
    except OSError:
        # Only a stream of the command itself fails so far out; `settle` says which.
        code = EXIT_FAILED
    written = out.settle()
    return code if written or code != EXIT_OK else EXIT_FAILED


def _until_its_end(given: list[str], out: Output) -> int:
    """Run the command, also when a signal ends it.

    Raises:
        OSError: a stream of the command cannot be written.
    """
    try:
        with interrupt.handled():
            return _handed_over(given, out)
    except KeyboardInterrupt:
        out.close()
        line = interrupt.take_last_line()
        if line is not None:
            out.line(line, code="interrupted")
        return interrupt.EXIT_INTERRUPTED
    except SystemExit as leaving:
        return _status(leaving)


def _handed_over(given: list[str], out: Output) -> int:
    """Run the Instance's own `jr2` when there is another one, else this one."""
    origin = handoff.take_origin()
    root = _root()
    # A command that was handed off to never hands off: a broken `.venv` would do it for ever.
    if root is not None and origin is None:
        try:
            own = handoff.own_command(root)
            if own is not None:
                handoff.hand_off(own, given)
        except handoff.Broken as broken:
            out.line(f"error: {broken}", code="error")
            return EXIT_FAILED
    return _dispatch(given, root, out)


def _root() -> Path | None:
    try:
        return instance_folder.find(Path.cwd())
    except OSError:
        # The folder that the shell stands in was removed; it is no Instance.
        return None


def _dispatch(given: list[str], root: Path | None, out: Output) -> int:
    if not given:
        out.line(verbs.usage(), code="usage")
        return EXIT_USAGE
    first, rest = given[0], given[1:]
    if first in _HELP:
        if not rest or rest[0].startswith("-"):
            out.line(verbs.usage(), code="help")
            return EXIT_OK
        given, first = [*rest, "--help"], rest[0]
    if first == "--version":
        given, first = ["version", *rest], "version"
    verb = verbs.find(first)
    if verb is None and first != _INSTALL_COMPLETION:
        out.line(f"{_unknown(first)}\n\n{verbs.usage()}", code="usage")
        return EXIT_USAGE
    if verb is not None and verb.streams and "--json" in given:
        out.stream_events()
    if root is not None and not (verb is not None and verb.loads_env_file):
        env_file.load(root, out)
    return _run(given, out)


def _unknown(word: str) -> str:
    import difflib

    kind = "option" if word.startswith("-") else "command"
    near = difflib.get_close_matches(word, [verb.name for verb in verbs.VERBS], n=1, cutoff=0.65)
    hint = f" — did you mean `jr2 {near[0]}`?" if near else ""
    return f'error: unknown {kind} "{word}"{hint}'


def _run(given: list[str], out: Output) -> int:
    """Run a verb; whatever it raises becomes lines and an exit code."""
    from jr2 import errors

    from . import application

    try:
        return application.run(given)
    except errors.Usage as error:
        out.error(error)
        return EXIT_USAGE
    except errors.Jr2Error as error:
        out.error(error)
        return EXIT_FAILED
    except SystemExit as leaving:
        return _status(leaving)
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except ModuleNotFoundError as error:
        _trace()
        out.line(incomplete.words(error), code="error")
        return EXIT_FAILED
    except OSError as error:
        if out.failed:
            raise
        _trace()
        out.line(f"error: {_of_the_system(error)}", code="error")
        return EXIT_FAILED
    except Exception as error:
        _trace()
        out.line(f"error: {_place(error)}", code="error")
        return EXIT_FAILED


def _status(leaving: SystemExit) -> int:
    if leaving.code is None:
        return EXIT_OK
    return leaving.code if isinstance(leaving.code, int) else EXIT_FAILED


def _of_the_system(error: OSError) -> str:
    """Say what the system refused, and of which file, without its number."""
    if error.strerror is None:
        return str(error)
    if not error.filename and not _stands_somewhere():
        return "the folder that this command stands in is gone — go into another one: `cd`"
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def _stands_somewhere() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def _place(error: Exception) -> str:
    """Say where an unknown error was raised; its own words may hold a secret."""
    import traceback

    from jr2 import names

    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{last.filename}:{last.lineno}"
    return (
        f"jr2 does not know this failure: {type(error).__name__} at {where} "
        f"({names.ENV_TRACEBACK}=1 shows the whole trace)"
    )


def _trace() -> None:
    from jr2 import names

    if os.environ.get(names.ENV_TRACEBACK):
        import traceback

        traceback.print_exc()
