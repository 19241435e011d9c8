"""The type check of an Instance: its own checker, its words, and when it is not repeated."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jr2.errors import Refusal, StepFailed
from jr2_infra import typecheck
from jr2_infra.facts import kit

if TYPE_CHECKING:
    from tests.reporter import Reporter
    from tests.unit.infra.conftest import MakeInstance

CANARY = "CANARY-5f3a"


def project(checker: str, more: str = "") -> str:
    return f'[project]\nname = "x"\nrequires-python = ">=3.11"\n[tool.jr2]\ntypecheck = "{checker}"\n{more}'


def put_program(root: Path, name: str, script: str) -> None:
    """Install a checker of the test's own: a shell script that counts its runs in `.venv/runs`."""
    program = root / ".venv" / "bin" / name
    program.write_text(f'#!/bin/sh\necho "$@" >> "{root}/.venv/runs"\n{script}\n')
    program.chmod(0o755)


def runs(root: Path) -> list[str]:
    file = root / ".venv" / "runs"
    return file.read_text().splitlines() if file.exists() else []


def error(root: Path, said: Reporter) -> str:
    with pytest.raises(StepFailed) as raised:
        typecheck.typecheck(root, said)
    return raised.value.printed


@pytest.mark.parametrize("text", ["", "[tool.jr2]\n", "[tool]\njr2 = 1\n"])
def test_no_checker_is_named(make_instance: MakeInstance, said: Reporter, text: str) -> None:
    root = make_instance({"pyproject.toml": text})

    assert error(root, said) == (
        "error: this instance's pyproject.toml has no [tool.jr2] typecheck — `jr2 init` scaffolds "
        "one, and `jr2 up` typechecks the folder before it builds anything"
    )


def test_a_checker_that_is_not_known(make_instance: MakeInstance, said: Reporter) -> None:
    root = make_instance({"pyproject.toml": project("tsc")})

    assert error(root, said) == (
        "error: this instance's pyproject.toml has a [tool.jr2] typecheck that jr2 does not know "
        "('tsc') — it runs mypy, basedpyright, pyright, ty, pyrefly"
    )


@pytest.mark.parametrize("checker", typecheck.CHECKERS)
def test_a_checker_that_is_not_installed(
    make_instance: MakeInstance, said: Reporter, checker: str
) -> None:
    root = make_instance({"pyproject.toml": project(checker)})

    assert error(root, said) == (
        f"error: this instance's type checker ({checker}) is missing — install its dependencies "
        "(uv, poetry, or pdm), then re-run `jr2 up`."
    )
    assert said.lines == []


@pytest.mark.parametrize(
    ("required", "words"),
    [
        (
            ">=3.12",
            ' requires Python ">=3.12", and the Kit images run Python 3.11.2 — make '
            'requires-python admit it, such as ">=3.11"',
        ),
        (
            ">=3.11.4",
            ' requires Python ">=3.11.4", and the Kit images run Python 3.11.2 — make '
            'requires-python admit it, such as ">=3.11"',
        ),
        ("three", " has a requires-python that is no specifier"),
    ],
)
def test_the_python_of_the_images_must_be_admitted(
    make_instance: MakeInstance, said: Reporter, required: str, words: str
) -> None:
    text = project("ty").replace(">=3.11", required)
    root = make_instance({"pyproject.toml": text})
    put_program(root, "ty", "")

    assert error(root, said) == f"error: {root}/pyproject.toml{words}"


@pytest.mark.parametrize("required", [">=3.10", ">=3.11,<3.14", "==3.11.*"])
def test_a_range_that_admits_it(make_instance: MakeInstance, said: Reporter, required: str) -> None:
    root = make_instance({"pyproject.toml": project("ty").replace(">=3.11", required)})
    put_program(root, "ty", "")

    typecheck.typecheck(root, said)

    assert said.lines == ["typecheck: ty (the instance's own checker)"]


def test_what_the_checker_says_stands_below_the_refusal(
    make_instance: MakeInstance, said: Reporter
) -> None:
    root = make_instance({"pyproject.toml": project("pyright")})
    put_program(root, "pyright", "echo 'a.py:1: error'; echo; echo '  more'; echo chat >&2; exit 1")

    for _ in range(2):
        with pytest.raises(Refusal) as raised:
            typecheck.typecheck(root, said)

        assert raised.value.printed == (
            "refusing: this instance does not typecheck — nothing was built and nothing was "
            "applied\n  a.py:1: error\n    more"
        )
    assert runs(root) == [f"--pythonpath {root}/.venv/bin/python --level error"] * 2


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'ty.toml: no such rule' >&2; exit 2", "code 2\n  ty.toml: no such rule"),
        ("echo 'a.py:1: error'; kill -9 $$", "signal 9"),
        ("exit 1", "code 1"),
        (
            "printf 'Traceback (most recent call last):\\n  File x\\nOSError: no\\n'; exit 2",
            "code 2\n  OSError: no",
        ),
    ],
)
def test_a_checker_that_does_not_run_is_no_type_error(
    make_instance: MakeInstance, said: Reporter, script: str, words: str
) -> None:
    root = make_instance({"pyproject.toml": project("ty")})
    put_program(root, "ty", script)

    assert error(root, said) == (
        "error: this instance's type checker (ty) did not run to its end: it ended with the "
        + words
    )


@pytest.mark.parametrize("checker", ["mypy", "ty"])
def test_an_environment_that_is_broken(
    make_instance: MakeInstance, said: Reporter, checker: str
) -> None:
    """The program names an interpreter that is gone; what a removed Python leaves behind."""
    root = make_instance({"pyproject.toml": project(checker)})
    program = root / ".venv" / "bin" / checker
    program.write_text("#!/gone/python\n")
    program.chmod(0o755)
    (root / kit.INTERPRETER).unlink()
    (root / kit.INTERPRETER).symlink_to("/gone/python")

    assert error(root, said) == (
        f"error: this instance's type checker ({checker}) is missing — install its dependencies "
        "(uv, poetry, or pdm), then re-run `jr2 up`."
    )


def test_an_environment_without_the_module_of_mypy(
    make_instance: MakeInstance, said: Reporter
) -> None:
    root = make_instance({"pyproject.toml": project("mypy")})
    put_program(root, "mypy", "exit 0")
    for shared in (root / ".venv").rglob("this_one.pth"):
        shared.unlink()

    assert error(root, said) == (
        "error: this instance's type checker (mypy) is missing — install its dependencies "
        "(uv, poetry, or pdm), then re-run `jr2 up`."
    )


def test_no_value_reaches_a_checker(
    make_instance: MakeInstance, said: Reporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", CANARY)
    monkeypatch.setenv("MYPYPATH", CANARY)
    root = make_instance({"pyproject.toml": project("ty")})
    put_program(root, "ty", f'env > "{root}/.venv/seen"')

    typecheck.typecheck(root, said)

    seen = (root / ".venv" / "seen").read_text()
    assert CANARY not in seen
    assert f"VIRTUAL_ENV={root}/.venv\n" in seen
    assert f"PATH={root}/.venv/bin:{os.environ['PATH']}" in seen


def test_a_check_that_passed_is_not_repeated(make_instance: MakeInstance, said: Reporter) -> None:
    root = make_instance({"pyproject.toml": project("ty"), "workflows/a.py": "x = 1\n"})
    put_program(root, "ty", "")

    for _ in range(3):
        typecheck.typecheck(root, said)

    assert len(runs(root)) == 1
    assert said.lines == ["typecheck: ty (the instance's own checker)"] * 3
    assert (root / ".jr2" / ".gitignore").read_text() == "*\n"


def edit_source(root: Path) -> None:
    (root / "workflows" / "a.py").write_text("x = 2\n")


def add_source(root: Path) -> None:
    (root / "beside.pyi").write_text("")


def edit_settings(root: Path) -> None:
    (root / "mypy.ini").write_text("[mypy]\n")


def edit_lock(root: Path) -> None:
    (root / "uv.lock").write_text("version = 1\n")


def install(root: Path) -> None:
    site = next((root / ".venv" / "lib").glob("python3*/site-packages"))
    (site / "ty-2.dist-info").mkdir()
    (site / "ty-2.dist-info" / "RECORD").write_text("")


def edit_linked(root: Path) -> None:
    site = next((root / ".venv" / "lib").glob("python3*/site-packages"))
    linked = root.parent / "linked"
    linked.mkdir()
    (linked / "linked.py").write_text("y = 1\n")
    (site / "linked.pth").write_text(str(linked))


def change_python(root: Path) -> None:
    (root / ".venv" / "pyvenv.cfg").write_text("home = /elsewhere\n")


@pytest.mark.parametrize(
    "change",
    [
        edit_source,
        add_source,
        edit_settings,
        edit_lock,
        install,
        edit_linked,
        change_python,
        lambda root: (root / ".jr2" / "typecheck.json").write_text("{"),
        lambda root: (root / ".jr2" / "typecheck.json").write_text("[]"),
    ],
)
def test_a_change_repeats_it(make_instance: MakeInstance, said: Reporter, change: object) -> None:
    assert callable(change)
    root = make_instance({"pyproject.toml": project("ty"), "workflows/a.py": "x = 1\n"})
    put_program(root, "ty", "")
    typecheck.typecheck(root, said)

    change(root)
    typecheck.typecheck(root, said)
    typecheck.typecheck(root, said)

    assert len(runs(root)) == 2


def test_another_checker_is_another_check(make_instance: MakeInstance, said: Reporter) -> None:
    root = make_instance({"pyproject.toml": project("ty")})
    first = typecheck.fingerprint(root, typecheck.CHECKERS["ty"])

    assert typecheck.fingerprint(root, typecheck.CHECKERS["ty"]) == first
    assert typecheck.fingerprint(root, typecheck.CHECKERS["pyrefly"]) != first


def test_environments_and_caches_are_no_sources(make_instance: MakeInstance) -> None:
    root = make_instance({"pyproject.toml": project("ty")})
    first = typecheck.fingerprint(root, typecheck.CHECKERS["ty"])

    for place in (".venv/x.py", "__pycache__/x.py", ".mypy_cache/x.py", "env/x.py"):
        (root / place).parent.mkdir(exist_ok=True)
        (root / place).write_text("")
    (root / "env" / "pyvenv.cfg").touch()

    assert typecheck.fingerprint(root, typecheck.CHECKERS["ty"]) == first


NEWER = "type Alias = int\n"
UNREADABLE = "def f(:\n"


@pytest.mark.skipif("sys.version_info < (3, 12)", reason="this Python knows no newer syntax")
def test_newer_syntax_is_refused_with_its_place(
    make_instance: MakeInstance, said: Reporter
) -> None:
    root = make_instance({"pyproject.toml": project("ty"), "workflows/a.py": f"\n{NEWER}"})
    put_program(root, "ty", "")

    with pytest.raises(Refusal) as raised:
        typecheck.typecheck(root, said)

    assert raised.value.printed == (
        "refusing: workflows/a.py line 2 is no Python 3.11 (Type statement is only supported in "
        "Python 3.12 and greater), and the Kit images run Python 3.11.2"
    )
    assert not (root / ".jr2").exists()


def test_a_file_that_no_python_reads_is_left_to_the_checker(make_instance: MakeInstance) -> None:
    root = make_instance({"workflows/a.py": UNREADABLE, "workflows/b.py": "'\\d'\n"})

    assert typecheck.newer_syntax(root, kit.read_pyproject(root)) is None


def test_what_is_no_file_stops_no_checker(make_instance: MakeInstance, said: Reporter) -> None:
    """The real mypy: it reads each source that it finds, and a pipe without end."""
    root = make_instance(
        {
            "pyproject.toml": project("mypy"),
            "jr2_config.py": "x = 1\n",
            "workflows/a.py": "y: int = 1\n",
        }
    )
    put_program(root, "mypy", "exit 1")
    os.mkfifo(root / "workflows" / "f.py")
    (root / "workflows" / ".#a.py").symlink_to("nobody@host.123")
    (root / "workflows" / "l.py").symlink_to("gone.py")

    typecheck.typecheck(root, said)

    assert said.lines == ["typecheck: mypy (the instance's own checker)"]
    assert (root / ".jr2" / "typecheck.json").is_file()


def test_a_source_whose_name_is_no_text_is_named(
    make_instance: MakeInstance, said: Reporter
) -> None:
    root = make_instance({"pyproject.toml": project("ty")})
    put_program(root, "ty", "exit 0")
    with open(os.fsencode(root) + b"/\xff.py", "w"):
        pass

    assert error(root, said) == (
        "error: typecheck: '\\udcff.py' has a name that is not UTF-8 — rename it"
    )


def test_a_source_that_cannot_be_read_is_named(
    make_instance: MakeInstance, said: Reporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_instance({"pyproject.toml": project("ty"), "own.py": ""})
    put_program(root, "ty", "exit 0")
    reads = Path.read_bytes

    def denied(path: Path) -> bytes:
        # Root, as whom the tests run, may read everything.
        if path.name == "own.py":
            raise PermissionError(13, "Permission denied", str(path))
        return reads(path)

    monkeypatch.setattr(Path, "read_bytes", denied)

    assert error(root, said) == (
        f"error: typecheck: {root / 'own.py'} cannot be read: Permission denied — let yourself "
        "read it"
    )
