"""What `/metrics` says, and that a log line names the trace of its request."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from jr2_runtime.serving import logs

pytestmark = pytest.mark.anyio

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


async def metrics(bench: Any) -> dict[tuple[str, ...], float]:
    """Return each sample by its name and the values of its labels, in the order of their names."""
    answer = await bench.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


async def test_steps_and_live_runs_are_counted(bench: Any) -> None:
    run = await bench.start("gate")
    await bench.start("gate")
    await bench.start("task")
    await bench.post(f"/runs/{run}/gates/review/events", {"type": "go"})
    found = await metrics(bench)
    assert found[("jr2_runs_live", "gate")] == 1
    assert found[("jr2_runs_live", "task")] == 1
    assert found[("jr2_steps_total", "live")] == 3
    assert found[("jr2_steps_total", "done")] == 1
    assert found[("jr2_tasks_running",)] == 1
    assert found[("jr2_runs_stuck",)] == 0
    assert found[("jr2_events_waiting",)] == 0
    version = next(key for key in found if key[0] == "jr2_orchestrator")
    assert version[1] == bench.registry.hash[:12]


async def test_what_waits_and_what_is_overdue_is_measured(bench: Any) -> None:
    timed = await bench.start("timer", {"delay": 1})
    run = await bench.start("gate")
    assert (await metrics(bench))[("jr2_timer_lag_seconds",)] == 0

    def silent(request: dict[str, Any], body: bytes) -> Any:
        # A reply that nobody asked for: the step is not answered.
        return ({"id": 10**6, "kind": "pong"}, b"") if request["op"] == "step" else None

    bench.worker.answer = silent
    posting = asyncio.ensure_future(bench.post(f"/runs/{run}/gates/review/events", {"type": "go"}))

    async def waits() -> bool:
        found = await metrics(bench)
        return found[("jr2_events_waiting",)] == 1 and found[("jr2_event_wait_seconds",)] > 0

    await bench.eventually(waits)
    await posting
    bench.worker.leave()
    bench.clock.advance(5)
    assert (await metrics(bench))[("jr2_timer_lag_seconds",)] == 4
    await bench.post(f"/runs/{timed}/events", {"type": "CANCEL"})
    assert (await metrics(bench))[("jr2_timer_lag_seconds",)] == 0


async def test_answers_are_counted_by_the_pattern_of_their_route(bench: Any) -> None:
    for path in ("/runs/a", "/runs/b", "/etc/passwd", "/%2e%2e/x"):
        await bench.get(path)
    await bench.client.request("STRANGE", "/runs")
    found = await metrics(bench)
    assert found[("jr2_http_requests_total", "404", "GET", "/runs/{run}")] == 2
    assert found[("jr2_http_request_seconds_count", "GET", "/runs/{run}")] == 2
    assert found[("jr2_http_requests_total", "404", "GET", "")] == 2
    labels = {value for key in found for value in key[1:]}
    assert not any(re.search("passwd|%2e|STRANGE|^/runs/a$", value) for value in labels)


async def test_the_page_of_the_docs_names_every_metric_and_no_other(bench: Any) -> None:
    page = Path(__file__).parents[3] / "docs" / "observe.md"
    stated = set(re.findall(r"^\| `(jr2_[a-z_]+)`", page.read_text(), re.MULTILINE))
    await bench.start("gate")
    text = (await bench.client.get("/metrics")).text
    assert stated == {
        name
        for name in re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
        if not name.endswith("_created")
    }


async def test_a_log_line_of_a_request_names_its_trace(
    bench: Any, caplog: pytest.LogCaptureFixture
) -> None:
    lines: list[dict[str, Any]] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(logs.JsonFormatter().format(record)))

    caplog.set_level(logging.INFO)
    handler = Handler()
    logging.getLogger("jr2.engine").addHandler(handler)
    try:
        runs = [await bench.start("gate") for _ in range(2)]
        # Both are under way together, in one batch.
        await asyncio.gather(
            *(
                bench.client.post(
                    f"/runs/{run}/gates/review/events",
                    json={"type": "go"},
                    headers={**bench.bearer("instance-token"), **headers},
                )
                for run, headers in zip(runs, ({"traceparent": PARENT}, {}), strict=True)
            )
        )
    finally:
        logging.getLogger("jr2.engine").removeHandler(handler)
    settled = {line["run"]: line for line in lines if line["message"] == "a run has settled"}
    assert settled[runs[0]]["trace_id"] == TRACE
    assert "trace_id" not in settled[runs[1]]
