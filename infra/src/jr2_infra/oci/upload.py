"""One blob into a repository: found there, mounted from another one, or uploaded.

An upload whose connection is cut asks the registry how much it has, and sends the rest. A registry
that has forgotten the upload gets a new one. What makes no progress is given up after a few tries.

Source: OCI distribution spec 1.1 (pushing a blob in chunks).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import httpx2

from .errors import RegistryError
from .host import ATTEMPTS, is_busy
from .media import Descriptor
from .repository import Repository

_RANGE = re.compile(r"(?:bytes=)?0-(\d+)")

Progress = Callable[[int], None]
"""Is told of bytes that were sent."""


class Source(Protocol):
    """Where the bytes of a blob come from."""

    def read_blob(self, descriptor: Descriptor, offset: int) -> Iterator[bytes]:
        """Read a blob from an offset on; it may be called again."""


@dataclass(slots=True, kw_only=True)
class Upload:
    """The upload of one blob.

    Args:
        target: the repository.
        descriptor: the blob.
        source: where its bytes come from.
        progress: is told of bytes that were sent.
    """

    target: Repository
    descriptor: Descriptor
    source: Source
    progress: Progress = lambda sent: None

    def mount(self, repository: str) -> bool:
        """Take the blob over from another repository of the same registry, when it has it there.

        Raises:
            RegistryError: the registry refuses the push.
        """
        query = {"mount": self.descriptor.digest, "from": repository}
        answer = self._begin(query)
        if answer.status_code == httpx2.codes.CREATED:
            return True
        # It began an upload instead, and who looks for a blob elsewhere does not want it.
        location = self.target.host.location(answer.url, answer)
        with (
            contextlib.suppress(httpx2.TransportError),
            self.target.host.send("DELETE", location, scopes=self.target.scopes),
        ):
            pass
        return False

    def run(self) -> None:
        """Send the blob.

        Raises:
            RegistryError: the registry does not take it, or no connection lasts.
        """
        host, failures, offset = self.target.host, 0, 0
        location: httpx2.URL | None = None
        problem = RegistryError(f"{self._what} was not sent")
        while failures < ATTEMPTS:
            if failures:
                host.pause(failures)
            before = offset
            try:
                if location is None:
                    begun = self._begin({})
                    location, offset = host.location(begun.url, begun), 0
                elif failures:
                    found = self._ask_how_far(location)
                    if found is None:
                        # Perhaps only the last answer was lost.
                        if self.target.has_blob(self.descriptor.digest):
                            return
                        location = None
                        failures += 1
                        continue
                    location, offset = found
                if offset < self.descriptor.size:
                    location = self._send_rest(location, offset)
                    offset = self.descriptor.size
                self._finish(location)
                return
            except httpx2.TransportError as error:
                problem = host.silence(error)
                problem.__cause__ = error
            except _Again as again:
                problem = again.error
            failures = 1 if offset > before else failures + 1
        raise problem

    @property
    def _what(self) -> str:
        return f"push of the blob {self.descriptor.digest}"

    def _begin(self, query: dict[str, str]) -> httpx2.Response:
        url = self.target.host.url(f"{self.target.name}/blobs/uploads/")
        if query:
            url = url.copy_merge_params(query)
        good = (httpx2.codes.ACCEPTED, httpx2.codes.CREATED)
        return self._do("POST", url, {"Content-Length": "0"}, None, good)

    def _send_rest(self, location: httpx2.URL, offset: int) -> httpx2.URL:
        """Send what the registry does not have yet, and return where the upload goes on."""
        size = self.descriptor.size
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Length": str(size - offset),
        }
        if offset:
            headers["Content-Range"] = f"{offset}-{size - 1}"

        def body() -> Iterator[bytes]:
            for chunk in self.source.read_blob(self.descriptor, offset):
                yield chunk
                self.progress(len(chunk))

        answer = self._do("PATCH", location, headers, body, (httpx2.codes.ACCEPTED,))
        return self.target.host.location(location, answer)

    def _finish(self, location: httpx2.URL) -> None:
        url = location.copy_merge_params({"digest": self.descriptor.digest})
        headers = {"Content-Length": "0", "Content-Type": "application/octet-stream"}
        good = (httpx2.codes.CREATED, httpx2.codes.NO_CONTENT)
        self._do("PUT", url, headers, None, good)

    def _ask_how_far(self, location: httpx2.URL) -> tuple[httpx2.URL, int] | None:
        """Ask how many bytes have arrived; `None` when the registry knows of no such upload."""
        host = self.target.host
        with host.send("GET", location, scopes=self.target.scopes) as answer:
            if is_busy(answer.status_code):
                raise _Again(host.refusal(answer, self.target.name, self._what, answer.read()))
            if answer.status_code not in (httpx2.codes.NO_CONTENT, httpx2.codes.ACCEPTED):
                return None
            said = _RANGE.fullmatch(answer.headers.get("Range", ""))
            # `0-0` should say one byte, and registries say it of none too: nothing is lost with a
            # new upload.
            if said is None or said.group(1) == "0":
                return None
            arrived = int(said.group(1)) + 1
            return host.location(location, answer), min(arrived, self.descriptor.size)

    def _do(
        self,
        method: str,
        url: httpx2.URL,
        headers: dict[str, str],
        body: Callable[[], Iterator[bytes]] | None,
        good: tuple[int, ...],
    ) -> httpx2.Response:
        host = self.target.host
        with host.send(
            method, url, scopes=self.target.scopes, headers=headers, body=body
        ) as answer:
            content = answer.read()
            if answer.status_code in good:
                return answer
            error = host.refusal(answer, self.target.name, self._what, content)
            # What arrived is less than we believed, or the upload is gone: ask, and go on.
            if is_busy(answer.status_code) or (
                method != "POST" and answer.status_code in (404, 416)
            ):
                raise _Again(error)
            raise error


class _Again(Exception):
    """A registry that may take it at the next try.

    Args:
        error: what is said when there is none.
    """

    def __init__(self, error: RegistryError) -> None:
        super().__init__(error.message)
        self.error = error
