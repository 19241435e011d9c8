"""What the operating system must bring: checked, and installed where we may.

On Debian and Ubuntu, as root, the packages are installed with `apt-get`. Elsewhere the command is
named, because the names of packages differ and a password is not ours to ask for.

Source: design §7.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from jr2.errors import StepFailed
from jr2_infra import processes
from jr2_infra.report import Reporter

from . import catalogue

_ERROR_LINES = 10


def apt_command(packages: Sequence[catalogue.Package]) -> list[str]:
    """The command that installs packages on Debian and Ubuntu."""
    names = [package.name for package in packages]
    return ["apt-get", "install", "--yes", "--no-install-recommends", *names]


def manual_text(packages: Sequence[catalogue.Package], *, is_debian: bool) -> str:
    """The text of an error where we may not install packages.

    Args:
        packages: what is missing.
        is_debian: whether the system has `apt-get`.
    """
    if is_debian:
        missing = ", ".join(package.name for package in packages)
        command = " ".join(apt_command(packages))
        return f"{missing} must be installed as root — run `sudo {command}`, then try again"
    lines = ["install these with the package manager of this system, then try again:"]
    lines += [f"  {package.name} (as Debian names it): {package.use}" for package in packages]
    return "\n".join(lines)


def install(packages: Sequence[catalogue.Package], reporter: Reporter) -> None:
    """Install packages, or say who must.

    Args:
        packages: what is missing; nothing is done when it is empty.
        reporter: where the lines go.

    Raises:
        StepFailed: they cannot be installed from here, or `apt-get` failed.
    """
    if not packages:
        return
    is_debian = shutil.which("apt-get") is not None
    if not is_debian or os.geteuid() != 0:
        raise StepFailed(manual_text(packages, is_debian=is_debian))
    names = " ".join(package.name for package in packages)
    reporter.line(f"tools: installing {names} with apt-get", code="tools-packages")
    reporter.progress(f"tools: installing {names}")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = apt_command(packages)
    done = processes.run(command, env=env)
    if done.returncode != 0:
        # The lists of packages may be absent or old, as on a fresh machine.
        processes.run(["apt-get", "update"], env=env)
        done = processes.run(command, env=env)
    reporter.progress(None)
    if done.returncode != 0:
        said = "\n".join(f"  {line}" for line in done.stderr.splitlines()[-_ERROR_LINES:])
        raise StepFailed(f"`{' '.join(command)}` failed\n{said}")
