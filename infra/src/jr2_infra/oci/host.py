"""One registry: its address, and a request that is authorized, redirected and tried again.

Only a registry on this machine is spoken to in the clear, and only when it speaks no TLS.
Requests that change nothing twice are tried again when the connection ends, or when the registry
says that it cannot answer now.

Source: OCI distribution spec 1.1.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import httpx2

from .authorize import Authorizer, Scopes
from .docker_config import read_docker_config
from .errors import RegistryError, refused, unreachable
from .reference import Reference, is_loopback
from .trust import tls_context

ATTEMPTS: Final = 5
"""How often something that makes no progress is tried."""
_TIMEOUT: Final = httpx2.Timeout(60.0, connect=10.0, read=120.0)
"""A registry that has a large blob reads all of it once more before it answers."""
_REDIRECTS: Final = 5
_WAIT_SECONDS: Final = 30.0
"""The longest pause that a registry may ask for."""
_BUSY: Final = (408, 429, 500, 502, 503, 504)

Body = Callable[[], Iterator[bytes]]
"""Makes the body of a request anew: it may be sent more than once."""
Sleep = Callable[[float], None]


class Host:
    """One registry.

    Args:
        reference: any reference of it.
        environ: the environment that credentials and certificates are read from.
        sleep: waits; a test gives its own.
    """

    def __init__(
        self, reference: Reference, environ: Mapping[str, str], sleep: Sleep = time.sleep
    ) -> None:
        self.registry = reference.registry
        self.sleep = sleep
        self._api = reference.api
        self._http = httpx2.Client(
            verify=tls_context(self.registry, environ),
            timeout=_TIMEOUT,
            follow_redirects=False,
            # As Go programs do, no proxy is asked for what is on this machine.
            trust_env=not is_loopback(self._api),
        )
        config = read_docker_config(environ)
        self._authorizer = Authorizer(
            self.registry,
            self._http,
            lambda: config.credential(self.registry),
            str(config.path),
        )
        self._lock = threading.Lock()
        self._base: httpx2.URL | None = None

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def url(self, path: str) -> httpx2.URL:
        """The address of a path below `/v2/`."""
        with self._lock:
            if self._base is None:
                self._base = self._find_base()
            return self._base.join(f"/v2/{path}")

    def location(self, asked: httpx2.URL, answer: httpx2.Response) -> httpx2.URL:
        """The address that an answer names; one of this registry never loses its TLS.

        Raises:
            RegistryError: it names none.
        """
        target = answer.headers.get("Location")
        if target is None:
            raise RegistryError(f"{self.registry} names no place for what is to be sent")
        url = asked.join(target)
        # A registry behind a proxy that ends TLS often believes that it speaks in the clear.
        if asked.scheme == "https" and url.scheme == "http" and url.host == asked.host:
            return url.copy_with(scheme="https", port=asked.port)
        return url

    @contextmanager
    def send(
        self,
        method: str,
        url: httpx2.URL,
        *,
        scopes: Scopes,
        headers: Mapping[str, str] | None = None,
        body: Body | None = None,
    ) -> Iterator[httpx2.Response]:
        """Send a request once, or twice when it had to be authorized anew; give its answer to read.

        Args:
            method: of HTTP.
            url: where to.
            scopes: the rights that it needs.
            headers: what it carries beside the authorization.
            body: makes its body.

        Raises:
            RegistryError: no token can be had.
            httpx2.TransportError: the connection failed.
        """
        for attempt in (1, 2):
            # What is kept for this registry is for no other host.
            own = url.copy_with(raw_path=b"/") == self.url("").copy_with(raw_path=b"/")
            header = self._authorizer.header(scopes) if own else None
            sent = dict(headers or {})
            if header is not None:
                sent["Authorization"] = header
            request = self._http.build_request(
                method, url, headers=sent, content=None if body is None else body()
            )
            answer = self._http.send(request, stream=True)
            try:
                if (
                    answer.status_code == httpx2.codes.UNAUTHORIZED
                    and attempt == 1
                    and own
                    and self._authorizer.learn(answer, scopes, header)
                ):
                    continue
                yield answer
                return
            finally:
                answer.close()

    @contextmanager
    def get(
        self,
        method: str,
        path: str,
        *,
        scopes: Scopes,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[httpx2.Response]:
        """Ask for something that asking does not change: redirects are followed.

        Raises:
            RegistryError: no token can be had, or it redirects for ever.
            httpx2.TransportError: the connection failed.
        """
        url = self.url(path)
        for _ in range(_REDIRECTS + 1):
            with self.send(method, url, scopes=scopes, headers=headers) as answer:
                if not answer.has_redirect_location:
                    yield answer
                    return
                url = self.location(url, answer)
        raise RegistryError(f"{self.registry} redirects more than {_REDIRECTS} times")

    def refusal(
        self, answer: httpx2.Response, repository: str, action: str, body: bytes
    ) -> RegistryError:
        """Build the error of an answer.

        Args:
            answer: the answer.
            repository: what was asked of.
            action: what was asked for.
            body: the body of the answer.
        """
        return refused(
            registry=self.registry,
            repository=repository,
            action=action,
            status=answer.status_code,
            reason=answer.reason_phrase,
            body=body,
            secrets=self._authorizer.secrets,
            looked_in=self._authorizer.looked_in,
        )

    def silence(self, error: httpx2.TransportError) -> RegistryError:
        """Build the error of a connection that failed."""
        return unreachable(self.registry, str(error) or type(error).__name__)

    def pause(self, failures: int, answer: httpx2.Response | None = None) -> None:
        """Wait before the next try, as long as the registry says or a little longer each time."""
        said = answer.headers.get("Retry-After", "") if answer is not None else ""
        self.sleep(min(float(said), _WAIT_SECONDS) if said.isdigit() else 0.1 * 2**failures)

    def _find_base(self) -> httpx2.URL:
        secure = httpx2.URL(f"https://{self._api}")
        if not is_loopback(self._api):
            return secure
        try:
            self._http.get(secure.join("/v2/"))
        except httpx2.ConnectError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise self.silence(error) from error
            return secure.copy_with(scheme="http")
        except httpx2.TransportError:
            return secure.copy_with(scheme="http")
        return secure


def is_busy(status: int) -> bool:
    """Tell whether a status says that a later try may succeed."""
    return status in _BUSY
