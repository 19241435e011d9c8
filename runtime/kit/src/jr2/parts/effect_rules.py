"""The rules on what a Machine says about an Effect; each is checked at build, and by `customize`.

Source: spec/authoring.md §2.12, design §3.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, get_args
from urllib.parse import urlsplit

from .agents import is_utf8, listed
from .effects import Command, Dispatch, EffectDefinition, Http, HttpFile, Method, Push, Target
from .opening import is_open
from .repos import slot_problem

SECRET_NAME: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
_URL: Final = re.compile(r"[\x21-\x7e]+")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE: Final = re.compile(r"(?! )[\x20-\x7e]*(?<! )")
_CREDENTIALS: Final = ("authorization", "proxy-authorization", "cookie")
_FRAMING: Final = (
    *("connection", "content-length", "host", "keep-alive"),
    *("te", "trailer", "transfer-encoding", "upgrade"),
)
_WORKFLOW: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def problems(slot: str, definition: EffectDefinition[Any, Any]) -> list[str]:
    """Return each rule that a definition breaks, as what its Machine does wrong."""
    if isinstance(definition, Command):
        found = _command(definition)
    elif isinstance(definition, Http | HttpFile):
        found = _http(definition)
    elif isinstance(definition, Push):
        found = _push(definition)
    elif isinstance(definition, Dispatch):
        found = _dispatch(definition)
    else:
        found = iter(
            [f"{definition!r}: give a Command, an Http, an HttpFile, a Push or a Dispatch"]
        )
    return [f'has an Effect "{slot}" with {problem}' for problem in found]


def _command(definition: Command) -> Iterator[str]:
    argv = definition.argv
    if not is_open(argv):
        if isinstance(argv, str):
            yield f"argv={argv!r}: no shell reads it, so give a list of texts"
        elif not isinstance(argv, Sequence) or not all(isinstance(word, str) for word in argv):
            yield f"argv={argv!r}, which is no list of texts"
        elif not argv or not argv[0].strip():
            yield "an argv that names no program"
        elif not all(is_utf8(word) for word in argv):
            yield "an argv with half of a surrogate pair, which is no text"
        elif any("\0" in word for word in argv):
            yield "an argv with the character NUL, which no program can be given"
    yield from _secret(definition.secret)
    yield from _timeout(definition.timeout)


def _http(definition: Http | HttpFile) -> Iterator[str]:
    if definition.method not in get_args(Method):
        yield f"method={definition.method!r}, which is not one of {listed(get_args(Method))}"
    if not is_open(definition.url):
        yield from _url("url", definition.url)
    headers = definition.headers
    if not isinstance(headers, Mapping):
        yield f"headers={headers!r}, which is no dict"
    else:
        for name, value in headers.items():
            if not isinstance(name, str) or not _HEADER.fullmatch(name):
                yield f"the header {name!r}, which is no name of a header"
            elif not isinstance(value, str):
                yield f'the header "{name}", whose value is no text'
            elif not _HEADER_VALUE.fullmatch(value):
                yield (
                    f'the header "{name}", whose value holds a character that a header cannot '
                    "carry, or a space at its start or end"
                )
            elif name.lower() in _CREDENTIALS:
                yield f'the header "{name}": a credential is an Effect secret'
            elif name.lower() in _FRAMING:
                yield f'the header "{name}", which the request itself decides'
    yield from _secret(definition.secret)
    yield from _timeout(definition.timeout)


def _push(definition: Push) -> Iterator[str]:
    wrong = slot_problem(definition.repo)
    if wrong is not None:
        yield wrong
    if not isinstance(definition.force, bool):
        yield f"force={definition.force!r}, which is not True or False"


def _dispatch(definition: Dispatch) -> Iterator[str]:
    if not isinstance(definition.workflow, str) or not _WORKFLOW.fullmatch(definition.workflow):
        yield f"workflow={definition.workflow!r}, which is no name of a Workflow"
    if definition.target is not None and not isinstance(definition.target, Target):
        yield f"target={definition.target!r}: give a Target(url=…, secret=…)"
    elif definition.target is not None:
        yield from _url("target url", definition.target.url)
        yield from _secret(definition.target.secret)


def _url(what: str, url: Any) -> Iterator[str]:
    try:
        parts = urlsplit(url)
        host = parts.hostname if isinstance(url, str) else None
        _ = parts.port
    except (ValueError, TypeError, AttributeError):
        yield f"a {what} that cannot be read"
        return
    if not isinstance(url, str) or parts.scheme not in ("http", "https") or not host:
        yield f'a {what} that is not "https://<host>/<path>"'
    elif not _URL.fullmatch(url):
        yield f"a {what} with a space or another character that a url writes as %xx"
    elif parts.username is not None or parts.password is not None:
        # The url may hold a credential, so it is not told.
        yield f"a {what} with a user in it: a credential is an Effect secret"


def _secret(secret: Any) -> Iterator[str]:
    if secret is None or is_open(secret):
        return
    if not isinstance(secret, str) or not SECRET_NAME.fullmatch(secret):
        # A value that was given in place of a name is not told.
        yield (
            "a secret that is no name of a secret of the config: a name has capitals, digits and _"
        )


def _timeout(timeout: Any) -> Iterator[str]:
    if timeout is not None and (not isinstance(timeout, timedelta) or timeout <= timedelta(0)):
        yield f"timeout={timeout!r}, which is no timedelta above zero"
