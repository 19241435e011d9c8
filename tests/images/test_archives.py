"""What each Kit image holds: how much, of whom, for whom, and what its SBOM says of it."""

from __future__ import annotations

import json
import re

import pytest

from jr2 import names
from jr2_infra.images.build import compiled

from .conftest import BUILD, CHECKOUT, Image, run

pytestmark = pytest.mark.timeout(1200)

MIB = 2**20
LIMITS = {
    names.IMAGE_ORCHESTRATOR: 250 * MIB,
    names.IMAGE_OPERATOR: 250 * MIB,
    names.IMAGE_HARNESS: 400 * MIB,
}
USERS = {
    names.IMAGE_ORCHESTRATOR: names.ORCHESTRATOR_UID,
    names.IMAGE_OPERATOR: names.OPERATOR_UID,
    names.IMAGE_HARNESS: names.HARNESS_UID,
}
LEFT_OUT = re.compile(r"usr/share/(doc|man|info|locale|lintian)(/|$)|usr/lib/python3\.11/test(/|$)")


@pytest.fixture(params=sorted(LIMITS))
def image(images: dict[str, Image], request: pytest.FixtureRequest) -> Image:
    return images[request.param]


def test_it_is_no_larger_than_it_may_be(image: Image) -> None:
    unpacked = sum(member.size for member in image.members() if member.isreg())
    assert 50 * MIB < unpacked <= LIMITS[image.name]


def test_no_docs_man_pages_or_locales(image: Image) -> None:
    members = image.members()
    assert [member.name for member in members if LEFT_OUT.match(member.name)] == []
    assert "opt/jr2/kit/jr2/names.py" in {member.name for member in members}


def test_nothing_of_the_machine_stands_in_it(image: Image) -> None:
    members = image.members()
    assert {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in members} == {(0, 0, "", "", 0)}
    assert [m.name for m in members if m.mode & 0o6000] == []
    assert {m.name for m in members if m.mode & 0o022 and not m.issym()} <= {
        *("tmp", "var/tmp", "home/jr2")
    }
    assert {
        str(m.type) for m in members if not (m.isreg() or m.isdir() or m.issym() or m.islnk())
    } == set()


def test_it_runs_as_a_numeric_user_that_is_not_root(image: Image) -> None:
    config = image.documents()[2]["config"]
    assert config["User"] == f"{USERS[image.name]}:{USERS[image.name]}"
    assert USERS[image.name] > 0


def test_labels_and_annotations_say_what_it_is(image: Image) -> None:
    index, manifest, config = image.documents()
    labels = config["config"]["Labels"]
    assert labels == manifest["annotations"]
    assert labels["org.opencontainers.image.title"] == image.name
    assert labels["org.opencontainers.image.version"] == names.KIT_VERSION
    assert labels[names.LABEL_KIND] == names.KIND_KIT
    tag = image.ref.rpartition(":")[2]
    assert labels[names.LABEL_CONTENT_HASH][: names.SHORT_HASH] == tag
    assert index["manifests"][0]["digest"] == image.digest
    assert index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"] == image.ref


def test_the_sbom_lists_the_debian_packages_that_are_in_it(image: Image) -> None:
    inside = set()
    for layer in image.layers():
        for member in layer:
            if member.name.startswith("var/lib/dpkg/status.d/") and member.isreg():
                file = layer.extractfile(member)
                assert file is not None
                fields = dict(
                    line.split(": ", 1)
                    for line in file.read().decode().splitlines()
                    if ": " in line
                )
                inside.add((fields["Package"], fields["Version"]))
    listed = {
        (part["name"], part["version"]): part["hashes"][0]["content"]
        for part in image.sbom["components"]
        if part["purl"].startswith("pkg:deb/debian/")
    }
    assert set(listed) == inside
    assert len(inside) > 30
    committed = {
        tuple(line.rsplit("=", 2)[:2]): line.rsplit("=", 2)[2]
        for path in (CHECKOUT / "requirements").glob("debian-*.*.txt")
        for line in path.read_text().split()
    }
    assert listed.items() <= committed.items()
    assert image.sbom["metadata"]["component"]["hashes"][0]["content"] == image.digest[7:]


def test_the_sbom_lists_the_wheels_that_are_in_it(image: Image) -> None:
    inside = set()
    for layer in image.layers():
        for member in layer:
            found = re.search(r"^opt/jr2/[a-z]+/([^/]+)-([^/-]+)\.dist-info/METADATA$", member.name)
            if found:
                inside.add((found[1].replace("_", "-").lower(), found[2]))
    listed = {
        (part["name"], part["version"]): part.get("hashes")
        for part in image.sbom["components"]
        if part["purl"].startswith("pkg:pypi/")
    }
    assert set(listed) == inside
    own = {("jr2", names.KIT_VERSION), ("jr2-runtime", names.KIT_VERSION)}
    pinned = (CHECKOUT / "requirements/workspace.txt").read_text()
    for wheel, hashes in listed.items():
        if wheel not in own:
            assert f"--hash=sha256:{hashes[0]['content']}" in pinned


def test_the_kernel_is_machine_code_where_runs_are_made_and_no_compiler_is_there(
    images: dict[str, Image],
) -> None:
    sources = {f"opt/jr2/kit/{module.replace('.', '/')}" for module in compiled.MODULES}
    for image in images.values():
        held = {member.name for member in image.members()}
        machine_code = {
            name.partition(".cpython-")[0].removesuffix("/__init__")
            for name in held
            if name.startswith("opt/jr2/kit/jr2/") and name.endswith(".so")
        }
        assert machine_code == (sources if image.name == names.IMAGE_ORCHESTRATOR else set())
        # The sources are there too, for a traceback shows their lines.
        assert "opt/jr2/kit/jr2/kernel/macrostep.py" in held
        assert not [name for name in held if name.endswith(("/bin/gcc", "/Python.h", "/mypyc"))]


def test_services_have_no_shell(images: dict[str, Image]) -> None:
    for name in (names.IMAGE_ORCHESTRATOR, names.IMAGE_OPERATOR):
        programs = {member.name for member in images[name].members()}
        assert programs & {"usr/bin/sh", "usr/bin/bash", "usr/bin/dash", "usr/bin/perl"} == set()


def test_a_second_build_has_nothing_to_do_and_the_list_finds_each_sbom(
    images: dict[str, Image],
) -> None:
    before = {image.archive: image.archive.stat().st_mtime_ns for image in images.values()}
    run([BUILD])
    assert {path: path.stat().st_mtime_ns for path in before} == before
    for item in json.loads(run([BUILD, "--list"])):
        assert item["digest"] == images[item["image"]].digest
        assert item["sbom"].endswith(".cdx.json")
