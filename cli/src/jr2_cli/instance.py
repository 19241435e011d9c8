"""What a verb needs of the Instance that it stands in: its folder and its namespace.

Source: spec/converge.md §2.3 and §2.4.
"""

from __future__ import annotations

from pathlib import Path


def root(cwd: Path) -> Path:
    """Return the Instance folder that `cwd` is in.

    Raises:
        StepFailed: it is in none.
    """
    from jr2_infra.facts import instance as facts

    return facts.find_root(cwd)


def namespace(cwd: Path, given: str | None) -> str:
    """Return the namespace of the Instance: the one that is given, or the Instance's name.

    Args:
        cwd: the folder that the command stands in.
        given: what `-n` names.

    Raises:
        StepFailed: not inside an Instance, another Kit version, or a config that does not load.
    """
    from jr2_infra.facts import instance as facts

    folder = facts.find_root(cwd)
    facts.check_kit_version(folder)
    return given or facts.instance_name(folder, facts.read_config(folder))
