"""Push an image, copy one by digest, and look one up: what jr2 does with registries.

Blobs come before the manifests that name them, and the manifest of the tag comes last, so a push
that is cut leaves no name that leads nowhere. What is there already is not sent again, so a second
try does the rest.

Source: OCI distribution spec 1.1; libraries.md (row OCI registry), ADR-0112.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Protocol

from .errors import RegistryError
from .host import Host, Sleep
from .layout import Layout
from .media import Descriptor, Manifest
from .reference import Reference
from .repository import Repository
from .upload import Source, Upload

_AT_ONCE: Final = 3
"""Blobs that are sent at the same time."""

Progress = Callable[[int], None]
"""Is told how many bytes have been sent in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a push or a copy did.

    Args:
        reference: the name, with the digest that it has now.
        changed: whether the registry had it otherwise before.
        sent: the blobs that were sent.
        mounted: the blobs that were taken over from another repository.
    """

    reference: Reference
    changed: bool
    sent: int = 0
    mounted: int = 0


class _Images(Source, Protocol):
    """Where manifests and blobs come from."""

    def read_manifest(self, descriptor: Descriptor) -> Manifest:
        """Read a manifest."""


class Client:
    """Speaks to registries; use it as a context manager.

    Args:
        environ: the environment that credentials and certificates are read from.
        progress: is told how many bytes have been sent.
        sleep: waits; a test gives its own.
    """

    def __init__(
        self,
        environ: Mapping[str, str] | None = None,
        *,
        progress: Progress = lambda sent: None,
        sleep: Sleep = time.sleep,
    ) -> None:
        self._environ = os.environ if environ is None else environ
        self._progress = progress
        self._sleep = sleep
        self._hosts: dict[str, Host] = {}
        self._sent = 0
        self._lock = threading.Lock()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        for host in self._hosts.values():
            host.close()
        self._hosts.clear()

    def resolve(self, reference: Reference) -> Descriptor | None:
        """Return what a name leads to; `None` when there is nothing.

        Raises:
            RegistryError: the registry says neither.
        """
        return self._repository(reference).resolve(reference.version)

    def exists(self, reference: Reference) -> bool:
        """Tell whether a name leads to an image.

        Raises:
            RegistryError: the registry says neither.
        """
        return self.resolve(reference) is not None

    def manifest(self, reference: Reference) -> Manifest:
        """Read the manifest or the index that a name leads to.

        Raises:
            RegistryError: there is none, or it cannot be read.
        """
        return self._repository(reference).manifest(reference.version)

    def push(self, layout: Layout, target: Reference, *, name: str | None = None) -> Result:
        """Push an image of a layout under a name.

        Args:
            layout: where it is.
            target: its name in the registry.
            name: which image of the layout; `None` when it holds one.

        Raises:
            StepFailed: the layout lacks something.
            RegistryError: the registry does not take it.
        """
        return self._transfer(layout, layout.choose(name), target, ())

    def copy(self, source: Reference, target: Reference) -> Result:
        """Copy an image, with all its platforms, from one name to another.

        The bytes of manifests do not change, so both have one digest. In one registry blobs are
        mounted and not sent.

        Args:
            source: what is copied; a tag is resolved once.
            target: its new name.

        Raises:
            RegistryError: one of the registries refuses, or the source is not there.
        """
        descriptor = self.resolve(source)
        if descriptor is None:
            raise RegistryError(f"{source} is not there, so it cannot be copied to {target}")
        same = source.registry == target.registry and source.repository != target.repository
        mounts = (source.repository,) if same else ()
        return self._transfer(self._repository(source), descriptor, target, mounts)

    def _transfer(
        self, images: _Images, root: Descriptor, target: Reference, mounts: tuple[str, ...]
    ) -> Result:
        repository = self._repository(target, writes=True, mounts=mounts)
        if target.digest is not None and target.digest != root.digest:
            raise RegistryError(f"{target} cannot be {root.digest}")
        named = Reference(
            registry=target.registry,
            repository=target.repository,
            tag=target.tag,
            digest=root.digest,
        )
        version = target.tag or root.digest
        standing = repository.resolve(version)
        if standing is not None and standing.digest == root.digest:
            return Result(reference=named, changed=False)
        manifests = _all_manifests(images, root)
        blobs = {
            blob.digest: blob
            for manifest in manifests
            for blob in manifest.blobs
            if not blob.elsewhere
        }

        stopped = threading.Event()

        def count(sent: int) -> None:
            # What was interrupted, or failed beside it, is not sent to its end.
            if stopped.is_set():
                raise RegistryError(f"the push of {target} was stopped")
            try:
                self._count(sent)
            except BaseException:
                # At once: until whoever waits for the blobs has a turn, much more can be sent.
                stopped.set()
                raise

        def bring(blob: Descriptor) -> str:
            try:
                return bring_or_raise(blob)
            except BaseException:
                stopped.set()
                raise

        def bring_or_raise(blob: Descriptor) -> str:
            if repository.has_blob(blob.digest):
                return ""
            upload = Upload(target=repository, descriptor=blob, source=images, progress=count)
            if any(upload.mount(other) for other in mounts):
                return "mounted"
            upload.run()
            return "sent"

        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            try:
                waiting = [pool.submit(bring, blob) for blob in blobs.values()]
                ended, _ = wait(waiting, return_when=FIRST_EXCEPTION)
                for future in ended:
                    future.result()
            except BaseException:
                stopped.set()
                pool.shutdown(cancel_futures=True)
                raise
        done = [future.result() for future in waiting]
        for manifest in manifests[:-1]:
            repository.put_manifest(manifest, manifest.descriptor.digest)
        repository.put_manifest(manifests[-1], version)
        return Result(
            reference=named,
            changed=True,
            sent=done.count("sent"),
            mounted=done.count("mounted"),
        )

    def _count(self, sent: int) -> None:
        with self._lock:
            self._sent += sent
            total = self._sent
        self._progress(total)

    def _repository(
        self, reference: Reference, *, writes: bool = False, mounts: tuple[str, ...] = ()
    ) -> Repository:
        with self._lock:
            host = self._hosts.get(reference.registry)
            if host is None:
                host = self._hosts[reference.registry] = Host(reference, self._environ, self._sleep)
        return Repository(host, reference.repository, writes=writes, mounts=mounts)


def _all_manifests(images: _Images, root: Descriptor) -> list[Manifest]:
    """Read a manifest and all below it; each stands after those that it names."""
    found: dict[str, Manifest] = {}

    def visit(descriptor: Descriptor) -> None:
        if descriptor.digest not in found:
            manifest = images.read_manifest(descriptor)
            for child in manifest.manifests:
                visit(child)
            found[descriptor.digest] = manifest

    visit(root)
    return list(found.values())
