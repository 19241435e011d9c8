"""Which certificates of a registry are trusted: those of the system, and those put there for Docker.

A private authority stands in `certs.d/<registry>/*.crt` below `/etc/docker` or `~/.docker`, as
Docker reads it, or in `SSL_CERT_FILE`. A client certificate is a pair `*.cert` and `*.key` there.

Source: the documentation of Docker (certificates of registries).
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import httpx2

from jr2.errors import StepFailed

from .. import user_home

SYSTEM_FOLDER: Final = Path("/etc/docker/certs.d")


def certificate_folders(registry: str, environ: Mapping[str, str]) -> list[Path]:
    """The folders in which certificates of a registry may lie.

    Args:
        registry: host and port, as a person writes them.
        environ: the environment that DOCKER_CONFIG and HOME are read from.
    """
    named = environ.get("DOCKER_CONFIG")
    own = Path(named) if named else user_home.folder(environ) / ".docker"
    return [SYSTEM_FOLDER / registry, own / "certs.d" / registry]


def tls_context(registry: str, environ: Mapping[str, str]) -> ssl.SSLContext:
    """Return the settings of TLS for a registry.

    Args:
        registry: host and port, as a person writes them.
        environ: the environment.

    Raises:
        StepFailed: a certificate that was put there cannot be read.
    """
    context = httpx2.create_ssl_context()
    # httpx2 reads the process's environment; ours may be another one.
    extra = [environ["SSL_CERT_FILE"]] if environ.get("SSL_CERT_FILE") else []
    pairs: list[Path] = []
    for folder in certificate_folders(registry, environ):
        if folder.is_dir():
            extra += [str(path) for path in sorted(folder.glob("*.crt"))]
            pairs += sorted(folder.glob("*.cert"))
    for file in extra:
        try:
            context.load_verify_locations(cafile=file)
        except OSError as error:
            raise StepFailed(f"{file} cannot be read as a certificate: {error}") from error
    for certificate in pairs:
        try:
            context.load_cert_chain(certificate, certificate.with_suffix(".key"))
        except OSError as error:
            raise StepFailed(f"{certificate} and its .key cannot be read: {error}") from error
    return context
