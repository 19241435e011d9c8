"""A real server of tokens, as the registry's documentation asks for one.

It checks who asks, and signs tokens with the rights that were asked for and that it grants.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.parse
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.far_side import FarSide, Quiet

ISSUER, SERVICE = "tests", "registry"
IDENTITY = "CANARY-identity-token"


def encode(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


class TokenServer:
    """The server.

    Args:
        user: who may ask.
        password: with what.
        granted: the actions that a token gets at most.
    """

    def __init__(self, user: str, password: str, *, granted: str = "pull,push") -> None:
        self._login = base64.b64encode(f"{user}:{password}".encode()).decode()
        self.granted = granted
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        self.grants_next: list[str] = []
        """What the next tokens grant, in place of `granted`."""
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        outer = self

        class Handler(Quiet):
            def do_GET(self) -> None:
                query = urllib.parse.parse_qs(self.path.partition("?")[2])
                header = self.headers.get("Authorization", "")
                outer._answer(self, "GET", query, header == f"Basic {outer._login}")

            def do_POST(self) -> None:
                form = urllib.parse.parse_qs(self.body().decode())
                outer._answer(self, "POST", form, form.get("refresh_token") == [IDENTITY])

        self._server = FarSide(Handler)
        self.realm = f"{self._server.url}/token"

    def auth(self, folder: Path) -> dict[str, Any]:
        """The section `auth` of a registry that believes this server."""
        numbers = self._key.public_key().public_numbers()
        size = (numbers.n.bit_length() + 7) // 8
        key = {
            "kty": "RSA",
            "kid": "one",
            "alg": "RS256",
            "use": "sig",
            "n": encode(numbers.n.to_bytes(size, "big")),
            "e": encode(numbers.e.to_bytes(3, "big")),
        }
        file = folder / "keys.json"
        file.write_text(json.dumps({"keys": [key]}))
        return {
            "token": {
                "realm": self.realm,
                "service": SERVICE,
                "issuer": ISSUER,
                "jwks": str(file),
            }
        }

    def _answer(
        self,
        request: Quiet,
        method: str,
        query: dict[str, list[str]],
        known: bool,
    ) -> None:
        self.asked.append((method, query))
        if not known:
            value: dict[str, Any] = {
                "errors": [{"code": "UNAUTHORIZED", "message": "who is that?"}]
            }
        elif method == "POST":
            value = {"access_token": self._token(query.get("scope", [""])[0].split())}
        else:
            value = {"token": self._token(query.get("scope", []))}
        request.reply(200 if known else 401, value)

    def _token(self, scopes: list[str]) -> str:
        granted = self.grants_next.pop(0) if self.grants_next else self.granted
        access = []
        for scope in scopes:
            kind, name, actions = scope.split(":")
            both = [action for action in actions.split(",") if action in granted.split(",")]
            access.append({"type": kind, "name": name, "actions": both})
        now = int(time.time())
        claims = {
            "iss": ISSUER,
            "sub": "ann",
            "aud": SERVICE,
            "iat": now,
            "nbf": now - 10,
            "exp": now + 300,
            "jti": str(len(self.asked)),
            "access": access,
        }
        header = {"typ": "JWT", "alg": "RS256", "kid": "one"}
        signed = f"{encode(json.dumps(header).encode())}.{encode(json.dumps(claims).encode())}"
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{encode(signature)}"

    def close(self) -> None:
        self._server.close()
