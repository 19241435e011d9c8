"""`harness.ca_bundle`: the user's own authorities, and the bundles that pods trust.

The file is part of the folder, so every computer that converges reads the same one. It is read on
the host and lands in a ConfigMap, where everybody may read it: a file that holds a private key is
refused.

Source: spec/converge.md §4 step 10 and §5.3, seed 003 ("Use a local model").
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Final

from jr2 import names
from jr2.errors import StepFailed

from .. import regular

FIELD: Final = "harness.ca_bundle"
_BLOCK: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----\r?\n.*?-----END \1-----", re.DOTALL)
_LARGEST: Final = 256 * 2**10
"""Bytes of the file: it stands in the map four times, beside the public roots."""


def read_bundle(root: Path, given: str | None) -> str | None:
    """Return the certificates of the file that the config names, as one PEM text, or `None`.

    Args:
        root: the Instance folder.
        given: `harness.ca_bundle`.

    Raises:
        StepFailed: the file cannot be read, is not the folder's, or holds something else.
    """
    if given is None:
        return None
    path = Path(os.path.realpath(root / given))
    if not path.is_relative_to(os.path.realpath(root)):
        raise _refused(given, f"{path} is outside the Instance folder, whose part it must be")
    try:
        content = regular.read(path)
    except OSError as error:
        code = errno.errorcode.get(error.errno or 0, str(error.errno))
        raise StepFailed(f'{FIELD} "{given}" cannot be read ({code}): {path}') from error
    if len(content) > _LARGEST:
        raise _refused(given, f"{path} has {len(content)} bytes, and {_LARGEST} is the most")
    if b"PRIVATE KEY-----" in content:
        raise _refused(given, f"{path} holds a private key, and every pod reads this file")
    blocks = list(_BLOCK.finditer(content))
    if not blocks:
        raise _refused(given, f"{path} holds no certificate in PEM")
    return "".join(_certificate(given, path, number, b) for number, b in enumerate(blocks, 1))


def bundles(ca_bundle: str | None, authority: str | None) -> dict[str, str]:
    """Return the data of the map `jr2-ca`; nothing when there is neither.

    Args:
        ca_bundle: the user's certificates.
        authority: the Instance's own authority, while a secret is held.
    """
    own = ca_bundle or ""
    found: dict[str, str] = {}
    if ca_bundle is not None:
        found[names.KEY_CA_CERTIFICATE] = own
    if authority is not None:
        roots = _public_roots()
        found |= {
            names.KEY_CA_EXTRA: own + authority,
            names.KEY_CA_BUNDLE: roots + own + authority,
            # Never the Instance's own authority: a Custodian must not take itself for the host.
            names.KEY_CA_UPSTREAM: roots + own,
        }
    return found


def _certificate(given: str, path: Path, number: int, block: re.Match[bytes]) -> str:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    if block[1] != b"CERTIFICATE":
        raise _refused(given, f"block {number} of {path} is a {block[1].decode()}, no certificate")
    try:
        # Written anew, so that what stands around the blocks of a file does not matter.
        return x509.load_pem_x509_certificate(block[0]).public_bytes(Encoding.PEM).decode("ascii")
    except ValueError as error:
        raise _refused(given, f"certificate {number} of {path} cannot be read") from error


def _public_roots() -> str:
    import certifi

    lines = Path(certifi.where()).read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if line and not line.startswith("#")) + "\n"


def _refused(given: str, why: str) -> StepFailed:
    return StepFailed(f'{FIELD} "{given}" cannot be used: {why}')
