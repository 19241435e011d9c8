"""Key pairs: real keys of ssh-keygen are read as it reads them, and what is of no use is refused."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from jr2.errors import StepFailed
from jr2_infra.git import keys
from jr2_infra.git.keys import DeployKey

CASES = Path(__file__).resolve().parents[3] / "cases" / "ssh_keys"
PLAIN = [line.split() for line in (CASES / "public.txt").read_text().splitlines()]
"""Name, fingerprint and public half of each key without a passphrase, as ssh-keygen says them."""


@pytest.mark.parametrize(("name", "fingerprint", "kind", "half"), PLAIN)
def test_a_key_has_the_fingerprint_and_the_public_half_of_ssh_keygen(
    name: str, fingerprint: str, kind: str, half: str
) -> None:
    text = (CASES / name).read_text()
    pair = keys.read_key(text, "there")
    assert pair.fingerprint == fingerprint
    assert pair.public == f"{kind} {half} jr2-git-ssh"
    assert pair.private == text


@pytest.mark.parametrize(
    "change", [lambda t: t.replace("\n", "\r\n"), str.strip, lambda t: f"\n{t}\n\n"]
)
def test_a_pasted_key_gets_the_line_ends_that_ssh_reads(change: object) -> None:
    text = (CASES / "ed").read_text()
    assert callable(change)
    assert keys.read_key(change(text), "there").private == text


@pytest.mark.parametrize("name", ["ed_pw", "rsa_pem_pw", "ec8_pw"])
def test_a_key_with_a_passphrase_is_refused(name: str) -> None:
    with pytest.raises(StepFailed) as raised:
        keys.read_key((CASES / name).read_text(), f"/home/you/.ssh/{name}")
    assert raised.value.printed == (
        f"error: refusing the key from /home/you/.ssh/{name}: it is passphrase-protected. The "
        "in-cluster clone runs unattended and cannot answer a passphrase, and jr2 will not store a "
        "decrypted copy — use an unencrypted key, or let jr2 generate a deploy key"
    )


def damaged() -> str:
    lines = (CASES / "ed").read_text().splitlines()
    return "\n".join([lines[0], lines[1], *lines[3:]])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        (" \n", "it is empty"),
        ((CASES / "ed.pub").read_text(), "it is a public key, and the private half is needed"),
        ("CANARY", "it is no private key in OpenSSH's or a PEM format"),
        (damaged(), "it is damaged, or of a kind that ssh does not take"),
        (
            "-----BEGIN PRIVATE KEY-----\nCANARY\n-----END PRIVATE KEY-----",
            "it is damaged, or of a kind that ssh does not take",
        ),
    ],
)
def test_what_is_no_key_is_refused_without_a_word_of_it(text: str, why: str) -> None:
    with pytest.raises(StepFailed) as raised:
        keys.read_key(text, "the pasted text")
    assert raised.value.printed == (
        f"error: refusing the key from the pasted text: {why}. Nothing was applied"
    )


def test_a_fresh_key_is_ed25519_and_never_the_same() -> None:
    first, second = keys.generate(), keys.generate()
    assert first.private != second.private
    again = keys.read_key(first.private, "there")
    assert again == first
    assert first.public.startswith("ssh-ed25519 AAAA")
    assert first.public.endswith(" jr2-git-ssh")
    assert first.private.splitlines()[1] not in repr(first)


def test_the_secret_has_the_keys_of_flux_and_no_mark_of_the_instance() -> None:
    pair = keys.generate()
    key = DeployKey(secret="deploy", urls=("git@h:a/b",), pair=pair, generated=True)
    secret = keys.key_secret("space", key)
    data = {name: base64.b64decode(value).decode() for name, value in secret["data"].items()}
    assert data == {"identity": pair.private, "identity.pub": f"{pair.public}\n"}
    assert pair.private.endswith("-----END OPENSSH PRIVATE KEY-----\n")
    assert secret["metadata"]["labels"] == {}
    assert pair.private not in repr(key)
