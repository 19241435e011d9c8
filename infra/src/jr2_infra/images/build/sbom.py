"""What an image is made of, as a CycloneDX document: each Debian package, each wheel, and each vendored file.

The document stands beside the image's archive. It names the image by its digest and each part by
its digest, holds no time and no random number, and follows from the lists and the image alone.

Source: CycloneDX 1.6; design §6.1.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote

from jr2 import names

from ..mirror.lists import Package
from . import recipe
from .debian import sets
from .wheels import Wheel

_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "https://jr2.dev/sbom")


def bill_of_materials(
    image: recipe.KitImage,
    *,
    digest: str,
    architecture: str,
    packages: Iterable[Package],
    wheels: Iterable[Wheel],
) -> bytes:
    """Return the CycloneDX document of an image, the same for the same image.

    Args:
        image: what it is.
        digest: of its manifest, `sha256:` and 64 hex digits.
        architecture: the OCI name.
        packages: the Debian packages in it.
        wheels: the wheels in it.
    """
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, digest)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "container",
                "bom-ref": digest,
                "name": image.name,
                "version": names.KIT_VERSION,
                "purl": f"pkg:oci/{image.name}@{quote(digest, safe='')}?arch={architecture}",
                "hashes": _hashes(digest.removeprefix("sha256:")),
            }
        },
        "components": [
            *(_debian(package, architecture) for package in sorted(packages)),
            *(_wheel(wheel) for wheel in sorted(wheels)),
            *(_vendored(one) for one in image.vendored),
            *(_own(name) for name in ("jr2", "jr2-runtime")),
        ],
    }
    return json.dumps(document, indent=2, sort_keys=True).encode() + b"\n"


def _hashes(sha256: str) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": sha256}]


def _component(name: str, version: str, purl: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        **more,
    }


def _debian(package: Package, architecture: str) -> dict[str, Any]:
    version = quote(package.version, safe="")
    purl = (
        f"pkg:deb/debian/{quote(package.name, safe='')}@{version}"
        f"?arch={architecture}&distro={sets.SUITE}"
    )
    return _component(package.name, package.version, purl, hashes=_hashes(package.sha256))


def _wheel(wheel: Wheel) -> dict[str, Any]:
    purl = f"pkg:pypi/{wheel.name}@{quote(wheel.version, safe='')}?file_name={quote(wheel.file)}"
    return _component(wheel.name, wheel.version, purl, hashes=_hashes(wheel.sha256))


def _vendored(one: recipe.Vendored) -> dict[str, Any]:
    purl = f"pkg:npm/{one.name}@{one.version}"
    licences = [{"license": {"id": one.licence}}]
    return _component(one.name, one.version, purl, hashes=_hashes(one.sha256), licenses=licences)


def _own(name: str) -> dict[str, Any]:
    return _component(name, names.KIT_VERSION, f"pkg:pypi/{name}@{names.KIT_VERSION}")
