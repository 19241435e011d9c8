"""Key pairs for ssh: a fresh one, or one that a person gave; never one with a passphrase.

The clone in the cluster runs unattended, so nobody could type a passphrase there, and jr2 stores no
decrypted copy of a key. What a person gave is kept as it is, but for line ends: ssh reads no file
with carriage returns or without a newline at its end.

Source: seed 003 (Use an ssh deploy key, Rules), spec/converge.md §9.5, ADR-0047.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from jr2 import names
from jr2.errors import StepFailed

from ..closed_list import SECRET
from ..components.base import encoded, wanted

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

COMMENT: Final = "jr2-git-ssh"
"""At the end of the public half, so that a person finds the key again at the git host."""

_OPENSSH: Final = "-----BEGIN OPENSSH PRIVATE KEY-----"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A key pair.

    Args:
        private: the text of the private key, with a newline at its end; never shown.
        public: the one line of the public half, without a newline.
        fingerprint: as `ssh-keygen -l` writes it, `SHA256:…`.
    """

    private: str = field(repr=False)
    public: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployKey:
    """A key pair for a Secret that this run makes.

    Args:
        secret: the name of the Secret.
        urls: the urls that need it, as they may be printed.
        pair: the pair.
        generated: it is a fresh one, which no git host knows yet.
    """

    secret: str
    urls: tuple[str, ...]
    pair: KeyPair
    generated: bool


def generate() -> KeyPair:
    """Make a fresh ed25519 pair."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    key = ed25519.Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    return _pair(key, private.decode())


def read_key(text: str, where: str) -> KeyPair:
    """Return the pair of a private key that a person gave.

    Args:
        text: the key, in OpenSSH's or a PEM format.
        where: where it came from, for the refusal.

    Raises:
        StepFailed: it has a passphrase, or it is no private key that ssh takes.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    tidy = "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"
    load = (
        serialization.load_ssh_private_key
        if tidy.startswith(_OPENSSH)
        else serialization.load_pem_private_key
    )
    try:
        return _pair(load(tidy.encode(), None), tidy)
    except TypeError:
        # Both of them say so of a key that is encrypted.
        raise StepFailed(
            f"refusing the key from {where}: it is passphrase-protected. The in-cluster clone runs "
            "unattended and cannot answer a passphrase, and jr2 will not store a decrypted copy — "
            "use an unencrypted key, or let jr2 generate a deploy key"
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        # The words of the library may quote what it read.
        raise StepFailed(f"refusing the key from {where}: {_what(tidy)}") from None


def key_secret(namespace: str, key: DeployKey) -> dict[str, Any]:
    """Return the wanted Secret of a deploy key.

    It carries no label of the Instance: once it is made it is the person's, and no converge looks
    at it again.
    """
    return wanted(
        SECRET,
        key.secret,
        namespace=namespace,
        labels={},
        type="Opaque",
        data=encoded(
            {
                names.KEY_SSH_IDENTITY: key.pair.private,
                names.KEY_SSH_PUBLIC: f"{key.pair.public}\n",
            }
        ),
    )


def _pair(key: PrivateKeyTypes, private: str) -> KeyPair:
    from cryptography.hazmat.primitives import serialization

    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    digest = hashlib.sha256(base64.b64decode(public.split()[1])).digest()
    return KeyPair(
        private=private,
        public=f"{public.decode()} {COMMENT}",
        fingerprint=f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}",
    )


def _what(text: str) -> str:
    """Say what a text is that is no private key; nothing of it is shown."""
    if not text.strip():
        return "it is empty. Nothing was applied"
    if text.startswith(("ssh-", "ecdsa-", "sk-")):
        return "it is a public key, and the private half is needed. Nothing was applied"
    if "PRIVATE KEY-----" not in text:
        return "it is no private key in OpenSSH's or a PEM format. Nothing was applied"
    return "it is damaged, or of a kind that ssh does not take. Nothing was applied"
