"""Send an Assembly to the Orchestrator, and ask what it holds.

A publish names the files that differ from the Assembly that is current, hears which blobs are
missing, sends those and commits. So an edit costs little more than the bytes that changed, and a
publish that was cut goes on where it was: what arrived is not sent again. The token travels in one
header and never in a message. The answer is data; what it means for the converge is decided by its
caller.

Source: spec/runtime.md §1.13, design §5.5, ADR-0118.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import httpx2
from pydantic import ValidationError

from jr2 import names, trace
from jr2.errors import StepFailed
from jr2.wire import (
    Assemblies,
    AssemblyFiles,
    AssemblyListing,
    MissingBlobs,
    Published,
    PublishRefused,
)

from .parcel import Parcel, listing_over
from .sending import AT_ONCE, BlobRefused, send_blobs

TRIES: Final = 3
"""How often what is missing is asked for, when what was held has gone in between."""
_PASSES: Final = frozenset({408, 503})
"""What a sender that sends again may get past."""


class BrokeOff(StepFailed):
    """The connection broke before an answer came; nothing was published, and what arrived stays."""


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


def _refused(response: httpx2.Response) -> OrchestratorAnswer:
    try:
        said = PublishRefused.model_validate_json(response.content)
    except ValidationError:
        said = PublishRefused(error=response.text.strip()[:500] or response.reason_phrase)
    return OrchestratorAnswer(response.status_code, refused=said)


def publish(
    url: str,
    token: str,
    parcel: Parcel,
    *,
    assembly: str,
    current: str | None = None,
    lease: str | None = None,
    progress: Callable[[int, int], None] = lambda sent, total: None,
) -> OrchestratorAnswer:
    """Publish an Assembly.

    Args:
        url: the Orchestrator, without a trailing slash.
        token: the publish token.
        parcel: what is sent.
        assembly: its hash, 64 hex digits.
        current: the hash of the Assembly that is current, whose files need not be named again.
        lease: the stamp of the converge's Lease, `LeaseStamp.header()`; an older one is refused.
        progress: told how many bytes of how many were sent.

    Raises:
        BrokeOff: the connection broke before an answer came.
        StepFailed: a file is no longer what was staged.
    """
    headers = {
        "Authorization": f"Bearer {token}",
        names.HEADER_KIT_VERSION: names.KIT_VERSION,
        trace.HEADER: trace.traceparent(os.environ),
    }
    if lease is not None:
        headers[names.HEADER_LEASE] = lease
    try:
        with httpx2.Client(
            base_url=url,
            headers=headers,
            timeout=httpx2.Timeout(120.0, connect=10.0),
            limits=httpx2.Limits(max_connections=AT_ONCE),
            trust_env=False,
        ) as client:
            answer = _publish(client, parcel, assembly, current, progress)
            for _ in range(TRIES - 1):
                if answer.status != 412:
                    break
                # What the list starts from, or a blob, has gone: it is all named again.
                answer = _publish(client, parcel, assembly, None, progress)
            return answer
    except httpx2.HTTPError as error:
        raise _broke_off(assembly, f"{type(error).__name__}: {error}") from error


def _publish(
    client: httpx2.Client,
    parcel: Parcel,
    assembly: str,
    current: str | None,
    progress: Callable[[int, int], None],
) -> OrchestratorAnswer:
    listing = _listing(client, parcel, current)
    text = listing.model_dump_json(by_alias=True, exclude_defaults=True)
    body = gzip.compress(text.encode(), compresslevel=6, mtime=0)
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    asked = client.post(f"/assemblies/{assembly}/missing", content=body, headers=headers)
    if asked.status_code != 200:
        return _refused(asked)
    missing = set(MissingBlobs.model_validate_json(asked.content).missing)
    sizes = {
        each.sha256: each.size
        for each in parcel.files
        if each.sha256 is not None and each.sha256 in missing
    }
    try:
        send_blobs(client, sizes, parcel.sources, progress)
    except BlobRefused as refused:
        if refused.response.status_code in _PASSES:
            raise _broke_off(assembly, f"HTTP {refused.response.status_code}") from refused
        return _refused(refused.response)
    committed = client.put(f"/assemblies/{assembly}", content=body, headers=headers)
    if committed.status_code not in (200, 201):
        return _refused(committed)
    published = Published.model_validate_json(committed.content)
    return OrchestratorAnswer(committed.status_code, published=published)


def _listing(client: httpx2.Client, parcel: Parcel, current: str | None) -> AssemblyListing:
    """Return the list to send: over the current Assembly, when the Orchestrator says its files."""
    if current is not None:
        answer = client.get(f"/assemblies/{current}/files")
        if answer.status_code == 200:
            held = AssemblyFiles.model_validate_json(answer.content).files
            return listing_over(parcel.files, current, held)
    return listing_over(parcel.files, None, ())


def _broke_off(assembly: str, why: str) -> BrokeOff:
    return BrokeOff(
        f"the publish of Assembly {assembly[: names.SHORT_HASH]} broke off ({why}) — the previous"
        " Assembly is still current. Run `jr2 up` again"
    )


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
