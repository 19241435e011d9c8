"""The type check of an Instance: its own checker, from its own environment.

`[tool.jr2] typecheck` in pyproject.toml names the checker. It runs as the user runs it, in the
Instance folder and with the Instance's packages, but with an environment of its own, so that no
value of `.env` reaches it or its plugins. A check that passed is not repeated while the sources,
the environment and the checker stay the same: their digest stands in `.jr2/typecheck.json`. A check
that failed is always repeated.

Syntax that only a newer Python knows than that of the Kit images is refused here too, as far as
`ast` sees it; a checker that targets 3.11 says the same in its own words, before.

Source: seed 001 (Rules), spec/authoring.md §5, design §3, §3.1 and §8.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from jr2 import names
from jr2.errors import Refusal, StepFailed

from . import processes
from .facts import kit
from .report import Reporter

_LIMIT: Final = 900.0
"""Seconds that a checker may take."""
_STAMP: Final = Path(".jr2/typecheck.json")
_STAMP_FORM: Final = "1"
_KEPT: Final = frozenset(
    {"HOME", "LANG", "LANGUAGE", "TMPDIR", "TZ", "XDG_CACHE_HOME"}
    # A checker that comes as a wrapper may fetch itself on its first run.
    | {"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}
    | {"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"}
)
_INSTALLED: Final = ("site-packages", "dist-packages")
"""Folders that an installer fills, which says in a RECORD what it did."""
_CONFIG_FILES: Final = (
    "pyproject.toml",
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "pylock.toml",
    "mypy.ini",
    ".mypy.ini",
    "setup.cfg",
    "tox.ini",
    "pyrightconfig.json",
    ".basedpyright/baseline.json",
    "ty.toml",
    "pyrefly.toml",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """A type checker that an Instance may choose.

    Args:
        name: its name in `[tool.jr2] typecheck`, which is its distribution and its program.
        arguments: what it is called with in the Instance folder; `{python}` is the interpreter.
    """

    name: str
    arguments: tuple[str, ...]


CHECKERS: Final[Mapping[str, Checker]] = {
    checker.name: checker
    for checker in (
        Checker(
            name="mypy",
            arguments=("--no-pretty", "--show-column-numbers", "--no-error-summary", "."),
        ),
        Checker(name="basedpyright", arguments=("--pythonpath", "{python}", "--level", "error")),
        Checker(name="pyright", arguments=("--pythonpath", "{python}", "--level", "error")),
        Checker(
            name="ty", arguments=("check", "--python", "{python}", "--output-format", "concise")
        ),
        Checker(
            name="pyrefly",
            arguments=(
                "check",
                "--python-interpreter-path",
                "{python}",
                "--output-format",
                "min-text",
                "--summary=none",
            ),
        ),
    )
}


def typecheck(root: Path, reporter: Reporter) -> None:
    """Typecheck an Instance with its own checker, unless nothing changed since it passed.

    Args:
        root: the Instance folder, with its environment in `.venv`.
        reporter: gets the `typecheck:` line.

    Raises:
        StepFailed: the folder names no checker, its checker is not installed, or a source cannot be
            read.
        Refusal: the folder does not typecheck, or it needs a newer Python than the Kit images have.
    """
    project = kit.read_pyproject(root)
    checker = chosen(root, project)
    require_image_python(root, project)
    reporter.line(f"typecheck: {checker.name} (the instance's own checker)", code="typecheck")
    try:
        digest = fingerprint(root, checker)
    except OSError as error:
        raise StepFailed(
            f"typecheck: {error.filename} cannot be read: {error.strerror} — let yourself read it"
        ) from error
    if _passed(root) == digest:
        return
    reporter.progress(f"typecheck: {checker.name} runs")
    try:
        _run(root, checker)
    finally:
        reporter.progress(None)
    problem = newer_syntax(root, project)
    if problem is not None:
        raise Refusal(problem)
    _keep(root, digest)


def chosen(root: Path, project: Mapping[str, Any]) -> Checker:
    """Return the checker that pyproject.toml names, and that is installed.

    Raises:
        StepFailed: none is named, another one is named, or it is not installed.
    """
    name = kit.table(project, "tool", "jr2").get("typecheck")
    if name is None:
        raise StepFailed(
            "this instance's pyproject.toml has no [tool.jr2] typecheck — `jr2 init` scaffolds "
            "one, and `jr2 up` typechecks the folder before it builds anything"
        )
    checker = CHECKERS.get(name) if isinstance(name, str) else None
    if checker is None:
        raise StepFailed(
            f"this instance's pyproject.toml has a [tool.jr2] typecheck that jr2 does not know "
            f"({name!r}) — it runs {', '.join(CHECKERS)}"
        )
    if not _program(root, checker).exists():
        raise StepFailed(_missing(checker))
    return checker


def require_image_python(root: Path, project: Mapping[str, Any]) -> None:
    """Refuse an Instance whose `requires-python` leaves out the Python of the Kit images.

    Raises:
        StepFailed: it does, or it is no version specifier.
    """
    required = kit.table(project, "project").get("requires-python")
    if required in (None, ">=3.11"):
        return
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    file = root / "pyproject.toml"
    try:
        admitted = SpecifierSet(required).contains(names.IMAGE_PYTHON_RELEASE)
    except (InvalidSpecifier, TypeError, AttributeError) as error:
        raise StepFailed(f"{file} has a requires-python that is no specifier") from error
    if not admitted:
        raise StepFailed(
            f'{file} requires Python "{required}", and the Kit images run Python {names.IMAGE_PYTHON_RELEASE} — '
            'make requires-python admit it, such as ">=3.11"'
        )


def newer_syntax(root: Path, project: Mapping[str, Any]) -> str | None:
    """Return the refusal for the first own file that Python 3.11 cannot read, or `None`.

    A file that no Python reads is left to the checker and to the import.
    """
    # The package of the Assembly brings an HTTP client: it is loaded when a check was not skipped.
    from .assembly.own_files import excluded_globs, own_entries

    for entry in own_entries(root, excluded_globs(root, project)):
        path = PurePosixPath(entry.path).relative_to(names.ASSEMBLY_INSTANCE)
        if path.suffix != ".py" or not isinstance(entry.content, bytes):
            continue
        error = _syntax_error(entry.content, names.IMAGE_PYTHON)
        if error is not None and _syntax_error(entry.content, None) is None:
            return (
                f"{path} line {error.lineno} is no Python {names.IMAGE_PYTHON[0]}.{names.IMAGE_PYTHON[1]} "
                f"({error.msg}), and the Kit images run Python {names.IMAGE_PYTHON_RELEASE}"
            )
    return None


def fingerprint(root: Path, checker: Checker) -> str:
    """Return a digest of all that the answer of a checker depends on.

    Its sources and settings by their content; the installed distributions by name, version and the
    time of their record; what is installed as a link to a folder (a Kit from a checkout) by the
    content of its sources.

    Raises:
        StepFailed: the name of a source is not UTF-8.
        OSError: a source cannot be read.
    """
    digest = hashlib.sha256()

    def feed(*parts: str | bytes) -> None:
        for part in parts:
            data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
            digest.update(len(data).to_bytes(8, "big"))
            digest.update(data)

    feed(_STAMP_FORM, checker.name, *checker.arguments, kit.COMMAND_VERSION)
    for name in _CONFIG_FILES:
        file = root / name
        feed(name, file.read_bytes() if file.is_file() else b"")
    for path in _sources(root):
        if not _is_unicode(path):
            raise StepFailed(
                f"typecheck: {os.path.relpath(path, root)!a} has a name that is not UTF-8 — "
                "rename it"
            )
        feed(path, Path(path).read_bytes())
    environment = root / ".venv"
    feed(os.path.realpath(environment / "bin" / "python"))
    settings = environment / "pyvenv.cfg"
    feed(settings.read_bytes() if settings.is_file() else b"")
    for site in sorted((environment / "lib").glob("python3*/site-packages")):
        linked = kit.path_entries(site)
        for installed in (site, *(folder for folder in linked if folder.name in _INSTALLED)):
            for record in sorted(installed.glob("*.dist-info/RECORD")):
                status = record.stat()
                feed(record.parent.name, f"{status.st_mtime_ns} {status.st_size}")
        for folder in linked:
            if folder.name not in _INSTALLED:
                for path in _sources(folder):
                    feed(path, Path(path).read_bytes())
    return digest.hexdigest()


def _sources(folder: Path) -> Iterator[str]:
    """Yield the Python sources below a folder, in an order of their own, without environments."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if _is_own(place, name))
        for name in sorted(files):
            path = os.path.join(place, name)
            # An editor's lock is a hidden link to nothing, and a pipe would never end.
            if _is_source(name) and os.path.isfile(path):
                yield path


def _is_unicode(path: str) -> bool:
    """Say whether a checker could write the name of a file."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_source(name: str) -> bool:
    return name.endswith((".py", ".pyi")) and not name.startswith(".")


def _unreadable(root: Path) -> Iterator[str]:
    """Yield what has the name of a source and is a pipe or a link to nothing, from the folder."""
    for place, folders, files in os.walk(root):
        folders[:] = [name for name in folders if _is_own(place, name)]
        for name in sorted(files):
            path = os.path.join(place, name)
            if _is_source(name) and not os.path.isfile(path):
                yield os.path.relpath(path, root)


def _is_own(place: str, name: str) -> bool:
    """Say whether a folder can hold sources of its own: it is no environment and no cache."""
    return (
        not name.startswith(".")
        and name not in ("__pycache__", "node_modules")
        and not os.path.exists(os.path.join(place, name, "pyvenv.cfg"))
    )


def _program(root: Path, checker: Checker) -> Path:
    return root / ".venv" / "bin" / checker.name


def _run(root: Path, checker: Checker) -> None:
    python = root / kit.INTERPRETER
    program: list[str | Path] = [_program(root, checker)]
    if checker.name == "mypy":
        # By the interpreter and isolated: a module of the Instance cannot stand in its way.
        program = [python, "-I", "-m", "mypy"]
        # It would read a pipe for ever, and the walk names a link to nothing with what to do.
        for name in _unreadable(root):
            program += ["--exclude", f"^{re.escape(name)}$"]
    arguments = [part.format(python=python) for part in checker.arguments]
    if checker.name == "pyrefly" and not _has_settings(root, "pyrefly"):
        # Without settings it checks next to nothing.
        arguments += ["--preset", "default"]
    kept = {n: v for n, v in os.environ.items() if n in _KEPT or n.startswith("LC_")}
    environment = {
        **kept,
        "PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "VIRTUAL_ENV": str(root / ".venv"),
        "NO_COLOR": "1",
    }
    try:
        done = processes.run([*program, *arguments], env=environment, cwd=root, timeout=_LIMIT)
    except subprocess.TimeoutExpired as error:
        raise StepFailed(f"typecheck: {checker.name} did not end within {_LIMIT:.0f}s") from error
    except FileNotFoundError as error:
        # The program is there: its interpreter, or the one that it names, is not.
        raise StepFailed(_missing(checker)) from error
    except OSError as error:
        raise StepFailed(f"typecheck: cannot run {program[0]}: {error.strerror}") from error
    if not done.returncode:
        return
    if "No module named mypy" in done.stderr:
        raise StepFailed(_missing(checker))
    crashed = done.stdout.startswith("Traceback (most recent call last):")
    if done.returncode < 0 or crashed or not done.stdout.strip():
        # Each of them says a type error on stdout, and why it cannot start on stderr; mypy says on
        # stdout too why it stopped, with its own lines, which are nobody's here.
        how = f"signal {-done.returncode}" if done.returncode < 0 else f"code {done.returncode}"
        raise StepFailed(
            "\n".join(
                [
                    f"this instance's type checker ({checker.name}) did not run to its end: it "
                    f"ended with the {how}",
                    *_indented(done.stdout.splitlines()[-1] if crashed else done.stderr),
                ]
            )
        )
    raise Refusal(
        "\n".join(
            [
                "this instance does not typecheck — nothing was built and nothing was applied",
                *_indented(done.stdout),
            ]
        )
    )


def _missing(checker: Checker) -> str:
    return (
        f"this instance's type checker ({checker.name}) is missing — install its dependencies "
        "(uv, poetry, or pdm), then re-run `jr2 up`."
    )


def _indented(words: str) -> list[str]:
    return [f"  {line}" for line in words.splitlines() if line.strip()]


def _has_settings(root: Path, tool: str) -> bool:
    """Whether an Instance says anything about a checker, in a file of its own or in pyproject."""
    if (root / f"{tool}.toml").exists():
        return True
    return tool in kit.table(kit.read_pyproject(root), "tool")


def _passed(root: Path) -> str | None:
    try:
        kept = json.loads((root / _STAMP).read_bytes())
    except (OSError, ValueError):
        return None
    return kept.get("passed") if isinstance(kept, dict) else None


def _keep(root: Path, digest: str) -> None:
    """Note that this state passed; a folder that cannot be written is checked each time."""
    stamp = root / _STAMP
    try:
        stamp.parent.mkdir(exist_ok=True)
        ignore = stamp.parent / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
        temporary = stamp.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(json.dumps({"passed": digest}) + "\n", encoding="utf-8")
        temporary.replace(stamp)
    except OSError:
        return


def _syntax_error(source: bytes, version: tuple[int, int] | None) -> SyntaxError | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(source, feature_version=version)
        except SyntaxError as error:
            return error
        except ValueError:
            return None
    return None
