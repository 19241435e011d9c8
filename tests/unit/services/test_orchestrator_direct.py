"""The two routes that pass by the framework answer what the framework's route answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from jr2 import names
from jr2_runtime.orchestrator.api.app import documented_app

pytestmark = pytest.mark.anyio
TOKEN = {"Authorization": "Bearer instance-token"}
KEY = names.HEADER_IDEMPOTENCY_KEY
START, GATE = "/workflows/gate/runs", "/runs/{run}/gates/review/events"


@pytest.mark.parametrize(
    ("path", "headers", "body", "code"),
    [
        (START, {}, b"{}", 401),
        (START, {"Authorization": "Bearer publish-token"}, b"{}", 403),
        (START, {**TOKEN, KEY: "two words"}, b"{}", 400),
        (START, TOKEN, b"x" * (names.MAX_EVENT + 1), 413),
        ("/workflows/none/runs", TOKEN, b"{}", 404),
        ("/workflows/%2Fgate/runs", TOKEN, b"{}", 404),
        ("/workflows//runs", TOKEN, b"{}", 404),
        (GATE, {}, b'{"type":"go"}', 401),
        (GATE, TOKEN, b"{}", 400),
        (GATE, TOKEN, b"no json", 400),
        (GATE, TOKEN, b'{"type":"stop"}', 400),
        (GATE.replace("review", "other"), TOKEN, b'{"type":"go"}', 404),
        (GATE.replace("review", "a/b%2Fc"), TOKEN, b'{"type":"go"}', 404),
        (GATE.replace("review", ""), TOKEN, b'{"type":"go"}', 422),
        (GATE.replace("{run}", "none"), TOKEN, b'{"type":"go"}', 404),
        (GATE, {**TOKEN, names.HEADER_IF_GATE: "x"}, b'{"type":"go"}', 200),
        (GATE, TOKEN, b'{"type":"go"}', 200),
    ],
)
async def test_both_ways_answer_the_same(
    bench: Any, path: str, headers: dict[str, str], body: bytes, code: int
) -> None:
    answers = []
    app = httpx2.ASGITransport(documented_app(bench.services), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=app, base_url="http://localhost") as framework:
        for client in (bench.client, framework):
            run = await bench.start("gate")
            answer = await client.post(path.replace("{run}", run), content=body, headers=headers)
            text = answer.text.replace(run, "<run>")
            answers.append(
                (answer.status_code, text, dict(answer.headers, **{"content-length": ""}))
            )
    assert answers[0] == answers[1]
    assert answers[0][0] == code, answers[0]


async def test_what_fails_inside_is_one_error_and_is_logged(
    short_folder: Path, rig: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with rig.open_bench(short_folder) as bench:
        await bench.publish()
        run = await bench.start("gate")
        await bench.store.write(lambda db: db.execute("UPDATE runs SET view = '{\"gates\":5}'"))
    async with rig.open_bench(short_folder) as bench:
        answer = await bench.post(f"/runs/{run}/gates/review/events", {"type": "go"})
    assert (answer.status_code, answer.json()) == (500, {"error": "internal error"})
    assert "a request failed" in caplog.text
    assert "TypeError" in caplog.text
