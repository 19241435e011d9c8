"""A file from an address, whole and with the sum that it must have, or not at all.

What has arrived lies in a partial file that is named by the sum, so a download that was cut or
killed goes on where it stopped, also in the next run. The file gets its name only after its sum
was checked; one with another sum is removed.

Redirects are followed, since release hosts answer with one; never from https to http.

Source: design §7, ADR-0111.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import httpx2

from jr2.errors import StepFailed

_ATTEMPTS: Final = 4
_REDIRECTS: Final = 5
_TIMEOUT: Final = httpx2.Timeout(30.0, connect=10.0)
_SPARE_BYTES: Final = 2**28
"""What must stay free beside the file itself, for what is taken out of it."""

Progress = Callable[[int, int | None], None]
"""Called with the bytes that are there, and with the size of the file where it is known."""


class Unreachable(StepFailed):
    """The host of an address does not answer at all."""


class _Cut(Exception):
    """The connection ended before the file did."""


def new_client() -> httpx2.Client:
    """A client with our limits; the proxies of the environment hold."""
    return httpx2.Client(timeout=_TIMEOUT, follow_redirects=False)


def download(
    address: str,
    sha256: str,
    folder: Path,
    *,
    client: httpx2.Client,
    progress: Progress = lambda done, total: None,
) -> Path:
    """Fetch a file into a folder.

    Args:
        address: where it is.
        sha256: the sum that it must have, 64 hex digits.
        folder: where it is put, named by its sum; a partial file there is gone on with.
        client: what asks.
        progress: is told how far it is.

    Returns:
        The place of the whole file.

    Raises:
        Unreachable: the host does not answer.
        StepFailed: it answers with something else than this file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    whole, partial = folder / sha256, folder / f"{sha256}.part"
    if whole.exists() and _sum_of(whole) == sha256:
        return whole
    while True:
        resumed = partial.exists() and partial.stat().st_size > 0
        _fetch(address, partial, client, progress)
        found = _sum_of(partial)
        if found == sha256:
            partial.replace(whole)
            return whole
        partial.unlink()
        if not resumed:
            raise StepFailed(
                f"{address} has the sum {found}, and {sha256} is committed: it is not the file "
                "that was released"
            )
        # What lay here may have been the start of another file: once more, from nothing.


def _fetch(address: str, partial: Path, client: httpx2.Client, progress: Progress) -> None:
    """Bring the partial file to its end, over as many connections as it takes."""
    failures = 0
    while True:
        before = partial.stat().st_size if partial.exists() else 0
        try:
            _continue(address, partial, client, progress)
            return
        except httpx2.ConnectError as error:
            raise Unreachable(f"{httpx2.URL(address).host} does not answer ({error})") from error
        except (httpx2.TransportError, _Cut) as error:
            after = partial.stat().st_size if partial.exists() else 0
            failures = 1 if after > before else failures + 1
            if failures == _ATTEMPTS:
                words = str(error) or type(error).__name__
                raise StepFailed(
                    f"{address} was cut {failures} times after {after} bytes ({words})"
                ) from error


def _continue(address: str, partial: Path, client: httpx2.Client, progress: Progress) -> None:
    """Ask for what is missing, and append it.

    Raises:
        _Cut: the body ended early.
        StepFailed: the answer is no file.
    """
    have = partial.stat().st_size if partial.exists() else 0
    # A compressed transfer would have other offsets than the file.
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    url = httpx2.URL(address)
    for _ in range(_REDIRECTS + 1):
        with client.stream("GET", url, headers=headers) as answer:
            if answer.has_redirect_location:
                url = _next(url, answer)
                continue
            if answer.status_code == httpx2.codes.RANGE_NOT_SATISFIABLE and have:
                # Nothing is missing, or the file is another one: its sum will say which.
                return
            if answer.status_code == httpx2.codes.OK:
                have = 0
            elif not (answer.status_code == httpx2.codes.PARTIAL_CONTENT and _starts(answer, have)):
                raise StepFailed(f"{url} answers {answer.status_code} {answer.reason_phrase}")
            _append(answer, partial, have, progress)
            return
    raise StepFailed(f"{address} redirects more than {_REDIRECTS} times")


def _append(answer: httpx2.Response, partial: Path, have: int, progress: Progress) -> None:
    length = answer.headers.get("Content-Length")
    total = have + int(length) if length is not None else None
    if total is not None:
        _check_room(partial.parent, total - have)
    # Written as it arrives: whatever ends this process, the next one goes on from there.
    with partial.open("r+b" if have else "wb", buffering=0) as file:
        file.seek(have)
        for chunk in answer.iter_raw():
            file.write(chunk)
            have += len(chunk)
            progress(have, total)
    if total is not None and have < total:
        raise _Cut(f"{have} of {total} bytes")


def _next(url: httpx2.URL, answer: httpx2.Response) -> httpx2.URL:
    target = url.join(answer.headers["Location"])
    if target.scheme not in ("http", "https") or (url.scheme, target.scheme) == ("https", "http"):
        raise StepFailed(f"{url} redirects to {target.scheme}, which is not followed")
    return target


def _starts(answer: httpx2.Response, have: int) -> bool:
    found = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
    return found is not None and int(found.group(1)) == have


def _check_room(folder: Path, wanted: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < wanted + _SPARE_BYTES:
        raise StepFailed(
            f"{folder} has {free / 1e6:.0f} MB free, and the download needs "
            f"{(wanted + _SPARE_BYTES) / 1e6:.0f} MB"
        )


def _sum_of(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
