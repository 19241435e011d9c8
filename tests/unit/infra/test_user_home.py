"""The home folder, also of a user without one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jr2.errors import StepFailed
from jr2_infra import user_home


def test_what_home_says_is_taken() -> None:
    assert user_home.folder({"HOME": "/somewhere"}) == Path("/somewhere")


def test_a_user_without_a_home_is_told_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose user has a number and no name."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 3_000_000_001)

    with pytest.raises(StepFailed) as raised:
        user_home.folder({})

    assert raised.value.printed == (
        "error: HOME is not set, and the user 3000000001 has no home folder — set HOME to a "
        "folder that you may write"
    )
