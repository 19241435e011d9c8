"""The table of official releases, and the sums that are committed of them."""

from __future__ import annotations

import pytest

from jr2.errors import StepFailed
from jr2_cli.tools import catalogue
from jr2_cli.tools.official import download, table
from jr2_cli.tools.official.__main__ import read_sums
from tests.unit.cli.official.conftest import HERE, Host, released, sum_of


def test_each_address_of_the_table_is_whole_and_each_platform_has_its_own() -> None:
    released = [program for program in catalogue.PROGRAMS if program.release is not None]
    addresses = set()
    for program in released:
        assert program.release is not None
        for arch in ("amd64", "arm64"):
            where = table.Platform(os="linux", arch=arch)
            address = table.address_of(program.release, program.version, where)
            assert address.startswith("https://")
            assert "{" not in address
            assert program.version in address
            addresses.add((address, arch))
    assert len({address for address, _ in addresses}) == len(addresses)
    # What it cannot be taken from is one archive for all.
    assert [program.name for program in catalogue.PROGRAMS if program.release is None] == [
        "local-path-provisioner"
    ]
    pulumi = catalogue.BY_NAME["pulumi"].release
    assert pulumi is not None
    assert table.address_of(pulumi, "1.2.3", table.Platform(os="linux", arch="amd64")).endswith(
        "/v1.2.3/pulumi-v1.2.3-linux-x64.tar.gz"
    )


def test_the_committed_sums_are_sums_of_pinned_versions() -> None:
    pinned = {
        (program.release.asset, program.version)
        for program in catalogue.PROGRAMS
        if program.release is not None
    }
    for asset, of_version in table.committed_sums().items():
        for version, sums in of_version.items():
            assert (asset, version) in pinned
            assert all(len(bytes.fromhex(sha256)) == 32 for sha256 in sums.values())


@pytest.mark.parametrize(
    ("sums", "reason"),
    [
        ({}, "no sum of it is committed for linux/arm64"),
        ({"etcd": {"3.7.3": {"linux/amd64": "0" * 64}}}, "no sum of it is committed for"),
        (
            {"etcd": {"3.7.2": {"linux/arm64": "0" * 64}}},
            "the committed sums are for version 3.7.2, not 3.7.3",
        ),
    ],
)
def test_a_release_without_a_committed_sum_is_skipped(sums: table.Sums, reason: str) -> None:
    program = catalogue.BY_NAME["etcd"]
    where = table.Platform(os="linux", arch="arm64")

    said = table.choose(program.release, program.version, where, sums)

    assert isinstance(said, table.Skipped)
    assert said.reason.startswith(reason)


def test_a_program_that_is_not_released_says_so() -> None:
    said = table.choose(None, "1", HERE, {})

    assert said == table.Skipped(reason="its project publishes no binary of it")


def test_sums_are_written_of_what_the_host_serves_now(host: Host) -> None:
    program = released(host, "tiny")
    both = {f"/v1.2.3/linux-{arch}": arch.encode() for arch in ("amd64", "arm64")}
    host.files |= both
    wanted = {
        "tiny": {"1.2.3": {f"linux/{arch}": sum_of(arch.encode()) for arch in ("amd64", "arm64")}}
    }

    with download.new_client() as client:
        found = read_sums([program, program], {"tiny": {"1.2.2": {"linux/amd64": "0"}}}, client)
        assert found == wanted
        assert len(host.asked) == 2
        assert read_sums([program], found, client) == found
        host.files["/v1.2.3/linux-amd64"] = b"changed"
        with pytest.raises(StepFailed, match="a release never changes"):
            read_sums([program], found, client)
        del host.files["/v1.2.3/linux-amd64"]
        with pytest.raises(StepFailed, match="answers 404"):
            read_sums([program], found, client)
