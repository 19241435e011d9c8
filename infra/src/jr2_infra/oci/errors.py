"""What is said when a registry refuses, fails or does not answer.

Each text names the registry, the repository and the status, and the next command. It holds no
credential: what a registry says is shown without those that were sent.

Source: style rule 9.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from jr2.errors import StepFailed

_WORDS: Final = 300
"""The characters of an answer that are shown."""


class RegistryError(StepFailed):
    """A registry said no, or nothing.

    Args:
        message: the whole text.
        status: the status of its answer; `None` when there was none.
        codes: the error codes of its answer, such as `DENIED`.
    """

    def __init__(self, message: str, *, status: int | None = None, codes: Iterable[str] = ()):
        super().__init__(message)
        self.status = status
        self.codes = tuple(codes)


def refused(
    *,
    registry: str,
    repository: str,
    action: str,
    status: int,
    reason: str,
    body: bytes,
    secrets: Iterable[str],
    looked_in: str,
) -> RegistryError:
    """Build the error of an answer.

    Args:
        registry: the registry as a person writes it.
        repository: the path in it.
        action: what was asked, as `push of …`.
        status: the status of the answer.
        reason: the words of the status.
        body: the answer.
        secrets: what must not be shown.
        looked_in: which credentials were used, or where none were found.
    """
    codes, words = _read_body(body)
    # The longest first: one may hold another.
    for secret in sorted(secrets, key=len, reverse=True):
        words = words.replace(secret, "…")
    said = f": {words}" if words else ""
    text = f"{registry} refuses the {action} ({registry}/{repository}): {status} {reason}{said}"
    if status >= 500:
        text = (
            f"{registry} fails at the {action} ({registry}/{repository}): {status} {reason}{said}"
        )
    return RegistryError(
        f"{text}{_next(registry, status, codes, looked_in)}", status=status, codes=codes
    )


def _next(registry: str, status: int, codes: Iterable[str], looked_in: str) -> str:
    if status in (401, 403) or {"DENIED", "UNAUTHORIZED"} & set(codes):
        return f"\n  {looked_in} — run `docker login {registry}`, then try again"
    if status == 429:
        return f"\n  {looked_in} — wait, or run `docker login {registry}` for a higher limit"
    if status == 413:
        return "\n  a proxy before the registry limits the size of a request — raise its limit"
    if "NAME_UNKNOWN" in codes:
        return "\n  make the repository there first, then try again"
    return ""


def _read_body(body: bytes) -> tuple[list[str], str]:
    """The error codes of an answer, and its words on one line."""
    try:
        errors = json.loads(body)["errors"]
        codes = [str(error["code"]) for error in errors]
        words = "; ".join(
            f"{error['code']} {error.get('message') or ''}".strip() for error in errors
        )
    except (ValueError, KeyError, TypeError):
        text = body.decode("utf-8", "replace").strip()
        # A page of a proxy says nothing that a person could use here.
        codes, words = [], "" if text.startswith("<") else text
    return codes, " ".join(words.split())[:_WORDS]


def unreachable(registry: str, words: str) -> RegistryError:
    """Build the error of a registry that does not answer."""
    if "CERTIFICATE_VERIFY_FAILED" in words:
        return RegistryError(
            f"the certificate of {registry} is not trusted ({words}) — put the certificate of its "
            f"authority at /etc/docker/certs.d/{registry}/ca.crt, or name it in SSL_CERT_FILE"
        )
    return RegistryError(
        f"cannot reach {registry} ({words}) — `curl -i https://{registry}/v2/` shows whether it "
        "answers"
    )
