"""The credentials that `docker login` keeps: its config file, and the helper programs it names.

The file is `$DOCKER_CONFIG/config.json` or `~/.docker/config.json`. As Docker does, a helper for
the one registry comes first, then the store for all, then what stands in the file itself. A helper
is started as `docker-credential-<name> get` with the registry on its standard input.

Source: the documentation of `docker login`.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jr2.errors import StepFailed

from .. import processes, user_home
from .reference import HUB

_HUB_KEY: Final = "https://index.docker.io/v1/"
_HELPER_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_HELPER_SECONDS: Final = 30.0
_TOKEN_USER: Final = "<token>"  # noqa: S105 - the name that says that the secret is a token
_NOT_FOUND: Final = "credentials not found"


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """What logs in to one registry.

    Args:
        username: the user; empty with an identity token.
        password: the password.
        identity_token: what is exchanged for an access token in place of both.
        source: where it came from, for a message.
    """

    username: str = ""
    password: str = field(default="", repr=False)
    identity_token: str = field(default="", repr=False)
    source: str

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown, as it is and as it travels."""
        found = [self.password, self.identity_token]
        if self.password:
            found.append(self.basic)
        return tuple(text for text in found if text)

    @property
    def basic(self) -> str:
        """User and password as the scheme `Basic` wants them."""
        return base64.b64encode(f"{self.username}:{self.password}".encode()).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerConfig:
    """The config file of Docker.

    Args:
        path: where it is, or would be.
        content: what stands in it; empty when there is none.
        environ: the environment in which helpers are found and run.
    """

    path: Path
    content: Mapping[str, Any] = field(repr=False)
    environ: Mapping[str, str] = field(repr=False)

    def credential(self, registry: str) -> Credential | None:
        """Return what logs in to a registry; `None` when nothing is kept for it.

        Args:
            registry: host and port, as a person writes them.

        Raises:
            StepFailed: an entry cannot be read, or a helper is missing or fails.
        """
        helpers = self._table("credHelpers")
        key = _HUB_KEY if registry == HUB else registry
        helper = helpers.get(registry) or helpers.get(key)
        if helper is None:
            helper = self.content.get("credsStore") or None
            kept = None if helper is None else self._ask(str(helper), key)
            return kept or self._in_file(registry)
        return self._ask(str(helper), key)

    def _in_file(self, registry: str) -> Credential | None:
        for key, entry in self._table("auths").items():
            if isinstance(entry, Mapping) and entry and _host_of(key) == registry:
                return self._read_entry(key, entry)
        return None

    def _read_entry(self, key: str, entry: Mapping[str, Any]) -> Credential | None:
        source = f"auths of {self.path}"
        username, password = str(entry.get("username", "")), str(entry.get("password", ""))
        if entry.get("auth"):
            try:
                decoded = base64.b64decode(str(entry["auth"]), validate=True).decode()
            except (binascii.Error, UnicodeDecodeError):
                raise StepFailed(
                    f'{self.path} at auths."{key}".auth is no base64 text — run `docker login '
                    f"{_host_of(key)}`"
                ) from None
            username, _, password = decoded.partition(":")
            password = password.strip("\0")
        if entry.get("identitytoken"):
            return Credential(identity_token=str(entry["identitytoken"]), source=source)
        if not username and not password:
            return None
        return Credential(username=username, password=password, source=source)

    def _ask(self, helper: str, key: str) -> Credential | None:
        name = f"docker-credential-{helper}"
        if not _HELPER_NAME.fullmatch(helper):
            raise StepFailed(f"{self.path} names a credential helper {helper!r}, and that is none")
        program = shutil.which(name, path=self.environ.get("PATH", ""))
        if program is None:
            raise StepFailed(
                f"{self.path} names the credential helper {name}, and it is not on PATH — install "
                f"it, or run `docker login {_host_of(key)}` again without it"
            )
        try:
            said = processes.run(
                [program, "get"], env=self.environ, stdin=key, timeout=_HELPER_SECONDS
            )
        except (OSError, processes.TimeoutExpired):
            raise StepFailed(f"{program} did not answer for {_host_of(key)}") from None
        if said.returncode != 0:
            # A helper says so on either stream, and only so that there is nothing.
            if _NOT_FOUND in f"{said.stdout}{said.stderr}".lower():
                return None
            raise StepFailed(
                f"{program} failed for {_host_of(key)} (exit code {said.returncode}) — run "
                f"`docker login {_host_of(key)}`"
            )
        try:
            answer = json.loads(said.stdout)
            username, secret = str(answer["Username"]), str(answer["Secret"])
        except (ValueError, KeyError, TypeError):
            # Its words may hold the secret.
            raise StepFailed(f"{program} gave no credential for {_host_of(key)}") from None
        if username == _TOKEN_USER:
            return Credential(identity_token=secret, source=program)
        return Credential(username=username, password=secret, source=program)

    def _table(self, name: str) -> Mapping[str, Any]:
        found = self.content.get(name)
        return found if isinstance(found, Mapping) else {}


def read_docker_config(environ: Mapping[str, str]) -> DockerConfig:
    """Read the config file of Docker; an absent one is empty.

    Args:
        environ: the environment that DOCKER_CONFIG and HOME are read from.

    Raises:
        StepFailed: it is there and cannot be read.
    """
    named = environ.get("DOCKER_CONFIG")
    path = (Path(named) if named else user_home.folder(environ) / ".docker") / "config.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        content = {}
    except (OSError, ValueError) as error:
        # The words of a JSON error hold no part of the file, and those of the system its path.
        problem = error.strerror if isinstance(error, OSError) else "it is not JSON"
        raise StepFailed(f"{path} cannot be read: {problem}") from None
    if not isinstance(content, dict):
        raise StepFailed(f"{path} cannot be read: it is no JSON object")
    return DockerConfig(path=path, content=content, environ=environ)


def _host_of(key: str) -> str:
    """The registry that an entry is for: an entry may be an address with a path."""
    if key == _HUB_KEY:
        return HUB
    return re.sub(r"^https?://", "", key).partition("/")[0]
