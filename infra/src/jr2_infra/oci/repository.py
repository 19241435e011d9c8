"""One repository of a registry: manifests, and blobs that are there, are mounted or are read.

What is read is checked against its digest. A blob that is read is gone on with where the
connection was cut.

Source: OCI distribution spec 1.1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager

import httpx2

from .authorize import Scopes
from .errors import RegistryError
from .host import ATTEMPTS, Host, is_busy
from .media import MANIFEST_BYTES, MANIFESTS, Descriptor, Manifest, digest_of, read_manifest
from .reference import is_digest

_ERROR_BYTES = 64 * 1024


class Repository:
    """One repository.

    Args:
        host: its registry.
        name: its path.
        writes: whether it is written to.
        mounts: repositories of the same registry that blobs are mounted from.
    """

    def __init__(
        self, host: Host, name: str, *, writes: bool = False, mounts: tuple[str, ...] = ()
    ) -> None:
        self.host = host
        self.name = name
        rights = "pull,push" if writes else "pull"
        self.scopes: Scopes = (
            f"repository:{name}:{rights}",
            *(f"repository:{other}:pull" for other in mounts),
        )

    def resolve(self, version: str) -> Descriptor | None:
        """Return what a tag or a digest names; `None` when there is nothing.

        Raises:
            RegistryError: the registry says neither.
        """
        answer, _ = self._ask(
            "HEAD",
            f"manifests/{version}",
            f"look at {version}",
            headers={"Accept": ", ".join(MANIFESTS)},
            absent=True,
        )
        if answer is None:
            return None
        digest = answer.headers.get("Docker-Content-Digest", version)
        length = answer.headers.get("Content-Length", "")
        if not is_digest(digest) or not length.isdigit():
            return self.manifest(version).descriptor
        media_type = answer.headers.get("Content-Type", "").partition(";")[0]
        return Descriptor(media_type=media_type, digest=digest, size=int(length))

    def manifest(self, version: str) -> Manifest:
        """Read the manifest of a tag or a digest.

        Raises:
            RegistryError: there is none, or it is another one than its digest says.
        """
        answer, content = self._ask(
            "GET",
            f"manifests/{version}",
            f"read of {version}",
            headers={"Accept": ", ".join(MANIFESTS)},
        )
        assert answer is not None
        where = f"{self.host.registry}/{self.name} {version}"
        said = answer.headers.get("Docker-Content-Digest", digest_of(content))
        wanted = version if is_digest(version) else said
        if digest_of(content) != wanted:
            raise RegistryError(f"{where} has the digest {digest_of(content)}, and not {wanted}")
        return read_manifest(content, answer.headers.get("Content-Type", ""), where)

    def read_manifest(self, descriptor: Descriptor) -> Manifest:
        """Read a manifest by its digest.

        Raises:
            RegistryError: it is missing, or is another one than its digest says.
        """
        return self.manifest(descriptor.digest)

    def put_manifest(self, manifest: Manifest, version: str) -> None:
        """Put a manifest under a tag or its digest; all that it names is there.

        Raises:
            RegistryError: the registry does not take it.
        """
        headers = {"Content-Type": manifest.descriptor.media_type}
        self._ask(
            "PUT",
            f"manifests/{version}",
            f"push of the manifest {version}",
            headers=headers,
            content=manifest.content,
            good=(httpx2.codes.CREATED, httpx2.codes.OK, httpx2.codes.ACCEPTED),
        )

    def has_blob(self, digest: str) -> bool:
        """Tell whether the repository holds a blob.

        Raises:
            RegistryError: the registry says neither.
        """
        answer, _ = self._ask("HEAD", f"blobs/{digest}", f"look at the blob {digest}", absent=True)
        return answer is not None

    def read_blob(self, descriptor: Descriptor, offset: int) -> Iterator[bytes]:
        """Read a blob from an offset on; a cut connection is gone on with.

        Args:
            descriptor: the blob.
            offset: how many of its bytes are left out.

        Yields:
            Its bytes; all of them are checked when the offset is 0.

        Raises:
            RegistryError: it cannot be read, or is another one than its digest says.
        """
        running = hashlib.sha256() if offset == 0 else None
        at, failures = offset, 0
        while at < descriptor.size:
            before = at
            try:
                for chunk in self._read_from(descriptor, at):
                    at += len(chunk)
                    if running is not None:
                        running.update(chunk)
                    yield chunk
                problem = f"it ends after {at} of {descriptor.size} bytes"
            except httpx2.TransportError as error:
                problem = str(error) or type(error).__name__
            failures = 0 if at > before else failures + 1
            if failures == ATTEMPTS:
                raise RegistryError(
                    f"the blob {descriptor.digest} of {self.host.registry}/{self.name} cannot be "
                    f"read: {problem}"
                )
            if at < descriptor.size:
                self.host.pause(failures)
        if running is not None and f"sha256:{running.hexdigest()}" != descriptor.digest:
            raise RegistryError(
                f"the blob {descriptor.digest} of {self.host.registry}/{self.name} has the digest "
                f"sha256:{running.hexdigest()}"
            )

    def _read_from(self, descriptor: Descriptor, at: int) -> Iterator[bytes]:
        """Read a blob over one connection."""
        headers = {"Accept-Encoding": "identity"}
        if at:
            headers["Range"] = f"bytes={at}-"
        with self.host.get(
            "GET", f"{self.name}/blobs/{descriptor.digest}", scopes=self.scopes, headers=headers
        ) as answer:
            if answer.status_code not in (httpx2.codes.OK, httpx2.codes.PARTIAL_CONTENT):
                if is_busy(answer.status_code):
                    raise httpx2.ReadError(f"{answer.status_code} {answer.reason_phrase}")
                raise self.host.refusal(
                    answer, self.name, f"read of the blob {descriptor.digest}", _short(answer)
                )
            # Without a range all of it comes again.
            skip = at if answer.status_code == httpx2.codes.OK else 0
            for chunk in answer.iter_raw():
                rest = chunk[skip:]
                skip = max(0, skip - len(chunk))
                if rest:
                    yield rest

    def _ask(
        self,
        method: str,
        path: str,
        action: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        good: tuple[int, ...] = (httpx2.codes.OK,),
        absent: bool = False,
    ) -> tuple[httpx2.Response | None, bytes]:
        """Ask for something that may be asked twice; `None` for a 404 where that is an answer.

        Raises:
            RegistryError: the answer is not a good one, or none comes.
        """
        failures = 0
        while True:
            failures += 1
            try:
                with self._one(method, path, headers, content) as answer:
                    if answer.status_code in good:
                        return answer, _whole(answer, self.host.registry)
                    if absent and answer.status_code == httpx2.codes.NOT_FOUND:
                        return None, b""
                    if failures == ATTEMPTS or not is_busy(answer.status_code):
                        raise self.host.refusal(answer, self.name, action, _short(answer))
                    self.host.pause(failures, answer)
            except httpx2.TransportError as error:
                # A host that does not answer at all is not waited for.
                if failures == ATTEMPTS or isinstance(error, httpx2.ConnectError):
                    raise self.host.silence(error) from error
                self.host.pause(failures)

    def _one(
        self, method: str, path: str, headers: Mapping[str, str] | None, content: bytes | None
    ) -> AbstractContextManager[httpx2.Response]:
        whole = f"{self.name}/{path}"
        if content is None:
            return self.host.get(method, whole, scopes=self.scopes, headers=headers)
        return self.host.send(
            method,
            self.host.url(whole),
            scopes=self.scopes,
            headers={"Content-Length": str(len(content)), **(headers or {})},
            body=lambda: iter((content,)),
        )


def _whole(answer: httpx2.Response, registry: str) -> bytes:
    """Read a body that must not be larger than a manifest."""
    found = bytearray()
    for chunk in answer.iter_bytes():
        found += chunk
        if len(found) > MANIFEST_BYTES:
            raise RegistryError(f"{registry} answers with more than {MANIFEST_BYTES} bytes")
    return bytes(found)


def _short(answer: httpx2.Response) -> bytes:
    """Read the start of the body of an error."""
    found = b""
    for chunk in answer.iter_bytes():
        found += chunk
        if len(found) >= _ERROR_BYTES:
            break
    return found
