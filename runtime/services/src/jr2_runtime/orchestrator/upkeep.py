"""What is done again and again while the program runs: old rows go, and backups are made.

Source: design §4.3, spec/runtime.md §1.6.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from .backup import Backups
from .backup.copies import EVERY_MS
from .clock import Clock
from .store import Store, answers
from .store import runs as run_rows

HOUR_MS: Final = 3600 * 1000
"""The pause between two sweeps, and the longest between two looks at the newest backup."""
MINUTE: Final = 60.0
"""Seconds between two looks at how much the stored answers take."""

log = logging.getLogger("jr2.orchestrator")


async def back_up(backups: Backups, clock: Clock) -> None:
    """Make a backup whenever the newest is six hours old, until cancelled."""
    await asyncio.to_thread(backups.clean)
    never = asyncio.Event()
    while True:
        newest = await asyncio.to_thread(backups.newest_at)
        wait = 0 if newest is None else newest + EVERY_MS - clock.now()
        if wait <= 0:
            wait = HOUR_MS
            try:
                name = await asyncio.to_thread(backups.make, clock.now())
            except Exception as failed:
                # The root of this loop: the next try comes in an hour.
                log.error(
                    "no backup of the store was made",
                    extra={"reason": f"{type(failed).__name__}: {failed}"},
                )
            else:
                log.info("a backup of the store was made", extra={"backup": name})
                continue
        await clock.wait(never, min(wait, HOUR_MS))


async def sweep_hourly(store: Store, sweep_blobs: Callable[[], int], clock: Clock) -> None:
    """Sweep now and each hour, until cancelled.

    Args:
        store: the store.
        sweep_blobs: removes the blobs that no Assembly has, and returns their bytes.
        clock: says the time.
    """
    while True:
        try:
            await sweep(store, clock)
            if freed := await asyncio.to_thread(sweep_blobs):
                log.info("blobs that no Assembly has were removed", extra={"bytes": freed})
        except Exception as failed:
            # The root of this loop: the next hour is another try.
            log.warning(
                "what is old was not removed",
                extra={"reason": f"{type(failed).__name__}: {failed}"},
            )
        await asyncio.sleep(HOUR_MS / 1000)


async def bound_answers(store: Store, clock: Clock) -> None:
    """Look each minute whether the stored answers take too much, until cancelled."""
    while True:
        try:
            await drop_answers(store, clock)
        except Exception as failed:
            # The root of this loop: the next minute is another try.
            log.warning(
                "stored answers were not removed",
                extra={"reason": f"{type(failed).__name__}: {failed}"},
            )
        await asyncio.sleep(MINUTE)


async def drop_answers(store: Store, clock: Clock) -> None:
    """Remove the oldest answers while all of them take more than they may.

    Raises:
        StoreError: the store did not take a change.
    """
    excess = await store.read(answers.held_bytes) - answers.MOST_BYTES
    gone = 0
    while excess > 0:
        freed = await store.write(
            lambda db, excess=excess: answers.drop_oldest(db, clock.now(), excess),  # type: ignore[misc]
            frees_room=True,
        )
        if not freed:
            break  # the others are too young
        excess -= freed
        gone += freed
    if gone:
        log.info("the oldest answers were removed before their time", extra={"bytes": gone})


async def sweep(store: Store, clock: Clock) -> None:
    """Remove what settled, or was answered, more than seven days ago, a piece at a time.

    Raises:
        StoreError: the store did not take a change.
    """
    removed = {"runs": 0, "answers": 0}
    for what, piece in (("runs", run_rows.sweep), ("answers", answers.sweep)):
        while swept := await store.write(
            lambda db, piece=piece: piece(db, clock.now()),  # type: ignore[misc]
            frees_room=True,
        ):
            removed[what] += swept
    if any(removed.values()):
        log.info("what is older than seven days was removed", extra=removed)
