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
import sqlite3
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from jr2 import names

from ..cluster import Cluster
from ..serving import Server, listen, logs
from . import interpreter, upkeep
from .api import Services, build_app
from .api.auth import BadValues, read_values
from .assemblies.blobs import Blobs
from .assemblies.folders import Folders
from .assemblies.publish import Publisher
from .backup import Backups, RestoreFailed, finish, prepare
from .backup import command as backup_command
from .clock import Clock, WallClock
from .engine import Engine, Registry
from .feeds import Feeds
from .host import Processes, open_link
from .metrics import Metrics
from .settings import Settings, read_settings
from .store import Ballast, Store, StoreError
from .store import assemblies as assembly_rows
from .store.schema import NewerDatabase
from .watch import Watches

_PR_SET_DUMPABLE: Final = 4

log = logging.getLogger("jr2.orchestrator")


def run(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["backup"]:
        return backup_command.run(given[1:])
    logs.install()
    os.umask(0o077)
    # Nobody reads this process's memory, and it leaves no core file.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    settings = read_settings(given, os.environ)
    try:
        asyncio.run(serve(settings, WallClock()))
    except (BadValues, NewerDatabase, RestoreFailed, StoreError, OSError, sqlite3.Error) as failed:
        log.error("the Orchestrator cannot start", extra={"reason": str(failed)})
        return 1
    return 0


async def serve(settings: Settings, clock: Clock) -> None:
    """Run one Orchestrator until it is told to stop.

    Raises:
        BadValues: a file of its Secret is not what it should be.
        NewerDatabase: a later version of jr2 wrote the state.
        RestoreFailed: the backup that it was told to restore cannot be.
        OSError: the state folder or the port cannot be used.
        StoreError: the store is damaged, or it cannot be written.
    """
    values = read_values(settings.values)
    folders = Folders(settings.state)
    folders.prepare()
    blobs = Blobs(settings.state)
    blobs.prepare()
    registry = Registry(names.KIT_VERSION)
    feeds = Feeds()
    watches = Watches()
    metrics = Metrics()
    database = settings.state / names.STATE_DATABASE
    backups = Backups(settings.state, database)
    restore(backups, database, settings.restore)
    store = Store(database, Ballast(settings.state / "ballast"))
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
                metrics=metrics,
            )
            publisher = Publisher(
                store=store,
                engine=engine,
                processes=processes,
                registry=registry,
                folders=folders,
                blobs=blobs,
                clock=clock,
            )
            if registry.hash is not None:
                processes.for_steps(registry.hash)
            group.create_task(publisher.watch_releases())
            group.create_task(upkeep.sweep_hourly(store, publisher.sweep, clock))
            group.create_task(upkeep.bound_answers(store, clock))
            group.create_task(upkeep.back_up(backups, clock))
            cluster = Cluster.find(os.environ, settings.account)
            if cluster is None:
                log.warning("no cluster: the maps are not watched")
            else:
                group.create_task(watches.run(cluster))
            # In a thread, so that the loop has the worker load the Assembly meanwhile: due timers
            # and the first events wait for that.
            app = await asyncio.to_thread(
                build_app,
                Services(
                    store=store,
                    engine=engine,
                    registry=registry,
                    feeds=feeds,
                    publisher=publisher,
                    maps=watches.digests,
                    values=values,
                    metrics=metrics,
                    clock=clock,
                    namespace=settings.namespace,
                ),
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
            interpreter.settle()
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
        try:
            registry.take(each)
        except ValidationError:
            # Its runs go on, for the worker says what it holds; a publish writes the row anew.
            log.exception("the current Assembly cannot be read", extra={"assembly": each.hash[:12]})
        if each.kit_version == registry.kit_version:
            loadable.append(each.hash)
    return TakenUp(loadable=loadable, lost=lost)


def restore(backups: Backups, database: Path, name: str | None) -> None:
    """Finish a restore that was begun, and do the one that is asked for, before the store opens.

    Raises:
        RestoreFailed: it cannot be done; the store was not touched.
        OSError: the volume does not take it; the next start goes on.
    """
    done = finish(database)
    if name is not None and prepare(backups, database, name):
        done = finish(database)
    if done is not None:
        log.warning("the store was restored", extra={"backup": done})
