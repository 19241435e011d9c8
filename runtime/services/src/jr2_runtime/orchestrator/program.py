"""The program `jr2-orchestrator`: open the store, take up what was left, serve, end.

Source: spec/runtime.md §1.1, design §4.3 and §4.4.
"""

from __future__ import annotations

import asyncio
import ctypes
import functools
import logging
import os
import signal
import sys
from dataclasses import dataclass
from typing import Final

from jr2 import names

from . import logs
from .api import Services, build_app
from .api.auth import BadValues, read_values
from .assemblies.folders import Folders
from .assemblies.publish import Publisher
from .clock import Clock, WallClock
from .engine import Engine, Registry
from .feeds import Feeds
from .host import Processes, open_link
from .server import Server, listen
from .settings import Settings, read_settings
from .store import Ballast, Store, answers
from .store import assemblies as assembly_rows
from .store import runs as run_rows
from .store.schema import NewerDatabase
from .watch import Cluster, Watches

_PR_SET_DUMPABLE: Final = 4
_SWEEP_SECONDS: Final = 3600

log = logging.getLogger("jr2.orchestrator")


def run(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code."""
    logs.install()
    os.umask(0o077)
    # Nobody reads this process's memory, and it leaves no core file.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    settings = read_settings(sys.argv[1:] if arguments is None else arguments, os.environ)
    try:
        asyncio.run(serve(settings, WallClock()))
    except (BadValues, NewerDatabase, OSError) as failed:
        log.error("the Orchestrator cannot start", extra={"reason": str(failed)})
        return 1
    return 0


async def serve(settings: Settings, clock: Clock) -> None:
    """Run one Orchestrator until it is told to stop.

    Raises:
        BadValues: a file of its Secret is not what it should be.
        NewerDatabase: a later version of jr2 wrote the state.
        OSError: the state folder or the port cannot be used.
    """
    values = read_values(settings.values)
    folders = Folders(settings.state)
    folders.prepare()
    registry = Registry(names.KIT_VERSION)
    feeds = Feeds()
    watches = Watches()
    store = Store(settings.state / names.STATE_DATABASE, Ballast(settings.state / "ballast"))
    try:
        taken = await take_up(store, folders, registry, clock)
        listener = listen(settings.host, settings.port)
        async with asyncio.TaskGroup() as group:
            processes = Processes(
                group,
                lambda assembly: open_link(settings.socket, settings.worker_uid, assembly),
            )
            engine = Engine(
                group=group,
                store=store,
                processes=processes,
                registry=registry,
                feeds=feeds,
                clock=clock,
            )
            publisher = Publisher(
                store=store,
                engine=engine,
                processes=processes,
                registry=registry,
                folders=folders,
                clock=clock,
            )
            if registry.hash is not None:
                processes.for_steps(registry.hash)
            group.create_task(publisher.watch_releases())
            group.create_task(_sweep_hourly(store, clock))
            cluster = Cluster.find(os.environ, settings.account)
            if cluster is None:
                log.warning("no cluster: the maps are not watched")
            else:
                group.create_task(watches.run(cluster))
            app = build_app(
                Services(
                    store=store,
                    engine=engine,
                    registry=registry,
                    feeds=feeds,
                    publisher=publisher,
                    maps=watches.digests,
                    values=values,
                    namespace=settings.namespace,
                )
            )
            server = Server(app, feeds.close_all)
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, server.handle_exit, number)
            log.info(
                "listening",
                extra={
                    "port": listener.getsockname()[1],
                    "version": names.KIT_VERSION,
                    "assembly": registry.hash and registry.hash[: names.SHORT_HASH],
                },
            )
            group.create_task(engine.recover(taken.loadable, taken.lost))
            await server.serve(sockets=[listener])
            raise _Stopped
    except* _Stopped:
        log.info("stopped")
    finally:
        store.close()


class _Stopped(Exception):
    """The server has ended: everything else ends with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenUp:
    """What a start found."""

    loadable: list[str]
    """The hashes of the Assemblies that this program can load, the current one first."""
    lost: list[str]
    """The runs whose Assembly is not on the volume any more."""


async def take_up(store: Store, folders: Folders, registry: Registry, clock: Clock) -> TakenUp:
    """Make folders and rows agree after whatever ended the last process."""
    now = clock.now()
    held = await store.read(assembly_rows.held)
    missing = await asyncio.to_thread(folders.clean, [each.hash for each in held])
    lost: list[str] = []
    for hash_ in missing:
        lose = functools.partial(assembly_rows.lose, hash_=hash_, now=now)
        runs = await store.write(lose, frees_room=True)
        lost += runs
        log.error(
            "an Assembly is not on the volume", extra={"assembly": hash_[:12], "lost": len(runs)}
        )
    released = await store.write(assembly_rows.release, frees_room=True)
    for hash_ in released:
        await asyncio.to_thread(folders.remove, hash_)
    loadable = []
    for each in held:
        if each.hash in missing or each.hash in released:
            continue
        registry.take(each)
        if each.kit_version == registry.kit_version:
            loadable.append(each.hash)
    return TakenUp(loadable=loadable, lost=lost)


async def _sweep_hourly(store: Store, clock: Clock) -> None:
    while True:
        try:
            await sweep(store, clock)
        except Exception as failed:
            # The root of this loop: the next hour is another try.
            log.warning(
                "settled runs were not removed",
                extra={"reason": f"{type(failed).__name__}: {failed}"},
            )
        await asyncio.sleep(_SWEEP_SECONDS)


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
