"""The header in which a registry says how it wants to be asked.

Source: RFC 9110 §11.6.1; the token specification of the distribution project.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_SCHEME = re.compile(r"\s*,?\s*([A-Za-z][A-Za-z0-9_-]*)(?:\s+(?!=)|\s*(?=,)|$)")
_PARAMETER = re.compile(r'\s*,?\s*([A-Za-z0-9_-]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^\s,"]+)')


@dataclass(frozen=True, slots=True)
class Challenge:
    """One way in which a registry wants to be asked.

    Args:
        scheme: in lower case, such as `bearer`.
        parameters: what it adds, such as `realm`.
    """

    scheme: str
    parameters: Mapping[str, str]


def read_challenges(headers: Iterable[str]) -> list[Challenge]:
    """Read every `WWW-Authenticate` header of an answer; what cannot be read is left out."""
    found: list[Challenge] = []
    for header in headers:
        at = 0
        while (scheme := _SCHEME.match(header, at)) is not None:
            at = scheme.end()
            parameters: dict[str, str] = {}
            while (parameter := _PARAMETER.match(header, at)) is not None:
                at = parameter.end()
                value = parameter.group(2)
                if value.startswith('"'):
                    value = re.sub(r"\\(.)", r"\1", value[1:-1])
                parameters[parameter.group(1).lower()] = value
            found.append(Challenge(scheme.group(1).lower(), parameters))
    return found
