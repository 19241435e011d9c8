"""Values sealed as the engine's passphrase secrets manager seals them.

The passphrase is made for one run and lives in memory and in the engine's environment only. What is
sealed with it can be read by that run and by nobody after it.

Source: design §5.2, derived-state trial (Secrets).
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
from typing import Any, Final

_ROUNDS: Final = 1_000_000
_KEY_BYTES: Final = 32
_SALT_BYTES: Final = 8
_NONCE_BYTES: Final = 12
_SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
_SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - the engine's mark of a secret
_CHECK: Final = "pulumi"


class Sealer:
    """One passphrase and what is sealed under it.

    Args:
        passphrase: the passphrase; a new random one when it is not given.
    """

    def __init__(self, passphrase: str | None = None) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self.passphrase = passphrase or secrets.token_urlsafe(32)
        salt = os.urandom(_SALT_BYTES)
        key = hashlib.pbkdf2_hmac("sha256", self.passphrase.encode(), salt, _ROUNDS, _KEY_BYTES)
        self._cipher = AESGCM(key)
        encoded = base64.b64encode(salt).decode()
        self.salt = f"v1:{encoded}:{self._sealed(_CHECK)}"
        """`encryptionsalt` of the stack's settings."""

    def __repr__(self) -> str:
        return "Sealer()"

    def seal(self, value: Any) -> dict[str, str]:
        """Return the sealed form of a JSON value, as it stands in a checkpoint."""
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        return {_SIGNATURE: _SECRET, "ciphertext": self._sealed(text)}

    def secrets_provider(self) -> dict[str, Any]:
        """Return `secrets_providers` of a checkpoint."""
        return {"type": "passphrase", "state": {"salt": self.salt}}

    def _sealed(self, text: str) -> str:
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, text.encode(), None)
        return ":".join(("v1", *(base64.b64encode(part).decode() for part in (nonce, sealed))))
