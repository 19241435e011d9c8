"""What stands beside an image: each Debian package and each wheel, by digest, the same each time."""

from __future__ import annotations

import json
import re

from jr2_infra.images.build import recipe
from jr2_infra.images.build.sbom import bill_of_materials
from jr2_infra.images.build.wheels import Wheel
from jr2_infra.images.mirror.lists import Package

DIGEST = "sha256:" + "ab" * 32
PACKAGES = [
    Package("zlib1g", "1:1.2.13.dfsg-1", "11" * 32),
    Package("libstdc++6", "12.2.0-14+deb12u1", "22" * 32),
]
WHEELS = [Wheel("pydantic-core", "2.50.5", "33" * 32, "pydantic_core-2.50.5-cp311.whl")]


def document(digest: str = DIGEST, packages: list[Package] = PACKAGES) -> bytes:
    return bill_of_materials(
        recipe.OPERATOR, digest=digest, architecture="amd64", packages=packages, wheels=WHEELS
    )


def test_parts_are_named_by_version_and_digest() -> None:
    said = json.loads(document())
    assert (said["bomFormat"], said["specVersion"], said["version"]) == ("CycloneDX", "1.6", 1)
    component = said["metadata"]["component"]
    assert component["name"] == "jr2-operator"
    assert component["hashes"] == [{"alg": "SHA-256", "content": "ab" * 32}]
    found = {part["purl"]: part.get("hashes") for part in said["components"]}
    version = component["version"]
    assert found == {
        "pkg:deb/debian/libstdc%2B%2B6@12.2.0-14%2Bdeb12u1?arch=amd64&distro=bookworm": [
            {"alg": "SHA-256", "content": "22" * 32}
        ],
        "pkg:deb/debian/zlib1g@1%3A1.2.13.dfsg-1?arch=amd64&distro=bookworm": [
            {"alg": "SHA-256", "content": "11" * 32}
        ],
        "pkg:pypi/pydantic-core@2.50.5?file_name=pydantic_core-2.50.5-cp311.whl": [
            {"alg": "SHA-256", "content": "33" * 32}
        ],
        f"pkg:pypi/jr2@{version}": None,
        f"pkg:pypi/jr2-runtime@{version}": None,
    }
    references = [part["bom-ref"] for part in said["components"]]
    assert len(set(references)) == len(references)


def test_a_file_that_is_not_ours_is_named_where_it_is() -> None:
    elk = {"alg": "SHA-256", "content": recipe.ELK.sha256}
    for image in recipe.KIT_IMAGES:
        said = json.loads(
            bill_of_materials(
                image, digest=DIGEST, architecture="amd64", packages=PACKAGES, wheels=WHEELS
            )
        )
        found = [part for part in said["components"] if part["purl"].startswith("pkg:npm/")]
        is_there = image is recipe.ORCHESTRATOR
        assert [elk] * is_there == [part["hashes"][0] for part in found]
        assert ["pkg:npm/elkjs@0.12.1"] * is_there == [part["purl"] for part in found]


def test_it_follows_from_the_image_alone() -> None:
    assert document() == document(packages=PACKAGES[::-1])
    serial = json.loads(document())["serialNumber"]
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", serial)
    assert json.loads(document(digest="sha256:" + "cd" * 32))["serialNumber"] != serial
