"""The Kit images of a checkout reach a cluster that is not of this machine through a registry."""

from __future__ import annotations

import base64
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jr2.config import Config
from jr2.errors import StepFailed
from jr2_infra import rules
from jr2_infra.facts.images import read_images
from jr2_infra.images import checkout, delivery
from jr2_infra.images.build import oci, recipe
from jr2_infra.images.build.layers import pack_folder
from jr2_infra.images.delivery.registry import Pushed
from jr2_infra.rules import Place
from jr2_infra.session import Session
from jr2_infra.steps.kit_image import deliver_image
from tests.registry.conftest import (
    HTPASSWD,
    PASSWORD,
    USER,
    Registry,
    StartRegistry,
    logged_in,
)

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture
def registry(
    start_registry: StartRegistry,
    tmp_path: Path,
    environ: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> Registry:
    """A registry that wants a login, and a person who logged in."""
    file = tmp_path / "htpasswd"
    file.write_text(HTPASSWD)
    started = start_registry(auth={"htpasswd": {"realm": "tests", "path": str(file)}})
    login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    logged_in(environ, auths={started.host: {"auth": login}})
    monkeypatch.setenv("HOME", environ["HOME"])
    monkeypatch.delenv("DOCKER_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return started


def build(tmp_path: Path, ref: str, content: str = "one") -> str:
    """Put the archive of a small image where the build puts it, and return its digest."""
    root = tmp_path / "root"
    root.mkdir(exist_ok=True)
    (root / "file").write_text(content)
    return oci.write_archive(
        recipe.OPERATOR,
        ref=f"jr2.local/{ref.rpartition('/')[2]}",
        content_hash="c" * 64,
        architecture="amd64",
        layers=[pack_folder(root, tmp_path / "layer.tar")],
        target=checkout.archive_path(ref),
    ).digest


def test_an_image_is_pushed_once(registry: Registry, tmp_path: Path) -> None:
    ref = f"{registry.host}/team/jr2-operator:0123456789ab"
    digest = build(tmp_path, ref)
    way = Pushed(f"{registry.host}/team")
    assert way.held(ref) == {f"{registry.host}/team": None}
    (before,) = read_images([ref], way)

    assert delivery.deliver(ref, way)

    assert way.held(ref) == {f"{registry.host}/team": digest}
    assert not delivery.deliver(ref, way)
    (after,) = read_images([ref], way)
    # A pod that pulled it names it by this digest.
    assert (before.held, before.archived) == (None, digest)
    assert (after.held, after.config) == (digest, None)


def test_a_tag_is_never_pushed_over_another_image(registry: Registry, tmp_path: Path) -> None:
    ref = f"{registry.host}/team/jr2-operator:0123456789ab"
    digest = build(tmp_path, ref)
    way = Pushed(f"{registry.host}/team")
    delivery.deliver(ref, way)
    other = build(tmp_path, ref, "two")

    with pytest.raises(StepFailed, match=f"holds {digest} under {ref}, and the archive is {other}"):
        delivery.deliver(ref, way)

    assert way.held(ref) == {f"{registry.host}/team": digest}


def test_the_step_of_the_program_pushes_as_the_session_decided(
    registry: Registry, tmp_path: Path
) -> None:
    place = Place(instance="demo", context="production", namespace="demo")
    refs = rules.checkout_refs(
        place,
        orchestrator="jr2.local/jr2-orchestrator:1",
        operator="jr2.local/jr2-operator:2",
        checkout="/src",
        home=rules.push_home(place, f"{registry.host}/team/"),
    )
    digest = build(tmp_path, refs.operator)
    session = Session(
        place,
        cast(Any, SimpleNamespace(config=Config(registry=f"{registry.host}/team/"))),
        yes=True,
        force=False,
        context=cast(Any, SimpleNamespace(server="https://far.example")),
        http=cast(Any, None),
        find_tooling=cast(Any, None),
        reporter=cast(Any, None),
    )
    session._tooling = cast(Any, SimpleNamespace(local_import=None, kind=None, docker=None))
    said: list[str] = []
    leases: list[str] = []
    around = SimpleNamespace(
        settings=delivery.delivery_settings(session._delivery()),
        check_lease=lambda: leases.append("checked"),
        say=said.append,
    )

    deliver_image({"ref": refs.operator, "digest": digest}, cast(Any, around))

    assert said == [f"images: delivered {refs.operator} to {registry.host}/team"]
    assert leases == ["checked"]
    assert PASSWORD not in str(around.settings)
    assert Pushed(f"{registry.host}/team").held(refs.operator) == {f"{registry.host}/team": digest}


def test_without_a_login_the_error_names_the_command(
    registry: Registry, tmp_path: Path, environ: dict[str, str]
) -> None:
    ref = f"{registry.host}/team/jr2-operator:0123456789ab"
    build(tmp_path, ref)
    (Path(environ["HOME"]) / ".docker/config.json").unlink()

    with pytest.raises(StepFailed, match=f"run `docker login {registry.host}`, then try again"):
        delivery.deliver(ref, Pushed(f"{registry.host}/team"))
