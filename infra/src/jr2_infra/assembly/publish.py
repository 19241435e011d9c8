"""Send an Assembly to the Orchestrator, and ask what it holds.

The token travels in one header and never in a message. The answer is data; what it means for the
converge is decided by its caller.

Source: spec/runtime.md §1.13, design §5.5.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
from pydantic import ValidationError

from jr2 import names, trace
from jr2.errors import StepFailed
from jr2.wire import Assemblies, Published, PublishRefused


@dataclass(frozen=True, slots=True)
class OrchestratorAnswer:
    """What the Orchestrator said to a publish.

    Args:
        status: the HTTP status.
        published: on 200 and 201.
        refused: on any other status.
    """

    status: int
    published: Published | None = None
    refused: PublishRefused | None = None


def _chunks(archive: Path) -> Iterator[bytes]:
    with archive.open("rb") as file:
        while chunk := file.read(1 << 20):
            yield chunk


def _refused(response: httpx2.Response) -> PublishRefused:
    try:
        return PublishRefused.model_validate_json(response.content)
    except ValidationError:
        return PublishRefused(error=response.text.strip()[:500] or response.reason_phrase)


def publish(
    url: str, token: str, archive: Path, *, assembly: str, lease: str | None = None
) -> OrchestratorAnswer:
    """Publish an archive.

    Args:
        url: the Orchestrator, without a trailing slash.
        token: the publish token.
        archive: what `write_archive` wrote.
        assembly: its hash, 64 hex digits.
        lease: the stamp of the converge's Lease, `LeaseStamp.header()`; an older one is refused.

    Raises:
        StepFailed: the connection broke before an answer came; nothing was published.
    """
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/gzip",
        "Content-Length": str(archive.stat().st_size),
        names.HEADER_KIT_VERSION: names.KIT_VERSION,
        trace.HEADER: trace.traceparent(os.environ),
    }
    if lease is not None:
        headers[names.HEADER_LEASE] = lease
    try:
        response = httpx2.put(
            f"{url}/assemblies/{assembly}",
            headers=headers,
            content=_chunks(archive),
            timeout=httpx2.Timeout(120.0, connect=10.0),
            trust_env=False,
        )
    except httpx2.HTTPError as error:
        raise StepFailed(
            f"the publish of Assembly {assembly[: names.SHORT_HASH]} broke off"
            f" ({type(error).__name__}: {error}) — the previous Assembly is still current. Run"
            " `jr2 up` again"
        ) from error
    if response.status_code in (200, 201):
        return OrchestratorAnswer(
            response.status_code, published=Published.model_validate_json(response.content)
        )
    return OrchestratorAnswer(response.status_code, refused=_refused(response))


def assemblies(url: str, token: str) -> Assemblies:
    """Return what the Orchestrator holds.

    Args:
        url: the Orchestrator, without a trailing slash.
        token: the Instance token.

    Raises:
        StepFailed: it does not answer, or not in this shape.
    """
    try:
        response = httpx2.get(
            f"{url}/assemblies",
            headers={"Authorization": f"Bearer {token}"},
            timeout=10.0,
            trust_env=False,
        )
        response.raise_for_status()
        return Assemblies.model_validate_json(response.content)
    except (httpx2.HTTPError, ValidationError) as error:
        raise StepFailed(
            f"the Orchestrator does not say which Assemblies it holds ({type(error).__name__})"
        ) from error
