"""What a stack's config may say, and what is refused of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from jr2.errors import StepFailed
from jr2_infra.plain.settings import read_settings


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").touch()
    (tmp_path / "infra").mkdir()
    (tmp_path / "demo").mkdir()
    return tmp_path


def test_a_relative_folder_is_below_the_project_and_not_below_the_program(checkout: Path) -> None:
    found = read_settings({"jr2:instance": "demo"}, checkout / "infra")

    assert (found.instance, found.context, found.namespace) == (checkout / "demo", None, None)


def test_everything_that_can_be_said(checkout: Path) -> None:
    config = {
        "jr2:instance": str(checkout / "demo"),
        "jr2:context": "kind-jr2",
        "jr2:namespace": "staging",
        "kubernetes:context": "theirs",
    }

    found = read_settings(config, checkout)

    assert (found.context, found.namespace) == ("kind-jr2", "staging")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (
            {},
            "the stack config names no Instance — `pulumi config set instance <folder>` sets "
            "jr2:instance, relative to the folder of Pulumi.yaml",
        ),
        (
            {"jr2:instance": "demo", "jr2:replicas": "3"},
            "the stack config holds jr2:replicas, and jr2 knows jr2:instance, jr2:context, "
            "jr2:namespace and nothing else — `pulumi config rm replicas`",
        ),
        (
            {"jr2:instance": "demo", "jr2:context": " "},
            "jr2:context of the stack config is empty",
        ),
        (
            {"jr2:instance": "gone"},
            "jr2:instance of the stack config: {checkout}/gone is no folder",
        ),
    ],
)
def test_what_is_refused(checkout: Path, config: dict[str, str], words: str) -> None:
    with pytest.raises(StepFailed) as raised:
        read_settings(config, checkout / "infra")
    assert raised.value.message == words.format(checkout=checkout)
