"""Commands that lose an answer: a write is sent again under its key, a read as it is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from jr2 import names
from jr2_cli import again
from tests.unit.cli.conftest import RUN, run_status

if TYPE_CHECKING:
    from tests.unit.cli.conftest import FarOrchestrator, Jr2

DONE = run_status("done", value="done")


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "ping", "--detach"),
        ("send", RUN, "--gate", "review", "--event", "GO"),
        ("send", RUN, "--event", "CANCEL"),
    ],
)
def test_a_write_whose_answer_is_lost_is_sent_again_under_its_key(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str], arguments: tuple[str, ...]
) -> None:
    far.lost = 2

    said = jr2(*arguments, env=at)

    assert said.code == 0
    assert said.stderr.count("the answer was lost — asking again under the same key") == 1
    writes = [asked for asked in far.asked if asked[0] == "POST"]
    assert len(writes) == 3
    assert len(set(far.keys)) == 1
    assert far.keys[0]
    assert writes[0] == writes[1] == writes[2]


def test_a_503_after_a_lost_answer_says_nothing_of_the_first_request(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str]
) -> None:
    far.lost, far.busy_after_loss = 1, 2

    said = jr2("run", "ping", "--detach", env=at)

    assert said.code == 0, said.stderr
    assert json.loads(said.stdout) == {"runId": RUN}
    assert len(far.keys) == 4
    assert len(set(far.keys)) == 1

    far.busy_after_loss = 1
    said = jr2("run", "ping", "--detach", env=at)

    assert said.code == 1
    assert "the worker is away" in said.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("status", RUN),
        ("status", "3f2a"),
        ("status",),
        ("logs", RUN),
        ("logs", "3f2a"),
        ("runs",),
        ("send", RUN, "--event", "CANCEL"),
        ("send", "3f2a", "--gate", "review", "--event", "GO"),
    ],
)
def test_a_read_whose_answer_is_lost_is_asked_for_again(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str], arguments: tuple[str, ...]
) -> None:
    far.feeds = [[("status", run_status())]]
    far.answers[("GET", "/assemblies")] = (200, {"current": None, "assemblies": [], "maps": {}})
    whole = jr2(*arguments, env=at)
    assert whole.code == 0
    before = len(far.asked)
    far.lost_reads = 2

    said = jr2(*arguments, env=at)

    assert (said.code, said.stdout) == (0, whole.stdout)
    assert said.stderr.count("the answer was lost — asking again\n") == 1
    assert len(far.asked) == 2 * before + 2
    assert len({each for each in far.keys if each}) == len(far.keys)


def test_a_feed_that_ends_before_its_status_is_attached_to_again(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str]
) -> None:
    far.feeds = [[], [("status", DONE)]]

    said = jr2("logs", RUN, env=at)

    assert said.code == 0
    assert json.loads(said.stdout) == DONE


def test_a_read_waits_for_one_that_starts_again_after_a_loss(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str]
) -> None:
    far.lost_reads, far.busy_after_loss = 1, 1

    assert jr2("status", RUN, env=at).code == 0

    far.busy_after_loss = 1
    said = jr2("status", RUN, env=at)

    assert said.code == 1
    assert said.stderr.splitlines()[-1] == "error: the worker is away"


def test_a_read_that_nobody_answers_ends(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(again, "READ_SECONDS", -1.0)
    far.lost_reads = 9

    said = jr2("runs", env=at)

    assert (said.code, said.stdout) == (1, "")
    assert said.stderr.splitlines()[-1].startswith(
        f"error: cannot reach the Orchestrator at {far.url} ("
    )
    assert far.lost_reads == 8


def test_each_write_has_a_key_of_its_own(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str]
) -> None:
    for _ in range(2):
        assert jr2("run", "ping", "--detach", env=at).code == 0

    assert len(set(far.keys)) == 2


def test_a_write_that_nobody_could_have_got_is_an_error_at_once(
    jr2: Jr2, at: dict[str, str]
) -> None:
    said = jr2("run", "ping", env={**at, names.ENV_URL: "http://127.0.0.1:9"})

    assert said.code == 1
    assert "cannot reach the Orchestrator" in said.stderr
    assert "asking again" not in said.stderr
