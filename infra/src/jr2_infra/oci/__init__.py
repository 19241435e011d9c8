"""A small client of OCI registries: push a layout, copy by digest, look up a name.

It logs in with what `docker login` keeps, trusts the private authorities that are put there for
Docker, and goes on where a connection was cut.

Source: libraries.md (row OCI registry), ADR-0112.
"""

from __future__ import annotations

from .client import Client, Result
from .errors import RegistryError
from .layout import Layout
from .media import Descriptor, Manifest
from .reference import Reference, parse_reference

__all__ = [
    "Client",
    "Descriptor",
    "Layout",
    "Manifest",
    "Reference",
    "RegistryError",
    "Result",
    "parse_reference",
]
