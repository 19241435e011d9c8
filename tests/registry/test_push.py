"""Images reach a real registry whole, once, and under their digests."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from pathlib import Path

import httpx2
import pytest

from jr2.errors import StepFailed
from jr2_infra import oci
from tests.registry.conftest import Image, Proxy, Registry, StartRegistry, ref

# The first test may have to build the registry.
pytestmark = pytest.mark.timeout(1800)

MIB = 2**20


def pulled(registry: Registry, repository: str, version: str) -> tuple[bytes, list[bytes]]:
    """The bytes of a manifest and of its blobs, read with nothing of ours."""
    base = f"http://{registry.host}/v2/{repository}"
    headers = {"Accept": "application/vnd.oci.image.manifest.v1+json"}
    manifest = httpx2.get(f"{base}/manifests/{version}", headers=headers).raise_for_status().content
    value = json.loads(manifest)
    blobs = [
        httpx2.get(f"{base}/blobs/{item['digest']}").raise_for_status().content
        for item in (value["config"], *value["layers"])
    ]
    return manifest, blobs


@pytest.mark.parametrize("kind", ["folder", "archive"])
def test_a_layout_is_pushed_once_and_byte_for_byte(
    registry: Registry, environ: dict[str, str], tmp_path: Path, kind: str
) -> None:
    image = Image()
    described = image.manifest(os.urandom(3 * MIB), b"small", b"")
    layout = getattr(image, kind)(tmp_path / "layout", described)
    target = ref(registry.host)
    shown: list[int] = []

    with oci.Client(environ, progress=shown.append) as client:
        assert not client.exists(target)
        result = client.push(layout, target)
        again = client.push(layout, target)
        found = client.resolve(target)

    assert result.changed
    assert result.sent == 4
    assert str(result.reference) == f"{registry.host}/team/app:1@{described['digest']}"
    assert again == oci.Result(reference=result.reference, changed=False)
    assert found is not None
    assert (found.digest, found.size) == (described["digest"], described["size"])
    assert shown[-1] == sum(
        len(content) for digest, content in image.blobs.items() if digest != described["digest"]
    )
    manifest, blobs = pulled(registry, "team/app", "1")
    assert manifest == image.blobs[described["digest"]]
    assert {f"sha256:{hashlib.sha256(blob).hexdigest()}" for blob in blobs} < set(image.blobs)


def test_what_a_cut_push_has_sent_is_not_sent_again(
    registry: Registry, environ: dict[str, str], tmp_path: Path
) -> None:
    image = Image()
    layers = [os.urandom(1000) for _ in range(4)]
    described = image.manifest(*layers)
    layout = image.folder(tmp_path / "layout", described)
    missing = (
        tmp_path
        / "layout"
        / "blobs"
        / json.loads(image.blobs[described["digest"]])["layers"][3]["digest"].replace(":", "/")
    )
    kept = missing.read_bytes()
    missing.unlink()
    with oci.Client(environ) as client:
        with pytest.raises(StepFailed, match="holds no blobs/sha256/"):
            client.push(layout, ref(registry.host))
        assert not client.exists(ref(registry.host))
        missing.write_bytes(kept)
        base = f"http://{registry.host}/v2/team/app/blobs"
        absent = [
            digest
            for digest in image.blobs
            if digest != described["digest"]
            and httpx2.head(f"{base}/{digest}").status_code == httpx2.codes.NOT_FOUND
        ]

        result = client.push(layout, ref(registry.host))

    assert 0 < len(absent) < 5
    assert result.sent == len(absent)


def test_an_index_is_copied_by_digest_and_its_blobs_are_mounted(
    registry: Registry, environ: dict[str, str], tmp_path: Path
) -> None:
    image = Image()
    index = image.index(
        image.manifest(b"shared", b"one"), image.manifest(b"shared", b"two", arch="arm64")
    )
    layout = image.folder(tmp_path / "layout", index)
    source = ref(registry.host, "home/jr2-operator", "1.0.0")
    target = ref(registry.host, "mirror/jr2-operator", "1.0.0")

    with oci.Client(environ) as client:
        client.push(layout, source)
        result = client.copy(source, target)
        again = client.copy(source, target)
        by_digest = client.copy(source.at(index["digest"]), ref(registry.host, "third/app", "x"))
        copied = client.manifest(target)

    assert (result.sent, result.mounted) == (0, 5)
    assert result.reference.digest == index["digest"] == copied.descriptor.digest
    assert copied.content == image.blobs[index["digest"]]
    assert len(copied.manifests) == 2
    assert not again.changed
    assert by_digest.mounted == 5


def test_an_image_is_copied_between_two_registries(
    start_registry: StartRegistry, environ: dict[str, str], tmp_path: Path
) -> None:
    here, there = start_registry(), start_registry()
    image = Image()
    layout = image.folder(tmp_path / "layout", image.index(image.manifest(os.urandom(MIB))))

    with oci.Client(environ) as client:
        pushed = client.push(layout, ref(here.host))
        result = client.copy(ref(here.host), ref(there.host, "other/name", "2"))

    assert (result.sent, result.mounted) == (2, 0)
    assert result.reference.digest == pushed.reference.digest


def test_what_is_not_there_cannot_be_copied(registry: Registry, environ: dict[str, str]) -> None:
    with (
        oci.Client(environ) as client,
        pytest.raises(oci.RegistryError, match=r"team/app:1 is not there, so it cannot be copied"),
    ):
        client.copy(ref(registry.host), ref(registry.host, "b"))


def test_a_blob_that_is_not_what_its_digest_says_gets_no_tag(
    registry: Registry, environ: dict[str, str], tmp_path: Path
) -> None:
    image = Image()
    layout = image.folder(tmp_path / "layout", image.manifest(b"right"))
    digest = next(d for d, content in image.blobs.items() if content == b"right")
    (tmp_path / "layout/blobs" / digest.replace(":", "/")).write_bytes(b"wrong")

    with oci.Client(environ) as client:
        with pytest.raises(oci.RegistryError) as raised:
            client.push(layout, ref(registry.host))
        assert not client.exists(ref(registry.host))

    assert raised.value.status == 400
    assert raised.value.message.startswith(
        f"{registry.host} refuses the push of the blob {digest} ({registry.host}/team/app): "
        "400 Bad Request: DIGEST_INVALID"
    )


@pytest.mark.parametrize("limit", [500_000, 5 * MIB])
def test_a_push_that_is_cut_goes_on_where_it_stopped(
    registry: Registry, environ: dict[str, str], tmp_path: Path, limit: int
) -> None:
    image = Image()
    layer = os.urandom(8 * MIB)
    layout = image.archive(tmp_path / "layout.tar", image.manifest(layer))
    proxy = Proxy(registry.port, sent=limit, times=6)
    try:
        with oci.Client(environ, sleep=lambda seconds: None) as client:
            result = client.push(layout, ref(proxy.host))
    finally:
        proxy.close()

    assert result.sent == 2
    assert proxy.cuts_left <= 5, "nothing was cut"
    # From the start each time, all that was sent before a cut would have been sent for nothing.
    assert proxy.sent < len(layer) + (6 - proxy.cuts_left) * limit
    assert layer in pulled(registry, "team/app", "1")[1]
    assert [path for path in registry.requests("GET") if "/blobs/uploads/" in path]


def test_an_answer_that_is_lost_is_asked_for_again(
    registry: Registry, environ: dict[str, str], tmp_path: Path
) -> None:
    image = Image()
    layout = image.archive(tmp_path / "layout.tar", image.manifest(os.urandom(100_000)))
    # Every answer of the first connections is cut within its first line.
    proxy = Proxy(registry.port, received=10, times=4)
    try:
        with oci.Client(environ, sleep=lambda seconds: None) as client:
            result = client.push(layout, ref(proxy.host))
    finally:
        proxy.close()

    assert proxy.cuts_left == 0
    assert pulled(registry, "team/app", str(result.reference.digest))


def test_a_copy_whose_source_is_cut_goes_on_where_it_stopped(
    start_registry: StartRegistry, environ: dict[str, str], tmp_path: Path
) -> None:
    here, there = start_registry(), start_registry()
    layer = os.urandom(8 * MIB)
    image = Image()
    layout = image.archive(tmp_path / "layout.tar", image.manifest(layer))
    proxy = Proxy(here.port, received=3 * MIB, times=3)
    try:
        with oci.Client(environ, sleep=lambda seconds: None) as client:
            client.push(layout, ref(here.host))
            client.copy(ref(proxy.host), ref(there.host))
    finally:
        proxy.close()

    assert proxy.cuts_left < 3
    assert proxy.received < len(layer) + (3 - proxy.cuts_left) * 3 * MIB
    assert layer in pulled(there, "team/app", "1")[1]


def test_a_connection_that_never_lasts_is_an_error_that_names_the_registry(
    registry: Registry, environ: dict[str, str], tmp_path: Path
) -> None:
    image = Image()
    layout = image.archive(tmp_path / "layout.tar", image.manifest(b"x"))
    waited: list[float] = []
    proxy = Proxy(registry.port, received=10, times=10**6)
    try:
        with (
            oci.Client(environ, sleep=waited.append) as client,
            pytest.raises(oci.RegistryError, match=f"^cannot reach {proxy.host} "),
        ):
            client.push(layout, ref(proxy.host))
    finally:
        proxy.close()
    assert waited == sorted(waited)
    assert 0 < len(waited) < 10


def test_a_registry_that_is_not_there_is_named(environ: dict[str, str], registry: Registry) -> None:
    registry.close()

    with oci.Client(environ) as client, pytest.raises(oci.RegistryError) as raised:
        client.exists(ref(registry.host))

    assert raised.value.message.startswith(f"cannot reach {registry.host} (")
    assert f"`curl -i https://{registry.host}/v2/`" in raised.value.message


def test_a_push_that_is_stopped_stops_all_its_blobs(
    registry: Registry, environ: dict[str, str], tmp_path: Path
) -> None:
    image = Image()
    layers = [os.urandom(4 * MIB) for _ in range(4)]
    layout = image.archive(tmp_path / "layout.tar", image.manifest(*layers))
    calls = itertools.count(1)
    sent: list[int] = []

    def progress(total: int) -> None:
        # Several blobs are sent at once, and exactly one of them is interrupted.
        number = next(calls)
        sent.append(total)
        if number == 1:
            raise KeyboardInterrupt

    with oci.Client(environ, progress=progress) as client:
        with pytest.raises(KeyboardInterrupt):
            client.push(layout, ref(registry.host))
        assert not client.exists(ref(registry.host))

    # Each layer has sixteen pieces; of those sent at the same time one more piece may be through.
    assert len(sent) <= 3
