"""`.env` of an Instance: what its lines say, and which of them fill the environment.

The values are secrets of a person, so they are taken as they stand: `$` is never expanded, a
comment starts after white space only, and the environment that is there already always wins. What
cannot be read is named by its line number. No value ever enters a message.

Source: field case 6, spec/converge.md §2.2.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jr2_infra.report import Reporter

_KEY = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=")
_BLANK = re.compile(r"[ \t\r]*(?:#[^\n]*)?(?:\n|\Z)")
_QUOTE = re.compile(r"[ \t]*(['\"])")
_SINGLE = re.compile(r"([^']*)'")
_DOUBLE = re.compile(r'((?:[^"\\]|\\.)*)"', re.DOTALL)
_BARE = re.compile(r"[^\n]*")
_COMMENT = re.compile(r"[ \t]#.*\Z")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "\\": "\\"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvFile:
    """What the file says.

    Args:
        values: name to value, in the order of the file.
        warnings: one text for each line that was not read, or that was overwritten; no value.
    """

    values: Mapping[str, str] = field(repr=False)
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """What was done to the environment.

    Args:
        names: the names that were filled, in the order of the file.
        kept: the names whose other value in the shell was kept.
        warnings: those of the file.
    """

    names: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def parse(text: str) -> EnvFile:
    """Read the text of a `.env`.

    A line is `[export ]NAME=value`. A single-quoted value is literal; a double-quoted one knows
    `\\n \\r \\t \\" \\' \\\\`; both may span lines. A bare value ends at white space before `#` and
    at the end of the line, and loses white space around it.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    values: dict[str, str] = {}
    lines: dict[str, list[int]] = {}
    warnings: list[str] = []
    position = 0
    while position < len(text):
        number = text.count("\n", 0, position) + 1
        blank = _BLANK.match(text, position)
        if blank is not None:
            position = blank.end()
            continue
        assignment = _assignment(text, position)
        if isinstance(assignment, str):
            warnings.append(f"line {number}: {assignment}; the line is ignored")
            position = _next_line(text, position)
            continue
        name, value, position = assignment
        values[name] = value
        lines.setdefault(name, []).append(number)
    for name, where in lines.items():
        if len(where) > 1:
            listed = ", ".join(map(str, where[:-1]))
            warnings.append(f"{name} is set in lines {listed} and {where[-1]}; the last one counts")
    return EnvFile(values=values, warnings=tuple(warnings))


def fill(path: Path, environ: MutableMapping[str, str] = os.environ) -> Filled:
    """Put what the file says into the environment, where the environment does not say it already.

    Args:
        path: the file; when it does not exist, nothing happens.
        environ: the environment that is filled.
    """
    from jr2_infra import regular

    try:
        # A byte that is not UTF-8 goes through as it is: who uses the value judges it.
        text = regular.read(path).decode("utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return Filled()
    except OSError as error:
        return Filled(warnings=(f"the file cannot be read: {error.strerror}",))
    read = parse(text)
    names = [name for name in read.values if name not in environ]
    kept = [
        name for name, value in read.values.items() if name in environ and environ[name] != value
    ]
    for name in names:
        environ[name] = read.values[name]
    return Filled(names=tuple(names), kept=tuple(kept), warnings=read.warnings)


def load(root: Path, out: Reporter) -> None:
    """Fill our environment from the `.env` of an Instance, and say by name what was filled.

    Args:
        root: the Instance folder.
        out: where the lines go.
    """
    from jr2 import names
    from jr2_infra import inherited

    filled = fill(root / names.ENV_FILE)
    inherited.withhold(filled.names)
    for warning in filled.warnings:
        out.warning(f"warning: {names.ENV_FILE}: {warning}")
    if filled.kept:
        kept = ", ".join(filled.kept)
        out.line(f"→ {names.ENV_FILE}: the shell's own {kept} stays", code="env-kept")
    if filled.names:
        out.line(f"→ {names.ENV_FILE}: {', '.join(filled.names)}", code="env")


def _assignment(text: str, position: int) -> tuple[str, str, int] | str:
    """Read one assignment: its name, its value and where the next line starts; or what is wrong."""
    end = _next_line(text, position)
    key = _KEY.match(text, position)
    if key is None:
        line = text[position:end]
        return "it does not start with a name and `=`" if "=" in line else "it has no `=`"
    quote = _QUOTE.match(text, key.end())
    if quote is not None:
        quoted = (_SINGLE if quote[1] == "'" else _DOUBLE).match(text, quote.end())
        if quoted is None:
            return f"the quote of {key[1]} is not closed"
        rest = _BLANK.match(text, quoted.end())
        if rest is None:
            return f"something follows the quoted value of {key[1]}"
        value = quoted[1] if quote[1] == "'" else _ESCAPE.sub(_unescape, quoted[1])
        end = rest.end()
    else:
        bare = _BARE.match(text, key.end())
        assert bare is not None
        value = _COMMENT.sub("", bare[0]).strip(" \t\r")
    if "\0" in value:
        return f"the value of {key[1]} holds a NUL character"
    return key[1], value, end


def _next_line(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end + 1


def _unescape(match: re.Match[str]) -> str:
    # An escape that is not known stays as it stands, backslash and all.
    return _ESCAPES.get(match[1], match[0])
