"""How a request proves who sends it: the transport of one kubeconfig user.

Client certificates, tokens, token files, basic auth, `exec` plugins and impersonation work as they
do in kubectl. A token from a file or a plugin is fetched again when the server answers 401. A
server that has no room for a request, or makes the storage of a new kind, says 429 and when to come
back: nothing was done, so the request is sent again then, within the time that it has.

Source: libraries.md §3 (rows Kubeconfig and Async Kubernetes), design §5.3.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx2

from jr2.errors import StepFailed

from . import headers, inherited, private, processes
from .kube import read_file

if TYPE_CHECKING:
    from .kube import KubeContext

_EXEC_VERSIONS: Final = (
    "client.authentication.k8s.io/v1",
    "client.authentication.k8s.io/v1beta1",
)
_EXEC_SECONDS: Final = 120.0


def transport(context: KubeContext) -> httpx2.BaseTransport:
    """Return the transport of a context's requests; it may be used from several threads.

    Raises:
        StepFailed: a file of the context cannot be read, or its user needs an `auth-provider`.
    """
    if context.user.get("auth-provider"):
        raise StepFailed(
            f"context {context.name} uses an auth-provider, which kubectl removed — "
            "use its exec plugin"
        )
    return _UserTransport(context)


class _UserTransport(httpx2.BaseTransport):
    """Adds the user's proof to each request, and asks for a new one once after a 401.

    A request that is sent again after a 429 waits no longer than its own limit for an answer.
    """

    def __init__(self, context: KubeContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._credential: _Credential | None = None
        self._inner: httpx2.HTTPTransport | None = None

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        left = float(request.extensions.get("timeout", {}).get("read") or 0)
        while True:
            response = self._answer(request)
            pause = _come_back_in(response)
            if pause is None or pause > left:
                return response
            response.close()
            time.sleep(pause)
            left -= pause

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        inner, credential = self._ready(None)
        signed = self._signed(request, credential)
        try:
            response = inner.handle_request(signed)
        except httpx2.ConnectError as failed:
            if not _is_garbled(failed):
                raise
            response = inner.handle_request(signed)
        if response.status_code != 401 or not _renewable(self._context.user):
            return response
        response.close()
        inner, credential = self._ready(credential)
        return inner.handle_request(self._signed(request, credential))

    def close(self) -> None:
        if self._inner is not None:
            self._inner.close()

    def _ready(self, refused: _Credential | None) -> tuple[httpx2.HTTPTransport, _Credential]:
        with self._lock:
            current = self._credential
            if current is None or current is refused or current.is_over():
                fresh = _credential(self._context)
                if self._inner is not None and current and current.pair != fresh.pair:
                    self._inner.close()
                    self._inner = None
                self._credential = current = fresh
            if self._inner is None:
                self._inner = httpx2.HTTPTransport(
                    verify=_ssl_context(self._context, current),
                    proxy=_proxy(self._context),
                    limits=httpx2.Limits(max_connections=32, max_keepalive_connections=32),
                )
            return self._inner, current

    def _signed(self, request: httpx2.Request, credential: _Credential) -> httpx2.Request:
        if credential.header:
            request.headers["Authorization"] = credential.header
        user = self._context.user
        if user.get("as"):
            request.headers["Impersonate-User"] = str(user["as"])
        if user.get("as-uid"):
            request.headers["Impersonate-Uid"] = str(user["as-uid"])
        groups = [("Impersonate-Group", str(group)) for group in user.get("as-groups") or []]
        if groups:
            kept = [
                pair for pair in request.headers.multi_items() if pair[0] != "impersonate-group"
            ]
            request.headers = httpx2.Headers([*kept, *groups])
        if name := self._context.cluster.get("tls-server-name"):
            request.extensions = {**request.extensions, "sni_hostname": str(name)}
        return request


class _Credential:
    """What proves a user: a header, a certificate, or both; never shown."""

    __slots__ = ("expires", "header", "pair")

    def __init__(
        self,
        header: str | None = None,
        pair: tuple[bytes, bytes] | None = None,
        expires: datetime | None = None,
    ) -> None:
        self.header = header
        self.pair = pair
        self.expires = expires

    def is_over(self) -> bool:
        return self.expires is not None and datetime.now(UTC) >= self.expires


def _come_back_in(response: httpx2.Response) -> float | None:
    """Return the seconds after which a server that says 429 wants to be asked again."""
    said = response.headers.get("Retry-After", "")
    return max(1.0, float(said)) if response.status_code == 429 and said.isdecimal() else None


def _renewable(user: Mapping[str, Any]) -> bool:
    return bool(user.get("tokenFile") or user.get("exec"))


def _credential(context: KubeContext) -> _Credential:
    user = context.user
    pair = _static_pair(user)
    if user.get("tokenFile"):
        token = read_file(Path(str(user["tokenFile"]))).decode("utf-8", "replace").strip()
        what = f"context {context.name}: the token in {user['tokenFile']}"
        return _Credential(header=headers.bearer(token, what), pair=pair)
    if user.get("token"):
        what = f"context {context.name}: the token of the kubeconfig"
        return _Credential(header=headers.bearer(str(user["token"]), what), pair=pair)
    if isinstance(user.get("exec"), dict):
        return _from_plugin(context, user["exec"])
    if user.get("username"):
        both = f"{user['username']}:{user.get('password') or ''}".encode()
        return _Credential(header="Basic " + base64.b64encode(both).decode(), pair=pair)
    return _Credential(pair=pair)


def _static_pair(user: Mapping[str, Any]) -> tuple[bytes, bytes] | None:
    certificate = _bytes_of(user, "client-certificate")
    key = _bytes_of(user, "client-key")
    return (certificate, key) if certificate and key else None


def _bytes_of(entry: Mapping[str, Any], key: str) -> bytes | None:
    """Return the bytes that an entry gives as data or, without data, as a file."""
    data = entry.get(f"{key}-data")
    if data:
        try:
            return base64.b64decode(str(data), validate=False)
        except ValueError as error:
            raise StepFailed(f"the kubeconfig's {key}-data is not base64") from error
    return read_file(Path(str(entry[key]))) if entry.get(key) else None


def _from_plugin(context: KubeContext, plugin: Mapping[str, Any]) -> _Credential:
    """Run the `exec` plugin of a user and take its answer."""
    version, command = str(plugin.get("apiVersion", "")), str(plugin.get("command", ""))
    if version not in _EXEC_VERSIONS:
        raise StepFailed(f"context {context.name}: exec apiVersion {version!r} is not known")
    spec: dict[str, Any] = {"interactive": False}
    if plugin.get("provideClusterInfo"):
        spec["cluster"] = {
            "server": context.server,
            "certificate-authority-data": base64.b64encode(
                _bytes_of(context.cluster, "certificate-authority") or b""
            ).decode(),
        }
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    added = {str(item["name"]): str(item["value"]) for item in plugin.get("env") or []}
    env = {**inherited.environment(), **added, "KUBERNETES_EXEC_INFO": json.dumps(info)}
    argv = [command, *(str(argument) for argument in plugin.get("args") or [])]
    try:
        done = processes.run(argv, env=env, timeout=_EXEC_SECONDS)
    except FileNotFoundError:
        hint = str(plugin.get("installHint") or "").strip()
        missing = f"context {context.name}: the program {command} is not installed"
        raise StepFailed(f"{missing}\n{hint}" if hint else missing) from None
    except OSError as error:
        raise StepFailed(f"context {context.name}: cannot start {command}: {error}") from error
    except processes.TimeoutExpired:
        raise StepFailed(
            f"context {context.name}: {command} gave no answer in {_EXEC_SECONDS:.0f}s"
        ) from None
    if done.returncode != 0:
        words = done.stderr.strip().splitlines()
        raise StepFailed(
            f"context {context.name}: {command} ended with {done.returncode}"
            + (f": {words[-1]}" if words else "")
        )
    return _answer(context, command, done.stdout)


def _answer(context: KubeContext, command: str, text: str) -> _Credential:
    what = f"context {context.name}: the token that {command} gave"
    try:
        status = json.loads(text)["status"]
        token = str(status.get("token") or "")
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        expires = status.get("expirationTimestamp")
        return _Credential(
            header=headers.bearer(token, what) if token else None,
            pair=(certificate.encode(), key.encode()) if certificate and key else None,
            expires=datetime.fromisoformat(expires) if expires else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        # The answer holds the credential, so nothing of it is quoted.
        raise StepFailed(
            f"context {context.name}: {command} did not answer with an ExecCredential"
        ) from None


def _ssl_context(context: KubeContext, credential: _Credential) -> ssl.SSLContext:
    authority = _bytes_of(context.cluster, "certificate-authority")
    settings = (
        ssl.create_default_context(cadata=authority.decode("utf-8", "replace"))
        if authority
        else ssl.create_default_context()
    )
    if context.cluster.get("insecure-skip-tls-verify"):
        settings.check_hostname = False
        settings.verify_mode = ssl.CERT_NONE
    if credential.pair:
        # OpenSSL reads a certificate from a file only.
        with private.secret_file(b"\n".join(credential.pair)) as path:
            try:
                settings.load_cert_chain(path)
            except ssl.SSLError as error:
                raise StepFailed(
                    f"context {context.name}: its client certificate and key do not fit"
                ) from error
    return settings


def _is_garbled(failed: BaseException) -> bool:
    """Whether the server could not read a message of a handshake, so that no request was sent.

    When many connections are made at once, one in some ten thousand handshakes of OpenSSL 3.0 with
    an API server ends so, most likely for its client certificate; the next one is as it should be.
    """
    cause: BaseException | None = failed
    while cause is not None:
        if isinstance(cause, ssl.SSLError) and cause.reason == "TLSV1_ALERT_DECODE_ERROR":
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _proxy(context: KubeContext) -> str | None:
    """Return the proxy of the cluster's entry, else that of the environment."""
    if context.cluster.get("proxy-url"):
        return str(context.cluster["proxy-url"])
    address = urllib.parse.urlsplit(context.server)
    host = address.hostname or ""
    # As in kubectl, what runs on this machine is never reached through a proxy.
    if host == "localhost" or host.startswith("127.") or host == "::1":
        return None
    if urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(address.scheme)
