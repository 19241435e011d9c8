"""The program's edges: settings, logs, the values it starts with, its port."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jr2 import names
from jr2.wire import LeaseStamp
from jr2_runtime.orchestrator import program, upkeep
from jr2_runtime.orchestrator.api.auth import BadValues, Values, principal, read_values
from jr2_runtime.orchestrator.clock import WallClock
from jr2_runtime.orchestrator.settings import read_settings
from jr2_runtime.orchestrator.store import Ballast, Store, StoreError
from jr2_runtime.serving import logs, server
from tests.unit.services.served import fails_to_start
from tests.waiting import LIMIT


def test_the_defaults_are_those_of_the_image() -> None:
    settings = read_settings([], {})
    assert str(settings.state) == names.STATE_PATH
    assert str(settings.values) == names.VALUES_PATH
    assert settings.socket == names.WORKER_SOCKET
    assert settings.worker_uid == names.WORKER_UID
    assert (settings.host, settings.port) == ("", names.ORCHESTRATOR_PORT)
    given = read_settings(["--port", "1"], {"JR2_PORT": "2", "JR2_STATE_PATH": "/s"})
    assert (given.port, str(given.state)) == (1, "/s")


def test_a_log_line_is_json_with_what_was_given(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError("why")
    except ValueError:
        with caplog.at_level(logging.INFO):
            logging.getLogger("jr2.x").exception("said %s", "so", extra={"run": "r"})
    line = json.loads(logs.JsonFormatter().format(caplog.records[0]))
    assert (line["level"], line["logger"], line["message"]) == ("error", "jr2.x", "said so")
    assert line["run"] == "r"
    assert "ValueError: why" in line["exception"]
    assert line["time"].endswith("+00:00")
    assert set(line) == {"time", "level", "logger", "message", "run", "exception"}


def test_the_values_are_read_and_never_shown(tmp_path: Path) -> None:
    instance, publisher = "a1" * 32, "b2" * 32
    key = base64.urlsafe_b64encode(b"k" * 32).decode().rstrip("=")
    good = {
        names.FILE_INSTANCE_TOKEN_DIGEST: f"{instance.upper()}\n",
        names.FILE_PUBLISH_TOKEN_DIGEST: publisher,
        names.FILE_SIGNING_KEY: f"{key}\n",
    }
    for name, content in good.items():
        (tmp_path / name).write_text(content)
    values = read_values(tmp_path)
    assert values == Values(instance=instance, publisher=publisher, signing_key=b"k" * 32)
    assert instance not in repr(values)
    assert "kkk" not in repr(values)
    bad: dict[str, list[str]] = {
        names.FILE_INSTANCE_TOKEN_DIGEST: ["short", publisher + "0", "é"],
        names.FILE_PUBLISH_TOKEN_DIGEST: ["short", publisher + "0", "é"],
        names.FILE_SIGNING_KEY: ["c2hvcnQ", "!" * 64, "é" * 64],
    }
    for name, contents in bad.items():
        for content in contents:
            (tmp_path / name).write_text(content)
            with pytest.raises(BadValues, match=name) as refused:
                read_values(tmp_path)
            assert content not in str(refused.value)
        (tmp_path / name).unlink()
        with pytest.raises(BadValues, match=name):
            read_values(tmp_path)
        (tmp_path / name).write_text(good[name])


def test_a_token_that_is_no_text_is_nobody() -> None:
    values = Values(instance="0" * 64, publisher="1" * 64, signing_key=b"k" * 32)
    for header in (None, "", "Bearer", "Bearer \udcff", "Bearer a.\udcff", "Token x", "Bearer a b"):
        assert principal(header, values) is None


@pytest.mark.parametrize("values", [False, True])
def test_a_start_that_cannot_be_says_why_and_ends_with_1(
    tmp_path: Path, values: bool, caplog: pytest.LogCaptureFixture
) -> None:
    for name in (names.FILE_INSTANCE_TOKEN_DIGEST, names.FILE_PUBLISH_TOKEN_DIGEST):
        if values:
            (tmp_path / name).write_text("0" * 64)
    (tmp_path / names.FILE_SIGNING_KEY).write_text("A" * 43)
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    settings = read_settings(
        [
            "--state",
            str(tmp_path),
            "--values",
            str(tmp_path),
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
        ],
        {},
    )
    with pytest.raises(OSError if values else BadValues):
        asyncio.run(program.serve(settings, WallClock()))
    taken.close()


@pytest.mark.parametrize("what", ["damaged", "read only"])
def test_a_store_that_cannot_be_opened_is_one_line(tmp_path: Path, what: str) -> None:
    for name in (names.FILE_INSTANCE_TOKEN_DIGEST, names.FILE_PUBLISH_TOKEN_DIGEST):
        (tmp_path / name).write_text("0" * 64)
    (tmp_path / names.FILE_SIGNING_KEY).write_text("A" * 43)
    database = tmp_path / names.STATE_DATABASE
    if what == "damaged":
        database.write_bytes(b"no database" * 1000)
    else:
        database.mkdir()  # root may write what has no write permission
    said = fails_to_start(
        "jr2_runtime.orchestrator",
        JR2_STATE_PATH=str(tmp_path),
        JR2_VALUES_PATH=str(tmp_path),
        JR2_HOST="127.0.0.1",
        JR2_PORT="0",
    )
    assert said["message"] == "the Orchestrator cannot start"
    assert str(said["reason"]).startswith(f"the store {database} cannot be opened: ")


def test_an_answer_does_not_wait_for_an_acknowledgement() -> None:
    """asyncio sets TCP_NODELAY where a socket names its protocol."""
    for host in ("", "127.0.0.1"):
        listener = server.listen(host, 0)
        client = socket.create_connection(("127.0.0.1", listener.getsockname()[1]))
        accepted, _ = listener.accept()
        assert accepted.proto == socket.IPPROTO_TCP
        for each in (accepted, client, listener):
            each.close()


@pytest.mark.parametrize(
    "text", ["", "x", "2026-11-30T00:00:00", "2026-11-30T00:00:00 n", "2026-11-30T00:00:00Z", "n"]
)
def test_a_lease_stamp_needs_a_zone_and_a_nonce(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        LeaseStamp.parse(text)


def test_a_lease_stamp_comes_back_as_it_went() -> None:
    text = "2026-11-30T00:00:00.000001Z abc-DEF_1"
    stamp = LeaseStamp.parse(text)
    assert stamp.header() == text
    assert LeaseStamp.parse("2026-11-30T01:00:00.000001+01:00 abc-DEF_1") == stamp


def test_a_sweep_that_fails_says_why_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(upkeep, "HOUR_MS", 0)

    async def sweep() -> int:
        store = Store(tmp_path / "state.db")
        tries = 0

        async def fail(job: Callable[[Any], Any], *, frees_room: bool = False) -> Any:
            nonlocal tries
            tries += 1
            if tries == 3:
                raise asyncio.CancelledError
            raise StoreError("the disk is full")

        monkeypatch.setattr(store, "write", fail)
        with pytest.raises(asyncio.CancelledError):
            await upkeep.sweep_hourly(store, lambda: 0, WallClock())
        store.close()
        return tries

    assert asyncio.run(sweep()) == 3
    assert [(each.message, vars(each)["reason"]) for each in caplog.records] == [
        ("what is old was not removed", "StoreError: the disk is full")
    ] * 2


def test_a_ballast_that_cannot_be_looked_at_fails_the_write_and_not_those_after_it(
    tmp_path: Path,
) -> None:
    class Broken(Ballast):
        """Its volume does not answer, once."""

        asked = 0

        def is_out(self) -> bool:
            self.asked += 1
            if self.asked == 1:
                raise OSError(5, "Input/output error")
            return False

    async def write() -> int:
        store = Store(tmp_path / "state.db", Broken(tmp_path / "ballast"))
        try:
            async with asyncio.timeout(LIMIT):
                with pytest.raises(StoreError, match="Input/output error"):
                    await store.write(lambda db: None)
                return await store.write(lambda db: 7)
        finally:
            store.close()

    assert asyncio.run(write()) == 7
