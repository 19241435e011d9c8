"""One Kit version: the copies that are compared, and the words and the fix of a mismatch."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import jr2
from jr2 import names
from jr2.errors import StepFailed
from jr2_infra.facts import instance, kit

if TYPE_CHECKING:
    from tests.unit.infra.conftest import MakeInstance

PACKAGE = Path(jr2.__file__).resolve().parent
REPOSITORY = PACKAGE.parents[3]
EXACT = (
    '[project]\nname = "x"\ndependencies = ["jr2==1.0.0.dev0"]\n'
    '[dependency-groups]\ndev = ["jr2_cli == 1.0.0.dev0", {include-group = "other"}]\nother = []\n'
)


def site(root: Path) -> Path:
    return next((root / ".venv" / "lib").glob("python3*/site-packages"))


def put_copy(root: Path, version: str) -> Path:
    """Put another `jr2` before the one that the test environment has."""
    package = site(root) / "jr2"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "names.py").write_text(f'KIT_VERSION: Final = "{version}"\n')
    return package


def refused(root: Path) -> str:
    with pytest.raises(StepFailed) as raised:
        kit.check_kit_version(root)
    return raised.value.printed


def test_one_copy_of_the_commands_version_agrees(make_instance: MakeInstance) -> None:
    root = make_instance({"pyproject.toml": EXACT})

    found = kit.check_kit_version(root)

    assert found.agrees
    assert found.resolved == found.running == kit.KitCopy(path=PACKAGE, version=names.KIT_VERSION)
    assert (found.kit_pin, found.cli_pin) == ("1.0.0.dev0", "1.0.0.dev0")


def test_nothing_is_installed(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(EXACT)

    assert refused(tmp_path) == (
        "error: Kit version mismatch — an Instance has one (ADR-0056):\n"
        f"  jr2 does not resolve from {tmp_path}\n"
        f"  this jr2 (1.0.0.dev0) runs against {PACKAGE} (1.0.0.dev0), and {tmp_path}/.venv is not "
        "there\n"
        f'  install the Instance\'s dependencies ({tmp_path}/pyproject.toml pins "jr2" and '
        '"jr2-cli" at one exact version)'
    )


def in_its_place(put: Callable[[Path], object]) -> Callable[[Path], None]:
    """Return what takes an environment away and puts something else there."""

    def break_it(venv: Path) -> None:
        shutil.rmtree(venv)
        put(venv)

    return break_it


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (lambda venv: shutil.rmtree(venv), " is not there"),
        (in_its_place(lambda venv: venv.touch()), " is no folder — remove it"),
        (in_its_place(lambda venv: venv.symlink_to("/gone")), " is a link to nothing — remove it"),
        (
            in_its_place(lambda venv: venv.symlink_to(venv.name)),
            " is a link to nothing — remove it",
        ),
        (lambda venv: (venv / "bin" / "python").unlink(), "/bin/python is not there"),
        (
            lambda venv: (
                (venv / "bin" / "python").unlink(),
                (venv / "bin" / "python").symlink_to("/gone/python"),
            ),
            "/bin/python is not there (a link to nothing)",
        ),
        (lambda venv: shutil.rmtree(venv / "lib"), "/bin/python finds no jr2"),
    ],
)
def test_a_broken_environment_is_to_be_installed(
    make_instance: MakeInstance, break_it: Callable[[Path], object], words: str
) -> None:
    root = make_instance({"pyproject.toml": EXACT})
    break_it(root / ".venv")

    lines = refused(root).splitlines()

    assert lines[1] == f"  jr2 does not resolve from {root}"
    assert lines[2].endswith(f"{PACKAGE} (1.0.0.dev0), and {root}/.venv{words}")
    assert lines[3].startswith("  install the Instance's dependencies (")


def test_requirements_without_a_version_are_to_be_installed(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(EXACT.replace("== 1.0.0.dev0", "").replace("==", ">="))

    assert refused(tmp_path).splitlines()[3] == (
        f'  install the Instance\'s dependencies ({tmp_path}/pyproject.toml names "jr2-cli")'
    )


def test_an_interpreter_that_finds_nothing_is_to_be_installed(make_instance: MakeInstance) -> None:
    """The system's Python was upgraded: the packages lie in the folder of the one before."""
    root = make_instance({"pyproject.toml": EXACT})
    site(root).parent.rename(root / ".venv" / "lib" / "python3.1")
    kit.check_kit_version(root)

    with pytest.raises(StepFailed) as raised:
        instance.read_instance(root)

    lines = raised.value.printed.splitlines()
    assert lines[1] == f"  jr2 does not resolve from {root}"
    assert lines[2].endswith(f", and {root}/.venv/bin/python finds no jr2")
    assert lines[3].startswith("  install the Instance's dependencies (")


def test_another_copy_and_two_pins(make_instance: MakeInstance) -> None:
    root = make_instance({"pyproject.toml": EXACT.replace("jr2==1.0.0.dev0", "jr2==1.0.1")})
    other = put_copy(root, "1.0.1")

    assert refused(root) == (
        "error: Kit version mismatch — an Instance has one (ADR-0056):\n"
        f"  jr2 resolves to {other} (1.0.1)\n"
        f"  this jr2 (1.0.0.dev0) runs against {PACKAGE} (1.0.0.dev0)\n"
        f'  pin "jr2" and "jr2-cli" at ONE exact version in {root}/pyproject.toml and reinstall'
    )


def test_an_instance_without_the_command(make_instance: MakeInstance) -> None:
    root = make_instance({"pyproject.toml": '[project]\ndependencies = ["jr2 >= 1"]\n'})
    put_copy(root, "1.0.1")

    assert refused(root).splitlines()[-1] == (
        f'  add "jr2-cli==1.0.1" to the dev group in {root}/pyproject.toml and reinstall — the '
        "Instance's own jr2 then runs"
    )


def test_a_copy_of_another_version_than_the_command(
    make_instance: MakeInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only `jr2` was upgraded: both import one copy, and the command is older."""
    root = make_instance({"pyproject.toml": EXACT.replace("jr2==1.0.0.dev0", "jr2>=1")})
    monkeypatch.setattr(kit, "COMMAND_VERSION", "0.9.0")

    assert refused(root).splitlines()[1:3] == [
        f"  jr2 resolves to {PACKAGE} (1.0.0.dev0)",
        f"  this jr2 (0.9.0) runs against {PACKAGE} (1.0.0.dev0)",
    ]


def test_a_link_is_the_copy_that_it_names(make_instance: MakeInstance) -> None:
    root = make_instance()
    (site(root) / "jr2").symlink_to(PACKAGE)

    assert kit.read_kit(root).agrees


def test_the_checkout_is_found_from_its_package(tmp_path: Path) -> None:
    package = tmp_path / "runtime" / "kit" / "src" / "jr2"
    package.mkdir(parents=True)
    (tmp_path / "runtime" / "kit" / "pyproject.toml").touch()

    assert kit.find_checkout(package) is None
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "build-kit-images").touch()
    assert kit.find_checkout(package) == tmp_path


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (
            "pyproject.toml",
            "cannot be read: Too many levels of symbolic links — make it a file that you may read",
        ),
        (
            "/gone/x",
            "is a link to /gone/x, and nothing is there — remove the link, or put the file there",
        ),
    ],
)
def test_a_pyproject_that_leads_nowhere(tmp_path: Path, target: str, words: str) -> None:
    (tmp_path / "pyproject.toml").symlink_to(target)

    with pytest.raises(StepFailed) as raised:
        kit.read_pyproject(tmp_path)

    assert raised.value.printed == f"error: {tmp_path / 'pyproject.toml'} {words}"


def test_a_pyproject_that_is_no_toml(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project")

    with pytest.raises(StepFailed, match=r"^\S+/pyproject\.toml is not TOML: "):
        kit.read_pyproject(tmp_path)


def test_the_command_has_the_version_of_its_distribution() -> None:
    for place in ("infra", "cli", "runtime/kit"):
        project = tomllib.loads((REPOSITORY / place / "pyproject.toml").read_text())["project"]

        assert project["version"] == kit.COMMAND_VERSION == names.KIT_VERSION
