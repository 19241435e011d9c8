"""What the client of registries reads: names, challenges, layouts, manifests, Docker's config."""

from __future__ import annotations

import base64
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from jr2.errors import StepFailed
from jr2_infra.oci import Layout, media
from jr2_infra.oci.challenge import Challenge, read_challenges
from jr2_infra.oci.docker_config import read_docker_config
from jr2_infra.oci.errors import refused
from jr2_infra.oci.reference import is_loopback, parse_reference

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("text", "registry", "repository", "tag", "digest"),
    [
        ("debian", "docker.io", "library/debian", "latest", None),
        ("team/app:1.2", "docker.io", "team/app", "1.2", None),
        ("docker.io/debian", "docker.io", "library/debian", "latest", None),
        ("localhost/app", "localhost", "app", "latest", None),
        ("a.example:5000/x/y-z__w:T_1", "a.example:5000", "x/y-z__w", "T_1", None),
        (f"a.example/x@{DIGEST}", "a.example", "x", None, DIGEST),
        (f"a.example/x:1@{DIGEST}", "a.example", "x", "1", DIGEST),
        ("[::1]:5000/x", "[::1]:5000", "x", "latest", None),
    ],
)
def test_a_name_is_read_as_docker_reads_it(
    text: str, registry: str, repository: str, tag: str | None, digest: str | None
) -> None:
    read = parse_reference(text)

    assert (read.registry, read.repository, read.tag, read.digest) == (
        registry,
        repository,
        tag,
        digest,
    )
    assert parse_reference(str(read)) == read


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no repository"),
        ("a.example/", "no repository"),
        ("a.example/X", "no repository"),
        ("a.example/x/../y", "no repository"),
        ("a.example/x:", "no tag"),
        ("a.example/x:-1", "no tag"),
        ("a.example/x:a b", "no tag"),
        ("a.example/x@sha256:1", "no sha256 digest"),
        ("-a.example/x", "no registry"),
        ("ann:pw@a.example/x", "no sha256 digest"),
        ("https://a.example/x", "no registry"),
    ],
)
def test_what_is_no_name_says_which_part(text: str, problem: str) -> None:
    with pytest.raises(StepFailed, match=problem):
        parse_reference(text)


def test_docker_hub_has_another_address() -> None:
    assert parse_reference("debian").api == "registry-1.docker.io"
    assert parse_reference("a.example/x").api == "a.example"


@pytest.mark.parametrize(
    ("host", "holds"),
    [
        ("localhost", True),
        ("localhost:5000", True),
        ("127.0.0.9:5000", True),
        ("[::1]:5000", True),
        ("10.0.0.1:5000", False),
        ("localhost.example", False),
        ("127.example:5000", False),
    ],
)
def test_this_machine_is_told_from_others(host: str, holds: bool) -> None:
    assert is_loopback(host) is holds


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        (['Basic realm="x"'], [Challenge("basic", {"realm": "x"})]),
        (
            ['Bearer realm="https://a/t?x=1,2",service="r",scope="repository:a:pull,push"'],
            [
                Challenge(
                    "bearer",
                    {
                        "realm": "https://a/t?x=1,2",
                        "service": "r",
                        "scope": "repository:a:pull,push",
                    },
                )
            ],
        ),
        (
            ['Negotiate, Basic realm="a \\"b\\"", Bearer realm=x'],
            [
                Challenge("negotiate", {}),
                Challenge("basic", {"realm": 'a "b"'}),
                Challenge("bearer", {"realm": "x"}),
            ],
        ),
        (
            ["Basic", 'BEARER Realm="y"'],
            [Challenge("basic", {}), Challenge("bearer", {"realm": "y"})],
        ),
        (["", "=", '"'], []),
    ],
)
def test_each_challenge_of_each_header_is_read(headers: list[str], wanted: list[Challenge]) -> None:
    assert read_challenges(headers) == wanted


def docker_config(tmp_path: Path, **content: Any) -> dict[str, str]:
    (tmp_path / "config.json").write_text(json.dumps(content))
    return {"DOCKER_CONFIG": str(tmp_path), "PATH": str(tmp_path)}


def auth(text: str) -> dict[str, str]:
    return {"auth": base64.b64encode(text.encode()).decode()}


@pytest.mark.parametrize(
    ("auths", "registry", "user"),
    [
        ({"a.example": auth("ann:x:y")}, "a.example", "ann"),
        ({"https://a.example/v2/": auth("ann:x:y")}, "a.example", "ann"),
        ({"https://index.docker.io/v1/": auth("ann:x:y")}, "docker.io", "ann"),
        ({"a.example": {"username": "ann", "password": "x:y"}}, "a.example", "ann"),
        ({"a.example:5000": auth("ann:x:y")}, "a.example", None),
        ({"a.example": {}}, "a.example", None),
        ({"a.example": auth("")}, "a.example", None),
        ({}, "a.example", None),
    ],
)
def test_an_entry_is_for_one_registry(
    tmp_path: Path, auths: dict[str, Any], registry: str, user: str | None
) -> None:
    environ = docker_config(tmp_path, auths=auths)

    found = read_docker_config(environ).credential(registry)

    assert (found.username if found else None) == user
    if found is not None:
        assert found.password == "x:y"
        assert "x:y" not in repr(found)
        assert found.basic not in repr(found)


def test_a_helper_is_a_name_and_never_a_path(tmp_path: Path) -> None:
    environ = docker_config(tmp_path, credHelpers={"a.example": "../../bin/sh"})

    with pytest.raises(StepFailed, match="and that is none"):
        read_docker_config(environ).credential("a.example")


def test_no_config_is_no_credential(tmp_path: Path) -> None:
    assert read_docker_config({"HOME": str(tmp_path)}).credential("a.example") is None


def manifest(**changed: Any) -> bytes:
    blob = {"mediaType": "x", "digest": DIGEST, "size": 1}
    value = {"mediaType": media.OCI_MANIFEST, "config": blob, "layers": [blob]}
    return json.dumps({**value, **changed}).encode()


def test_a_layer_that_lies_elsewhere_is_told_apart() -> None:
    foreign = {"mediaType": "x", "digest": DIGEST, "size": 1, "urls": ["https://a.example"]}

    read = media.read_manifest(manifest(layers=[foreign]), "", "here")

    assert [blob.elsewhere for blob in read.blobs] == [False, True]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        manifest(layers=None),
        manifest(config={"mediaType": "x", "digest": "sha256:../../etc", "size": 1}),
        manifest(config={"mediaType": "x", "digest": DIGEST, "size": -1}),
        manifest(config={"mediaType": "x", "digest": DIGEST, "size": True}),
        manifest(mediaType="application/vnd.docker.distribution.manifest.v1+prettyjws"),
    ],
)
def test_what_is_no_manifest_is_an_error_that_says_where(content: bytes) -> None:
    with pytest.raises(StepFailed, match=r"^here is "):
        media.read_manifest(content, "", "here")


def layout(folder: Path, *images: dict[str, Any]) -> Layout:
    folder.mkdir(exist_ok=True)
    (folder / "index.json").write_text(json.dumps({"manifests": list(images)}))
    return Layout(folder)


def named(name: str) -> dict[str, Any]:
    return {
        "mediaType": media.OCI_MANIFEST,
        "digest": DIGEST,
        "size": 1,
        "annotations": {"org.opencontainers.image.ref.name": name},
    }


def test_an_image_of_a_layout_is_chosen_by_its_name(tmp_path: Path) -> None:
    two = layout(tmp_path / "two", named("a"), named("b"))

    assert two.choose("b").annotations["org.opencontainers.image.ref.name"] == "b"
    with pytest.raises(StepFailed, match="does not hold one image: it holds a, b"):
        two.choose()
    with pytest.raises(StepFailed, match='does not hold an image "c": it holds a, b'):
        two.choose("c")
    with pytest.raises(StepFailed, match="it holds none"):
        layout(tmp_path / "none").choose()


def test_a_blob_of_a_layout_is_checked(tmp_path: Path) -> None:
    one = layout(tmp_path, named("a"))
    blob = tmp_path / "blobs/sha256" / ("a" * 64)
    blob.parent.mkdir(parents=True)
    blob.write_bytes(b"22")

    with pytest.raises(StepFailed, match=f"the blob {DIGEST} has the digest sha256:"):
        one.read_manifest(one.choose())
    with pytest.raises(StepFailed, match="has 2 bytes, and its manifest says 1"):
        list(one.read_blob(one.choose(), 0))


def test_what_is_no_layout_says_so(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    with tarfile.open(tmp_path / "empty.tar", "w"):
        pass

    with pytest.raises(StepFailed, match="is no folder and no uncompressed tar archive"):
        Layout(tmp_path / "text")
    with pytest.raises(StepFailed, match=r"holds no index\.json"):
        Layout(tmp_path / "empty.tar")
    with pytest.raises(StepFailed, match="cannot be read: No such file"):
        Layout(tmp_path / "absent")
    (tmp_path / "index.json").write_text("{")
    with pytest.raises(StepFailed, match=r"its index\.json cannot be read"):
        Layout(tmp_path)


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (
            404,
            b'{"errors":[{"code":"NAME_UNKNOWN","message":"no such"}]}',
            "r refuses the push (r/x): 404 words: NAME_UNKNOWN no such\n  make the repository",
        ),
        (413, b"<html>nginx</html>", "r refuses the push (r/x): 413 words\n  a proxy before"),
        (
            429,
            b"slow down",
            "429 words: slow down\n  no credentials — wait, or run `docker login r`",
        ),
        (403, b"", "403 words\n  no credentials — run `docker login r`, then try again"),
        (500, b"it says SECRET", "r fails at the push (r/x): 500 words: it says …"),
    ],
)
def test_an_answer_becomes_a_line_and_the_next_command(
    status: int, body: bytes, words: str
) -> None:
    error = refused(
        registry="r",
        repository="x",
        action="push",
        status=status,
        reason="words",
        body=body,
        secrets=("SECRET",),
        looked_in="no credentials",
    )

    assert words in error.message
    assert error.status == status
