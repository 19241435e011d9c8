"""What an Assembly must not hold: each rule of the seed on entries, with no folder behind them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jr2 import names
from jr2.errors import StepFailed
from jr2.tree_hash import Entry
from jr2_infra.assembly import seal
from jr2_infra.assembly.dependencies import is_installer_record, split_requirements
from jr2_infra.assembly.kit_closure import KitClosure, parse_pins
from jr2_infra.assembly.lockfile import choose_lockfile, find_lockfile

CLOSURE = KitClosure(
    {
        "jr2": names.KIT_VERSION,
        "pydantic": "2.14.4",
        "pydantic-core": "2.50.5",
        "annotated-types": "0.8.0",
        "typing-extensions": "4.16.0",
    }
)


def link(path: str, target: str) -> Entry:
    return Entry(path, "link", target.encode())


@pytest.mark.parametrize(
    ("present", "message"),
    [
        (
            {"Pipfile.lock", "uv.lock"},
            "/i has a Pipfile.lock, and pipenv is not supported — use uv, poetry, or pdm",
        ),
        (
            {"uv.lock", "poetry.lock"},
            "/i holds lockfiles from more than one package manager (uv: uv.lock; poetry:"
            " poetry.lock) — delete the stale one, so the bundle installs the dependency graph"
            " the instance really uses",
        ),
        (
            {"pyproject.toml"},
            "/i has no lockfile — jr2 installs the instance's dependencies from uv (uv.lock),"
            " poetry (poetry.lock), pdm (pdm.lock) or a pylock.toml; run your package manager's"
            " lock and commit the lockfile it writes",
        ),
    ],
)
def test_lockfile_refusals(present: set[str], message: str) -> None:
    with pytest.raises(StepFailed) as refused:
        choose_lockfile("/i", frozenset(present))

    assert f"error: {message}" == refused.value.printed


def test_one_lockfile_is_taken() -> None:
    assert ("pdm", "pdm.lock") == choose_lockfile("/i", frozenset({"pdm.lock", "README.md"}))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("gone", path)])
def test_a_lockfile_that_is_no_file_is_named(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "uv.lock")

    with pytest.raises(StepFailed) as raised:
        find_lockfile(tmp_path)

    assert raised.value.printed == f"error: {tmp_path / 'uv.lock'} is no file"


@pytest.mark.parametrize(
    ("entry", "shown", "fix"),
    [
        (
            link("packages/lib/data", "/etc/passwd"),
            'lib/data points outside the Assembly ("/etc/passwd")',
            "install that dependency as a copy, not a link",
        ),
        (
            link("instance/workflows/_x.py", "../../../other.py"),
            'workflows/_x.py points outside the Assembly ("../../../other.py")',
            "make the link relative, with a target inside the Instance",
        ),
        (
            link("instance/a.py", "../packages/b.py"),
            'a.py points outside the Assembly ("../packages/b.py")',
            "make the link relative, with a target inside the Instance",
        ),
    ],
)
def test_links_that_leave_are_refused(entry: Entry, shown: str, fix: str) -> None:
    problem = seal.escaping_link([entry])

    assert problem is not None
    assert problem.printed == (
        f"error: cannot seal the Assembly: the symlink {shown} — an Assembly carries only what it"
        f" holds; {fix}"
    )


def test_links_that_stay_are_kept() -> None:
    assert (
        seal.escaping_link(
            [
                link("instance/workflows/b.py", "a.py"),
                link("instance/b.py", "workflows/../a.py"),
                link("packages/lib/x", "../other/y"),
            ]
        )
        is None
    )


@pytest.mark.parametrize(
    ("own", "packages", "place"),
    [
        ([], ["pydantic/__init__.py"], "pydantic"),
        ([], ["typing_extensions.py"], "typing_extensions.py"),
        ([], ["acme/_vendor/pydantic/__init__.py"], "acme/_vendor/pydantic"),
        ([], ["jr2/extra.py"], "jr2"),
        (["workflows/pydantic.py"], [], "workflows/pydantic.py"),
        (["pydantic.py"], [], "pydantic.py"),
        (["jr2/__init__.py"], [], "jr2"),
    ],
)
def test_second_copies_and_shadows(own: list[str], packages: list[str], place: str) -> None:
    problem = seal.second_copies({}, own, packages, CLOSURE)

    assert problem is not None
    first, line = problem.printed.splitlines()
    assert first == (
        "error: cannot stage the Assembly: it would carry a second copy of a Kit package (ADR-0069)"
    )
    kit, brought_by = (
        line.removeprefix(f"{place} is a second copy of ").split(":")[0].split(", brought by ")
    )
    assert line == (
        f"{place} is a second copy of {kit}, brought by {brought_by}: the Orchestrator's image "
        f"ships {kit} for jr2 {names.KIT_VERSION}, and an Assembly that carries its own copy loads "
        "Machines whose Menus are empty (ADR-0054) — align that dependency with the "
        f"{kit} jr2 uses, or remove it, and reinstall"
    )
    assert kit in CLOSURE.versions


@pytest.mark.parametrize(
    ("own", "packages"),
    [
        (["workflows/ping.py", "acme/pydantic_helpers.py"], []),
        ([], ["acme/_vendor/typing_extensions.py", "pydantic_settings/__init__.py"]),
        ([], ["acme/pydantic.py"]),
    ],
)
def test_what_only_resembles_a_kit_package_passes(own: list[str], packages: list[str]) -> None:
    assert seal.second_copies({}, own, packages, CLOSURE) is None


def test_a_requirement_that_the_image_does_not_meet() -> None:
    requires = {
        "old-lib": ["pydantic<2", "idna>=3"],
        "new-lib": ["pydantic>=2.10"],
        "other": ['pydantic<2; python_version < "3.8"'],
    }

    problem = seal.second_copies(requires, [], [], CLOSURE)

    assert problem is not None
    assert problem.message.splitlines()[1:] == [
        "old-lib needs pydantic<2, and the Orchestrator's image ships pydantic 2.14.4 for jr2"
        f" {names.KIT_VERSION} — give old-lib a version that admits it, and reinstall"
    ]


def elf(machine: int) -> bytes:
    return b"\x7fELF\x02\x01\x01" + bytes(11) + machine.to_bytes(2, "little")


def test_native_files_are_known_by_their_first_bytes() -> None:
    assert seal.native_platform(elf(62)) == "linux/amd64"
    assert seal.native_platform(elf(183)) == "linux/arm64"
    assert seal.native_platform(b"\xcf\xfa\xed\xfe" + bytes(20)) == "darwin"
    assert seal.native_platform(b"MZ" + bytes(20)) == "windows"
    assert seal.native_platform(b"print()\n") is None


def test_binaries_for_another_platform_or_python_are_refused_together() -> None:
    problem = seal.wrong_binaries(
        {
            "packages/a/x.cpython-311-x86_64-linux-gnu.so": "linux/amd64",
            "packages/b/x.cpython-312-x86_64-linux-gnu.so": "linux/amd64",
            "packages/c/x.abi3.so": "darwin",
            "packages/d/launcher.exe": "windows",
        },
        "linux/amd64",
        (3, 11),
    )

    assert problem is not None
    assert problem.message.splitlines()[1:] == [
        "  b/x.cpython-312-x86_64-linux-gnu.so is built for Python 3.12",
        "  c/x.abi3.so is built for darwin",
    ]


def test_the_staging_path_is_refused(tmp_path: Path) -> None:
    built = tmp_path / "paths.py"
    built.write_text("HERE = '/i/.jr2/assembly/making-x'\n")

    problem = seal.staging_path([Entry("packages/lib/paths.py", "file", built)], "/i/.jr2/assembly")

    assert problem is not None
    assert problem.printed.startswith(
        "error: cannot seal the Assembly: lib/paths.py holds the staging path (/i/.jr2/assembly)"
    )


def test_workflows_that_are_left_out_are_named() -> None:
    problem = seal.missing_workflows(["ping", "triage"], ["instance/workflows/ping.py"])

    assert problem is not None
    assert problem.printed == (
        "refusing: the staged Assembly does not hold the Workflows this folder holds (ADR-0069):"
        " workflows/triage.py — the Assembly holds what the Instance's install keeps; check what"
        " [tool.jr2] exclude leaves out"
    )


def test_an_exported_lock_loses_the_kit_and_keeps_hashes() -> None:
    text = (
        "# a comment\n"
        "./libs/one\n"
        "-e ./libs/two ; python_version >= '3.11'\n"
        "idna==3.20 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n"
        "Pydantic_Core==2.50.5 \\\n    --hash=sha256:cc\n"
        "orjson==3.13.0 \\\n    --hash=sha256:dd\n"
    )

    kept, local = split_requirements(text, CLOSURE)

    assert kept == (
        "idna==3.20 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n"
        "orjson==3.13.0 \\\n    --hash=sha256:dd\n"
    )
    assert local == ["./libs/one", "./libs/two"]


@pytest.mark.parametrize(
    ("path", "gone"),
    [
        ("bin/tool", True),
        ("lib/__pycache__/x.pyc", True),
        ("lib-1.0.dist-info/RECORD", True),
        ("lib-1.0.dist-info/METADATA", False),
        ("lib/RECORD", False),
        ("lib/bin/tool", False),
    ],
)
def test_records_of_the_installer_go(path: str, gone: bool) -> None:
    assert gone is is_installer_record(path)


def test_pins_are_read_with_normal_names() -> None:
    assert parse_pins("Typing_Extensions==4.16.0 \\\n    --hash=sha256:aa\nidna==3.20\n") == {
        "typing-extensions": "4.16.0",
        "idna": "3.20",
    }
