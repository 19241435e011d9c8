"""`jr2 tools install`, `jr2 tools list` and `jr2 tools prune`.

Source: design §7.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Any

import cyclopts

from jr2.errors import Usage

from .. import output
from ..groups import verb
from . import catalogue, lookup
from .official import table as releases

app = cyclopts.App(
    name="tools",
    help="The programs that jr2 uses: the Pulumi engine, kubectl and the local cluster's.",
)


@verb(app, "install")
def install(*names: str, json: Annotated[bool, cyclopts.Parameter(negative="")] = False) -> None:
    """Install the programs, all of them or those named.

    Each is taken from PATH when its version will do, else from jr2's cache, else from the official
    release where a sum of it is committed, else it is built from its pinned Go module, which needs
    Go 1.26 or newer and 10 GB of free disk for a while.

    Parameters
    ----------
    names
        Programs as `jr2 tools list` names them.
    json
        Stream the steps as events.
    """
    from .install import Installer

    if json:
        output.current().stream_events()
    try:
        programs = catalogue.chosen(names)
    except KeyError as error:
        raise Usage(f'no program "{error.args[0]}" — `jr2 tools list` shows the names') from None
    reporter = output.current()
    installer = Installer(environ=os.environ, reporter=reporter)
    if not names or any(program.module.cgo for program in programs):
        installer.install_packages()
    found = installer.install(programs)
    reporter.line(f"tools: {len(found)} of {len(found)} programs are there", code="tools-ready")


@verb(app, "list")
def list_(*, json: Annotated[bool, cyclopts.Parameter(negative="")] = False) -> None:
    """Show each program: its version, where it was found, and from which source.

    Parameters
    ----------
    json
        Print JSON.
    """
    found = [lookup.find(program) for program in catalogue.PROGRAMS]
    sums, here = releases.committed_sums(), releases.this_platform()
    missing = {package.name for package in lookup.missing_packages()}
    out = output.current()
    if json:
        out.result(
            {
                "programs": [
                    as_json(
                        item,
                        releases.choose(item.program.release, item.program.version, here, sums),
                    )
                    for item in found
                ],
                "packages": [
                    {"name": package.name, "installed": package.name not in missing}
                    for package in catalogue.PACKAGES
                ],
            }
        )
        return
    out.text(table(found))
    for item in found:
        if item.passed is not None:
            said = f" (it is {item.passed.version})" if item.passed.version else ""
            out.line(f"{item.passed.path} {item.passed.reason}{said}", code="tools-passed")
    if missing:
        out.line(f"packages missing: {' '.join(sorted(missing))}", code="tools-packages-missing")


@verb(app, "prune")
def prune(
    *,
    all_: Annotated[bool, cyclopts.Parameter(name="--all", negative="")] = False,
    json: Annotated[bool, cyclopts.Parameter(negative="")] = False,
) -> None:
    """Remove from jr2's cache what this jr2 does not use, and what interrupted work left.

    Parameters
    ----------
    all_
        Remove the programs that this jr2 uses too.
    json
        Print JSON.
    """
    from . import prune as pruning

    cache = lookup.cache_folder()
    decision = pruning.prune(cache, catalogue.PROGRAMS, everything=all_)
    out = output.current()
    if json:
        out.result(pruning.as_json(decision))
        return
    for line in pruning.lines(decision):
        out.line(line, code="tools-pruned")


def table(found: Sequence[lookup.Found]) -> str:
    """The list as text, one program a line: name, version, source, place."""
    rows = [
        (
            item.program.name,
            item.version or item.program.version,
            item.source or "missing",
            str(item.path or "-"),
        )
        for item in found
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in rows
    )


def as_json(found: lookup.Found, offered: releases.Asset | releases.Skipped) -> dict[str, Any]:
    """One program of the list as JSON."""
    passed = found.passed
    return {
        "name": found.program.name,
        "pinned": found.program.version,
        "version": found.version,
        "path": None if found.path is None else str(found.path),
        "source": found.source,
        "release": {"address": offered.address, "sha256": offered.sha256}
        if isinstance(offered, releases.Asset)
        else {"skipped": offered.reason},
        "passed": None
        if passed is None
        else {"path": str(passed.path), "version": passed.version, "reason": passed.reason},
    }
