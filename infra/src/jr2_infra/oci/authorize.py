"""The `Authorization` header that a registry wants: none, user and password, or a token.

Nothing is sent before the registry asks for it, and the credentials are not looked for before. A
token is fetched from the address that the registry names, once for each set of rights, and again
when the registry no longer takes it. Password and identity token never travel in the clear, but to
this machine.

Source: the token specification of the distribution project.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

import httpx2

from .challenge import Challenge, read_challenges
from .docker_config import Credential
from .errors import RegistryError, refused, unreachable
from .reference import is_loopback

_CLIENT: Final = "jr2"

Scopes = tuple[str, ...]
"""Rights that are asked for together, such as `repository:team/app:pull,push`."""


class Authorizer:
    """The header for each request to one registry.

    Args:
        registry: host and port, as a person writes them.
        http: asks the address of tokens.
        find: looks for a credential; called once, and only when the registry asks for one.
        looked_in: where it looks, for a message.
    """

    def __init__(
        self,
        registry: str,
        http: httpx2.Client,
        find: Callable[[], Credential | None],
        looked_in: str,
    ) -> None:
        self._registry = registry
        self._http = http
        self._find = find
        self._place = looked_in
        self._lock = threading.RLock()
        self._asked = False
        self._credential: Credential | None = None
        self._challenge: Challenge | None = None
        self._tokens: dict[Scopes, str] = {}

    def header(self, scopes: Scopes) -> str | None:
        """Return the header for a request with these rights; `None` while none is wanted."""
        with self._lock:
            if self._challenge is None:
                return None
            if self._challenge.scheme == "bearer":
                if scopes not in self._tokens:
                    self._tokens[scopes] = self._fetch(self._challenge, scopes)
                return f"Bearer {self._tokens[scopes]}"
            credential = self._with_password()
            return None if credential is None else f"Basic {credential.basic}"

    def learn(self, answer: httpx2.Response, scopes: Scopes, sent: str | None) -> bool:
        """Take in a 401; say whether a second try can do better.

        Args:
            answer: the answer.
            scopes: the rights of its request.
            sent: the header that it was sent with.
        """
        offered = {
            item.scheme: item
            for item in read_challenges(answer.headers.get_list("WWW-Authenticate"))
        }
        with self._lock:
            if "bearer" in offered:
                self._challenge = offered["bearer"]
                if sent is not None and self._tokens.get(scopes) == sent.removeprefix("Bearer "):
                    # It has expired, or its rights do not do.
                    del self._tokens[scopes]
                return True
            if "basic" in offered and sent is None:
                self._challenge = offered["basic"]
                return self._with_password() is not None
            return False

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown of what was sent."""
        with self._lock:
            own = self._credential.secrets if self._credential is not None else ()
            return (*own, *self._tokens.values())

    @property
    def looked_in(self) -> str:
        """Which credentials were used, or where none were found."""
        with self._lock:
            if self._credential is None:
                return f"no credentials for it in {self._place}"
            return f"with the credentials of {self._credential.source}"

    def _with_password(self) -> Credential | None:
        """The credential; `None` when it is an identity token, which only a place of tokens takes."""
        credential = self._look()
        return None if credential is not None and credential.identity_token else credential

    def _look(self) -> Credential | None:
        if not self._asked:
            self._credential, self._asked = self._find(), True
        return self._credential

    def _fetch(self, challenge: Challenge, scopes: Scopes) -> str:
        """Get a token from the address that the registry named.

        Raises:
            RegistryError: it gives none.
        """
        realm = challenge.parameters.get("realm", "")
        url = httpx2.URL(realm)
        credential = self._look()
        if url.scheme not in ("http", "https"):
            raise RegistryError(f"{self._registry} names {realm!r} as the place of tokens")
        if url.scheme == "http" and credential is not None and not is_loopback(url.netloc.decode()):
            raise RegistryError(
                f"{self._registry} wants its credentials to be sent to {realm}, in the clear — "
                "they are not sent there"
            )
        service = challenge.parameters.get("service")
        try:
            if credential is not None and credential.identity_token:
                form = {
                    "grant_type": "refresh_token",
                    "refresh_token": credential.identity_token,
                    "client_id": _CLIENT,
                    "scope": " ".join(scopes),
                    **({"service": service} if service else {}),
                }
                answer = self._http.post(url, data=form)
            else:
                query: dict[str, str | list[str]] = {"scope": list(scopes)}
                if service:
                    query["service"] = service
                auth = None
                if credential is not None:
                    query["account"] = credential.username
                    auth = (credential.username, credential.password)
                answer = self._http.get(url.copy_merge_params(query), auth=auth)
        except httpx2.TransportError as error:
            raise unreachable(url.netloc.decode(), str(error) or type(error).__name__) from error
        return self._token_of(answer, url, scopes)

    def _token_of(self, answer: httpx2.Response, url: httpx2.URL, scopes: Scopes) -> str:
        if answer.status_code != httpx2.codes.OK:
            raise refused(
                registry=self._registry,
                repository=", ".join(scopes),
                action=f"token of {url.host}",
                status=answer.status_code,
                reason=answer.reason_phrase,
                body=answer.content,
                secrets=self.secrets,
                looked_in=self.looked_in,
            )
        try:
            value: Any = answer.json()
            token = value.get("token") or value["access_token"]
        except (ValueError, KeyError, AttributeError):
            # Its words may be a token.
            raise RegistryError(f"{url.host} answers with no token for {self._registry}") from None
        return str(token)
