"""The Assembly: lockfiles, what is staged and what is sealed."""

from __future__ import annotations

from typing import Final

from tests.contract.seed_003.rows.row import CONVERGE, Row

ROWS: Final = (
    Row(
        text="error: <folder> holds lockfiles from more than one package manager (<manager>: <lockfile>; <manager>: <lockfile>) — delete the stale one, so the bundle installs the dependency graph the instance really uses",
        page=CONVERGE,
        tests=("tests/unit/infra/test_assembly_seal.py::test_lockfile_refusals",),
    ),
    Row(
        text="error: <folder> has a Pipfile.lock, and pipenv is not supported — use uv, poetry, or pdm",
        page=CONVERGE,
        tests=("tests/unit/infra/test_assembly_seal.py::test_lockfile_refusals",),
    ),
    Row(
        text="error: <folder> has no lockfile — jr2 installs the instance's dependencies from uv (uv.lock), poetry (poetry.lock), pdm (pdm.lock) or a pylock.toml; run your package manager's lock and commit the lockfile it writes",
        page=CONVERGE,
        tests=("tests/unit/infra/test_assembly_seal.py::test_lockfile_refusals",),
    ),
    Row(
        text="error: cannot stage the Assembly: it would carry a second copy of a Kit package (ADR-0069)",
        page=CONVERGE,
        below=(
            "<path> is a second copy of <package>, brought by <package>: the Orchestrator's image ships <package> for jr2 <version>, and an Assembly that carries its own copy loads Machines whose Menus are empty (ADR-0054) — align that dependency with the <package> jr2 uses, or remove it, and reinstall",
        ),
        tests=("tests/unit/infra/test_assembly_seal.py::test_second_copies_and_shadows",),
    ),
    Row(
        text='error: cannot seal the Assembly: the symlink <path> points outside the Assembly ("<target>") — an Assembly carries only what it holds; install that dependency as a copy, not a link',
        page=CONVERGE,
        tests=("tests/unit/infra/test_assembly_seal.py::test_links_that_leave_are_refused",),
    ),
    Row(
        text='error: cannot seal the Assembly: the symlink <path> points outside the Assembly ("<target>") — an Assembly carries only what it holds; make the link relative, with a target inside the Instance',
        page=CONVERGE,
        tests=("tests/unit/infra/test_assembly_seal.py::test_links_that_leave_are_refused",),
    ),
    Row(
        text="error: cannot seal the Assembly: <file> holds the staging path (<path>) …",
        page=CONVERGE,
        tests=("tests/unit/infra/test_assembly_seal.py::test_the_staging_path_is_refused",),
    ),
    Row(
        text="refusing: the staged Assembly does not hold the Workflows this folder holds (ADR-0069): <files> — the Assembly holds what the Instance's install keeps; check what [tool.jr2] exclude leaves out",
        page=CONVERGE,
        tests=(
            "tests/unit/infra/test_assembly_seal.py::test_workflows_that_are_left_out_are_named",
        ),
    ),
)
