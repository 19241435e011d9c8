"""What a user would pick instead, on the same disk: DBOS and LangGraph with SQLite, and SQLite alone.

Runs in an environment of its own (`scripts/bench` makes it), as `python peers.py <folder> <what> <n>
<runs>`; prints one JSON object with the durable steps of each second.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import threading
import time
from pathlib import Path
from typing import Any, TypedDict


def dbos(folder: Path, steps: int, runs: int) -> float:
    """Workflows of `steps` steps each, `runs` of them at once."""
    from dbos import DBOS, SetWorkflowID

    DBOS(
        config={
            "name": "bench",
            "system_database_url": f"sqlite:///{folder}/dbos.sqlite",
            "run_admin_server": False,
            "log_level": "ERROR",
        }
    )

    @DBOS.step()  # type: ignore[untyped-decorator]
    def add(number: int) -> int:
        return number + 1

    @DBOS.workflow()  # type: ignore[untyped-decorator]
    def chain(count: int) -> int:
        number = 0
        for _ in range(count):
            number = add(number)
        return number

    DBOS.launch()
    with SetWorkflowID("warm"):
        chain(20)
    began = time.perf_counter()
    handles = [DBOS.start_workflow(chain, steps) for _ in range(runs)]
    for handle in handles:
        assert handle.get_result() == steps
    took = time.perf_counter() - began
    DBOS.destroy()
    return steps * runs / took


def langgraph(folder: Path, steps: int, runs: int) -> float:
    """A graph whose one node loops `steps` times, a checkpoint before each next step."""
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.graph import END, START, StateGraph

    class State(TypedDict):
        number: int
        goal: int

    async def add(state: State) -> dict[str, Any]:
        return {"number": state["number"] + 1}

    async def measure() -> float:
        path = str(folder / "langgraph.sqlite")
        async with AsyncSqliteSaver.from_conn_string(path) as saver:
            await saver.conn.execute("PRAGMA journal_mode = WAL")
            await saver.conn.execute("PRAGMA synchronous = FULL")
            building = StateGraph(State)
            building.add_node("add", add)
            building.add_edge(START, "add")
            building.add_conditional_edges(
                "add", lambda state: END if state["number"] >= state["goal"] else "add"
            )
            graph = building.compile(checkpointer=saver)

            async def chain(thread: str, count: int) -> None:
                config = {"configurable": {"thread_id": thread}, "recursion_limit": count + 5}
                made = await graph.ainvoke({"number": 0, "goal": count}, config, durability="sync")
                assert made["number"] == count

            await chain("warm", 20)
            began = time.perf_counter()
            await asyncio.gather(*(chain(f"run-{each}", steps) for each in range(runs)))
            return steps * runs / (time.perf_counter() - began)

    return asyncio.run(measure())


def sqlite(folder: Path, steps: int, runs: int) -> float:
    """One thread that commits one row after another, each with a sync of the disk."""
    connection = sqlite3.connect(folder / "stream.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE steps (id INTEGER PRIMARY KEY, body BLOB)")
    body = b"x" * 300
    began = time.perf_counter()
    for _ in range(steps * runs):
        connection.execute("INSERT INTO steps (body) VALUES (?)", (body,))
    took = time.perf_counter() - began
    connection.close()
    return steps * runs / took


def main(folder: str, what: str, steps: str, runs: str) -> None:
    """Measure one peer and print what it did."""
    peers = {"dbos": dbos, "langgraph": langgraph, "sqlite": sqlite}
    rate = peers[what](Path(folder), int(steps), int(runs))
    print(json.dumps({"rate": rate}), flush=True)
    if threading.active_count() > 1:
        # A peer's pools may outlive its last answer.
        sys.stdout.flush()
        import os

        os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
