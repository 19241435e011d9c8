"""Write `sums.json`: fetch each official release of the table once and note its sum.

For the maintainers, at a change of a pinned version, on a machine that reaches the release hosts;
the change is reviewed against what the projects publish. A sum that is committed and no longer
holds is an error: a release never changes.

Source: ADR-0111.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import httpx2

from jr2.errors import Jr2Error, StepFailed

from .. import catalogue
from . import download, table

PLATFORMS: Final = (
    table.Platform(os="linux", arch="amd64"),
    table.Platform(os="linux", arch="arm64"),
)


def read_sums(
    programs: Sequence[catalogue.Program], before: table.Sums, client: httpx2.Client
) -> dict[str, dict[str, dict[str, str]]]:
    """Return the sums of the pinned versions.

    Args:
        programs: the table.
        before: the sums that are committed; versions that are no longer pinned are dropped.
        client: what asks.

    Raises:
        StepFailed: a release cannot be had, or is not the one whose sum is committed.
    """
    found: dict[str, dict[str, dict[str, str]]] = {}
    for program in programs:
        release = program.release
        if release is None or release.asset in found:
            continue
        known = before.get(release.asset, {}).get(program.version, {})
        sums: dict[str, str] = {}
        for where in PLATFORMS:
            address = table.address_of(release, program.version, where)
            sums[str(where)] = _sum_of(address, client)
            if known.get(str(where), sums[str(where)]) != sums[str(where)]:
                raise StepFailed(
                    f"{address} has the sum {sums[str(where)]}, and {known[str(where)]} is "
                    "committed: a release never changes"
                )
        found[release.asset] = {program.version: sums}
    return found


def _sum_of(address: str, client: httpx2.Client) -> str:
    try:
        with client.stream("GET", address, follow_redirects=True) as answer:
            if answer.status_code != httpx2.codes.OK:
                raise StepFailed(f"{address} answers {answer.status_code}")
            running = hashlib.sha256()
            for chunk in answer.iter_raw():
                running.update(chunk)
    except httpx2.HTTPError as error:
        raise StepFailed(f"{address}: {error}") from error
    return running.hexdigest()


def main() -> int:
    """Write the file and return the exit code."""
    file = Path(__file__).with_name(table.SUMS_FILE)
    try:
        with download.new_client() as client:
            sums = read_sums(catalogue.PROGRAMS, json.loads(file.read_text()), client)
    except Jr2Error as error:
        print(error.printed, file=sys.stderr)
        return 1
    file.write_text(json.dumps(sums, indent=2, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
