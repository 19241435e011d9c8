"""What may be printed of a text that a value of `.env` can have entered.

A value is looked for as it is and as Python, JSON and URLs write it: an exception prints the
`repr` of what it was given. No list of forms is ever complete, and user code may cut a value to
pieces, so the words of an exception are kept only where they are known to be harmless.

Source: design §5.1 (values reach the config alone), spec/authoring.md §3.1.
"""

from __future__ import annotations

import io
import json
import os
import re
import tokenize
import urllib.parse
from ast import literal_eval
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

SHORTEST_SECRET: Final = 4
"""A value with fewer characters is no secret."""
_PART: Final = 3
"""Characters in a row that a quotation may not share with a value."""
_LONG_PART: Final = 8
"""Characters in a row that no text may share with a value; a word of English is seldom longer."""
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"", re.DOTALL)
_HIDDEN: Final = "<hidden>"
_PLAIN_WORDS: Final[Mapping[type[BaseException], re.Pattern[str]]] = {
    ModuleNotFoundError: re.compile(r"No module named '[^']*'(; '[^']*' is not a package)?"),
    ImportError: re.compile(r"cannot import name '[^']*' from '[^']*' \([^()]*\)"),
    NameError: re.compile(r"name '[^']*' is not defined(\. Did you mean: '[^']*'\?)?"),
    AttributeError: re.compile(
        r"(module|type object)? ?'[^']*'( object)? has no attribute '[^']*'"
        r"(\. Did you mean: '[^']*'\?)?"
    ),
    KeyError: re.compile(r"'[^']*'"),
    ZeroDivisionError: re.compile(r"division by zero"),
}
"""Exceptions whose words Python itself writes, as long as they have just this form."""
_FROM_SOURCE: Final = (KeyError,)
"""Exceptions that quote data, which the source must hold too."""


def without_values(text: str, values: Mapping[str, str]) -> str:
    """Return a text with the name of a variable in the place of its value, in each of its forms.

    A value of less than four characters is no secret, and stays.
    """
    forms = [(form, name) for name, value in values.items() for form in _forms(value)]
    for form, name in sorted(forms, key=lambda item: -len(item[0])):
        text = text.replace(form, f"<{name}>")
    return text


def without_parts(text: str, values: Mapping[str, str]) -> str:
    """Return a text of many lines without values, and without the lines that hold a part of one."""
    lines = without_values(text, values).splitlines()
    secrets = _secrets(values)
    return "\n".join(
        "(a line that holds a part of a value is not shown)"
        if _shares(line, secrets, _PART)
        else line
        for line in lines
    )


def quoted_parts_hidden(text: str, values: Mapping[str, str]) -> str | None:
    """Return a text of ours that may quote a value or a part of one, with neither.

    Returns:
        `None` when it still holds a long part of a value.
    """
    secrets = _secrets(values)

    def hide(found: re.Match[str]) -> str:
        return f'"{_HIDDEN}"' if _shares(found[0][1:-1], secrets, _PART) else found[0]

    text = _QUOTED.sub(hide, without_values(text, values))
    return None if _shares(text, secrets, _LONG_PART) else text


def names_hidden(path: str, values: Mapping[str, str], source: str) -> str:
    """Return the path of a field without the names that a value made.

    Args:
        path: such as `secrets[0].value`.
        values: variables with their values.
        source: the file that holds the names that a person wrote.
    """
    secrets = _secrets(values)

    def hide(found: re.Match[str]) -> str:
        made = found[0] not in source and _shares(found[0], secrets, _PART)
        return _HIDDEN if made else found[0]

    return re.sub(r"[^].[]+", hide, path)


def harmless_words(
    error: BaseException, words: str, values: Mapping[str, str], source: str
) -> str | None:
    """Return the words of an exception of user code that saw values, or `None` to print none.

    Args:
        error: the exception.
        words: what it says.
        values: variables with their values.
        source: the user's own line that the exception came through.
    """
    form = _PLAIN_WORDS.get(type(error))
    if form is None or form.fullmatch(words) is None:
        return None
    secrets = _secrets(values)
    quoted = [part[1:-1] for part in _QUOTED.findall(words)]
    if any(_shares(part, secrets, _PART) for part in quoted):
        return None
    if isinstance(error, _FROM_SOURCE) and not all(part in source for part in quoted):
        return None
    return words


def harmless_source(text: str, line: int, variables: Collection[str]) -> str:
    """Return a line of source that holds no literal and no comment, else an empty text.

    A secret may be written there. The name of a variable that is read is none.

    Args:
        text: the whole file.
        line: the number of the line, from 1.
        variables: names that may stand there as literals.
    """
    before: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.start[0] <= line <= token.end[0] and not _harmless(token, before, variables):
                return ""
            before = [*before[-3:], token.string]
    except (tokenize.TokenError, SyntaxError):
        return ""
    lines = text.splitlines()
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def _harmless(token: tokenize.TokenInfo, before: list[str], variables: Collection[str]) -> bool:
    kind = tokenize.tok_name[token.type]
    if kind == "STRING":
        reads = before[-2:] == ["environ", "["] or before[-2:] == ["getenv", "("]
        if reads or before[-4:] == ["environ", ".", "get", "("]:
            return True
        try:
            return literal_eval(token.string) in variables
        except ValueError:
            return False
    if kind == "NUMBER":
        return len(token.string) <= SHORTEST_SECRET
    # Python 3.12 has tokens for the parts of an f-string.
    return kind != "COMMENT" and not kind.startswith(("FSTRING", "TSTRING"))


def _secrets(values: Mapping[str, str]) -> list[str]:
    return [
        form
        for value in values.values()
        if len(value) >= SHORTEST_SECRET
        for form in (value, *_written(value))
    ]


def _forms(value: str) -> Iterator[str]:
    """Yield a value and its lines as they are and as they may be written, without short ones."""
    for part in (value, *value.splitlines(), value.strip()):
        for form in (part, *_written(part)):
            if len(form) >= SHORTEST_SECRET and len(value) >= SHORTEST_SECRET:
                yield form


def _written(value: str) -> Iterator[str]:
    yield repr(value)[1:-1]
    yield ascii(value)[1:-1]
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    data = value.encode("utf-8", "surrogatepass")
    for form in (data, os.fsencode(value) if _is_system_text(value) else data):
        yield repr(form)[2:-1]
        yield form.decode("utf-8", "replace")
        yield form.decode("utf-8", "backslashreplace")
        yield urllib.parse.quote(form, safe="")
        yield urllib.parse.quote(form)
        yield urllib.parse.quote_plus(form)


def _is_system_text(value: str) -> bool:
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True


def _shares(text: str, secrets: Iterable[str], size: int) -> bool:
    """Say whether a text and a secret have so many characters in a row in common."""
    runs = {text[at : at + size] for at in range(len(text) - size + 1)}
    return any(
        secret[at : at + size] in runs for secret in secrets for at in range(len(secret) - size + 1)
    )
