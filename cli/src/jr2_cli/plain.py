"""The program of a plain `pulumi up`: what the Converge needs of the command, found as `jr2` does.

Source: design §5.1 and §5.2 (Plain `pulumi up`), ADR-0123.
"""

from __future__ import annotations

from . import interrupt


def main() -> None:
    """Declare the Converge of the Instance that the stack's config names."""
    # The engine may interrupt the program as soon as it has started it.
    interrupt.leave_at_first()
    from . import env_file
    from .tooling import look_for_programs

    find_programs = look_for_programs()
    from jr2_infra import plain

    plain.main(find_programs, env_file.load)
