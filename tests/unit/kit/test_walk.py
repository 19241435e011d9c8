"""The walk of an Instance folder: what loads, and the words for what does not."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jr2 import masking, walk
from jr2.walk import Problem
from jr2.walk import modules as found_modules

MACHINE = """\
from jr2 import Context, Machine


class Ctx(Context):
    pass


m = Machine({id!r}, context=Ctx, start=lambda i: Ctx())
m.state("waiting", initial=True)
machine = m.build()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An Instance folder; what the walk left in this process is taken away after."""
    modules, path, hooks = dict(sys.modules), list(sys.path), list(sys.path_hooks)
    (tmp_path / "workflows").mkdir()
    yield tmp_path
    for name in set(sys.modules) - set(modules):
        if name.split(".")[0] in (found_modules.PACKAGE, found_modules.CONFIG_MODULE, "beside"):
            del sys.modules[name]
    sys.path[:], sys.path_hooks[:] = path, hooks
    found_modules._opened.clear()


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def problems(folder: Path, files: dict[str, str]) -> list[str]:
    write(folder, files)
    return [p.prefix + p.message for p in walk.load_workflows(folder).problems]


# --- Workflows --------------------------------------------------------------------------------------
def test_workflows_are_the_stems_in_order(folder: Path) -> None:
    write(
        folder,
        {
            "workflows/zeta.py": MACHINE.format(id="z"),
            "workflows/my-flow.py": MACHINE.format(id="m"),
            "workflows/2nd.py": MACHINE.format(id="s"),
            "workflows/_helpers.py": "raise SystemExit",
            "workflows/notes.txt": "",
            "workflows/deep/inner.py": "raise SystemExit",
        },
    )

    loaded = walk.load_workflows(folder)

    assert loaded.problems == ()
    assert [(w.name, w.file, w.machine.id) for w in loaded.workflows] == [
        ("2nd", "workflows/2nd.py", "s"),
        ("my-flow", "workflows/my-flow.py", "m"),
        ("zeta", "workflows/zeta.py", "z"),
    ]


def test_a_folder_without_workflows_has_none(tmp_path: Path, folder: Path) -> None:
    (folder / "workflows").rmdir()

    assert walk.load_workflows(folder).workflows == ()


def test_modules_import_each_other_and_packages_beside(folder: Path) -> None:
    write(
        folder,
        {
            "workflows/_names.py": "from ..beside import ONE\nID = ONE + '!'\n",
            "workflows/first.py": "from ._names import ID\n" + MACHINE.format(id="first"),
            "workflows/second.py": "import beside\nfrom .first import machine, ID\n"
            "assert ID == beside.ONE + '!'\n",
            "beside/__init__.py": "ONE = 'one'\n",
        },
    )

    loaded = walk.load_workflows(folder)

    assert loaded.problems == ()
    first, second = loaded.workflows
    assert first.machine is second.machine


def test_the_code_of_before_never_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edit within one second that keeps the size: bytecode would still be taken for fresh."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = folder / "workflows" / "one.py"
    ids = []
    for text in ("a", "b"):
        write(folder, {"workflows/one.py": MACHINE.format(id=text)})
        os.utime(file, (1_700_000_000, 1_700_000_000))
        ids += [workflow.machine.id for workflow in walk.load_workflows(folder).workflows]
        found_modules._opened.clear()
        sys.path.remove(str(folder))

    assert ids == ["a", "b"]
    assert not list(folder.rglob("__pycache__"))


def test_a_distribution_wins_over_a_package_beside(folder: Path) -> None:
    found = problems(
        folder,
        {
            "pydantic/__init__.py": "raise SystemExit",
            "json.py": "raise SystemExit",
            "workflows/one.py": "import json, pydantic\n" + MACHINE.format(id="one"),
        },
    )

    assert found == []


def test_a_module_that_fails_is_named_with_the_users_line(folder: Path) -> None:
    found = problems(
        folder,
        {
            "workflows/_deep.py": "def f():\n    return {}['k']\n",
            "workflows/a.py": "import not_there_at_all\n",
            "workflows/b.py": "from ._deep import f\nf()\n",
            "workflows/c.py": "def f(:\n",
            "workflows/d.py": "import sys\nsys.exit('gone')\n",
            "workflows/e.py": "raise ValueError\n",
            "workflows/f.py": (
                "class E(Exception):\n    def __str__(self): return 1 / 0\nraise E()\n"
            ),
        },
    )

    assert found == [
        'error: workflow "a": workflows/a.py did not load — ModuleNotFoundError: No module named '
        "'not_there_at_all' (workflows/a.py line 1: import not_there_at_all)",
        'error: workflow "b": workflows/b.py did not load — KeyError: '
        "'k' (workflows/_deep.py line 2: return {}['k'])",
        'error: workflow "c": workflows/c.py did not load — SyntaxError: invalid syntax '
        "(workflows/c.py line 1: def f(:)",
        'error: workflow "d": workflows/d.py did not load — SystemExit: gone '
        "(workflows/d.py line 2: sys.exit('gone'))",
        'error: workflow "e": workflows/e.py did not load — ValueError '
        "(workflows/e.py line 1: raise ValueError)",
        'error: workflow "f": workflows/f.py did not load — E (workflows/f.py line 3: raise E())',
    ]


def test_a_module_needs_a_machine(folder: Path) -> None:
    assert problems(folder, {"workflows/a.py": "x = 1\n"}) == [
        'error: workflow "a": workflows/a.py has no "machine" (use `machine = '
        "Machine(…).build()`; start the file's name with `_` when it is no Workflow)"
    ]


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("m", "a Machine that is not built"),
        ("None", "None"),
        ("Machine", "the class Machine"),
        ("lambda: m.build()", "a function"),
        ("'CANARY'", "an object of type str"),
        ("__import__('json')", "a module"),
    ],
)
def test_the_door_rule(folder: Path, value: str, what: str) -> None:
    text = MACHINE.format(id="a").replace("machine = m.build()", f"machine = {value}")

    assert problems(folder, {"workflows/a.py": text}) == [
        f'refusing: workflow "a": `machine` is {what}, but Machine(…).build() did not make it, so '
        "no door reads its input: a run starts with any input, and the Console start form is only "
        "a field for JSON — export what .build() returns (ADR-0033)"
    ]


def test_a_rule_of_the_authoring_surface_is_a_refusal(folder: Path) -> None:
    text = MACHINE.format(id="a").replace(
        'm.state("waiting", initial=True)', 'm.state("x", initial=True); m.state("x")'
    )

    (found,) = problems(folder, {"workflows/a.py": text})

    assert found.startswith('refusing: workflow "a": machine "a"')


def test_a_name_that_no_workflow_can_have(folder: Path) -> None:
    assert problems(folder, {"workflows/my flow.py": ""}) == [
        "error: workflows/my flow.py cannot name a Workflow: a name has letters, digits, `_` and "
        "`-`, and starts with a letter or a digit — rename the file, or start its name with `_` "
        "when it is no Workflow"
    ]


def test_what_is_no_workflow_is_left_alone(folder: Path) -> None:
    """The lock of an editor, a pipe, a socket and a folder have the name of a file, and are none."""
    write(
        folder,
        {
            "workflows/ping.py": MACHINE.format(id="ping"),
            "workflows/dir.py/__init__.py": "raise SystemExit",
            "workflows/.hidden.py": "raise SystemExit",
            "workflows/ping/data.json": "{}",
        },
    )
    (folder / "workflows" / ".#ping.py").symlink_to("nobody@host.123")
    os.mkfifo(folder / "workflows" / "f.py")
    (folder / "workflows" / "l.py").symlink_to("f.py")

    loaded = walk.load_workflows(folder)

    assert loaded.problems == ()
    assert [workflow.name for workflow in loaded.workflows] == ["ping"]
    assert walk.workflow_files(folder) == [folder / "workflows" / "ping.py"]


def test_a_link_to_nothing_is_named(folder: Path) -> None:
    (folder / "workflows" / "l.py").symlink_to("gone.py")

    assert problems(folder, {}) == [
        "error: workflows/l.py is a link to gone.py, and nothing is there — remove the link, or put "
        "the file there"
    ]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda place: place.write_text(""),
            "{place} is no folder — each Workflow is a file in a folder of that name: move what "
            "is there away, and make the folder",
        ),
        (
            lambda place: place.symlink_to("workflows"),
            "{place} cannot be read: Too many levels of symbolic links — make it a folder that "
            "you may read",
        ),
        (
            lambda place: place.symlink_to("/gone"),
            "workflows is a link to /gone, and nothing is there — remove the link, or put the "
            "folder there",
        ),
    ],
)
def test_a_folder_of_workflows_that_is_none_is_named(
    folder: Path, make: Callable[[Path], object], words: str
) -> None:
    place = folder / "workflows"
    place.rmdir()
    make(place)

    assert problems(folder, {}) == [f"error: {words.format(place=place)}"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [(b"a\nb.py", "'workflows/a\\nb.py'"), (b"\xff.py", "'workflows/\\udcff.py'")],
)
def test_a_name_that_no_line_can_hold_is_written_out(folder: Path, name: bytes, shown: str) -> None:
    with open(os.fsencode(folder / "workflows") + b"/" + name, "w"):
        pass
    loaded: list[str] = []

    [problem] = walk.load_workflows(folder, loaded.append).problems

    assert problem.message.startswith(f"{shown} cannot name a Workflow: ")
    assert loaded == []


@pytest.mark.parametrize(
    "line", ["raise KeyboardInterrupt", "raise asyncio.CancelledError", "raise GeneratorExit"]
)
def test_what_user_code_raises_is_a_fault_whatever_it_is(folder: Path, line: str) -> None:
    name = line.removeprefix("raise ").removeprefix("asyncio.")
    text = f"import asyncio\n\n{line}\n"

    assert problems(folder, {"workflows/w.py": text}) == [
        f'error: workflow "w": workflows/w.py did not load — {name} (workflows/w.py line 3: {line})'
    ]
    write(folder, {"jr2_config.py": text})
    found = walk.load_config(folder).problem
    assert found is not None
    assert found.message == f"{folder / 'jr2_config.py'} did not load — {name} (line 3)"


def test_a_module_whose_own_getattr_raises_is_named(folder: Path) -> None:
    text = "def __getattr__(name):\n    raise KeyError(name)\n"

    assert problems(folder, {"workflows/w.py": text}) == [
        'error: workflow "w": workflows/w.py did not load — KeyError: '
        "'machine' (workflows/w.py line 2: raise KeyError(name))"
    ]
    assert config_problem(folder, text).endswith(" did not load — KeyError: 'config' (line 2)")


def test_a_link_to_a_file_is_a_workflow(folder: Path) -> None:
    write(folder, {"shared/one.py": MACHINE.format(id="one")})
    (folder / "workflows" / "l.py").symlink_to("../shared/one.py")

    assert [workflow.name for workflow in walk.load_workflows(folder).workflows] == ["l"]


def test_a_package_never_runs_in_the_place_of_a_file(folder: Path) -> None:
    found = problems(
        folder,
        {
            "workflows/ping.py": MACHINE.format(id="file"),
            "workflows/ping/__init__.py": MACHINE.format(id="package"),
        },
    )

    assert found == [
        'error: workflow "ping": Python imports workflows/ping/__init__.py in the place of '
        "workflows/ping.py — rename one of the two"
    ]


def test_a_workflow_is_described_as_plain_data(folder: Path) -> None:
    write(folder, {"workflows/one.py": MACHINE.format(id="one")})

    (said,) = walk.report_workflows(folder).workflows

    assert (said.name, said.machine_id, said.input) == ("one", "one", None)
    assert len(said.shape) == 12
    assert walk.WalkedWorkflow.model_validate_json(said.model_dump_json()) == said


# --- the config -------------------------------------------------------------------------------------
def config_problem(folder: Path, text: str) -> str:
    write(folder, {"jr2_config.py": text})
    problem = walk.load_config(folder).problem
    assert problem is not None
    return problem.prefix + problem.message


def test_a_config_loads(folder: Path) -> None:
    write(
        folder,
        {
            "jr2_config.py": "from jr2 import Config\nconfig = Config(name='one')\n",
            "workflows/one.py": "from jr2_config import config\nassert config.name == 'one'\n"
            + MACHINE.format(id="one"),
        },
    )

    assert walk.load_config(folder).config is not None
    assert walk.load_workflows(folder).problems == ()


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("x = 1", ' has no "config" (use `config = Config(…)`)'),
        (
            "config = {'name': 'x'}",
            ': "config" is an object of type dict, and not a Config (use `config = Config(…)`)',
        ),
        (
            "from jr2 import *\nconfig = Config(sandbox=Sandbox(resources=Size(cpu='0')))",
            ' at sandbox.resources.cpu: "0" is not more than zero — write a positive quantity, '
            'such as "2Gi" or "1500m"',
        ),
        (
            "token = 'CANARY'\n\n1 / 0",
            " did not load — ZeroDivisionError: division by zero (line 3)",
        ),
        ("def f(:", " did not load — SyntaxError: invalid syntax (line 1)"),
    ],
)
def test_a_config_that_does_not_load(folder: Path, text: str, rest: str) -> None:
    assert config_problem(folder, text) == f"error: {folder}/jr2_config.py{rest}"


def test_the_config_is_found_by_its_place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, {"site/jr2_config.py": "raise SystemExit", "jr2_config.py": "x = 1"})
    monkeypatch.syspath_prepend(str(folder / "site"))

    assert config_problem(folder, "x = 1").endswith('has no "config" (use `config = Config(…)`)')


VALUES = [
    "CANARY\n7hQwvZ-8Zp",
    "CANARY\\t\\x7hQwvZ",
    "CANARY\udcff\udc80x7hQwvZ",
    "CANARY'é\"x7hQwvZ",
    "9c1-CANARY-77f",
]
CARRIERS = [
    ("int(VALUE)", "ValueError"),
    ("{}[VALUE]", "KeyError"),
    ("{}[VALUE[:3]]", "KeyError"),
    ("{}[VALUE[-5:]]", "KeyError"),
    ("open(VALUE)", None),
    ("raise ImportError(VALUE[::-1])", "ImportError"),
    ("raise RuntimeError(VALUE.encode('utf-8', 'surrogateescape').hex())", "RuntimeError"),
    ("import importlib; importlib.import_module(VALUE[:6])", "ModuleNotFoundError"),
    ("getattr(os, VALUE[:6])", "AttributeError"),
    ("import ast; ast.literal_eval(VALUE)", None),
    ("eval(VALUE[:6] if VALUE[0] == 'C' else VALUE[4:10])", "NameError"),
    ("raise SystemExit(VALUE)", "SystemExit"),
    ("from jr2 import Config; Config(name=VALUE)", None),
    ("from jr2 import Config; Config(name=VALUE[:6])", None),
    ("from jr2 import *; Config(sandbox=Sandbox(resources=Size(memory=VALUE[:6])))", None),
    ("from jr2 import Config; Config(**{VALUE[-6:]: 1})", None),
]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(("line", "kind"), CARRIERS)
def test_no_form_and_no_part_of_a_value_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, value: str, line: str, kind: str | None
) -> None:
    text = f"import os\nVALUE = os.environ['A_NAME']\n{line}\n"
    write(folder, {"jr2_config.py": text})
    monkeypatch.setenv("A_NAME", value)

    problem = walk.load_config(folder, {"A_NAME": value}).problem

    assert problem is not None
    said = problem.message.removeprefix(f"{folder}/jr2_config.py").replace(line, "")
    if kind is not None:
        assert said.startswith(f" did not load — {kind} (line 3")
    parts = [value[at : at + 3] for at in range(len(value) - 2)]
    hexed = value.encode("utf-8", "surrogateescape").hex()
    for part in [*parts, value[::-1], hexed]:
        assert part not in said


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "import os\nint(os.environ['A_NAME'])\n",
            "ValueError (line 2: int(os.environ['A_NAME']))",
        ),
        (
            "import os\nx = os.environ['NOT_SET']\n",
            "KeyError: 'NOT_SET' (line 2: x = os.environ['NOT_SET'])",
        ),
        ("x = [\n", "SyntaxError: '[' was never closed (line 1)"),
        (
            "import not_there\n",
            "ModuleNotFoundError: No module named 'not_there' (line 1: import not_there)",
        ),
        ("x = nam\n", "NameError: name 'nam' is not defined (line 1: x = nam)"),
        (
            "import os\nos.nope\n",
            "AttributeError: module 'os' has no attribute 'nope' (line 2: os.nope)",
        ),
        ("int('typed-here')\n", "ValueError (line 1)"),
        ("int(f'{1}typed-here')\n", "ValueError (line 1)"),
        ("int('''\ntyped-here''' + '')\n", "ValueError (line 1)"),
        ("x = len(0)  # typed-here\n", "TypeError (line 1)"),
        ("x = len(123456)\n", "TypeError (line 1)"),
        ("from beside import x\n", "ValueError (beside/__init__.py line 1: x = int(str()))"),
    ],
)
def test_what_is_harmless_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, fault: str
) -> None:
    monkeypatch.setenv("A_NAME", "0123-CANARY")
    write(folder, {"jr2_config.py": text, "beside/__init__.py": "x = int(str())\n"})

    problem = walk.load_config(folder, {"A_NAME": "0123-CANARY"}).problem

    assert problem is not None
    assert problem.message == f"{folder}/jr2_config.py did not load — {fault}"


def test_a_value_that_is_no_text_is_named_as_such(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = (
        "import os\nfrom jr2 import Config\nconfig = Config(platforms=[os.environ['A_NAME']])\n"
    )
    write(folder, {"jr2_config.py": config})
    monkeypatch.setenv("A_NAME", "CANARY\udcff")

    problem = walk.report_config(folder, {"A_NAME": "CANARY\udcff"}).problem

    assert problem is not None
    assert "CANARY" not in problem.message


def test_a_value_gives_way_to_its_name() -> None:
    text = "bad CANARY-long and CANARY and a"

    assert (
        masking.without_values(text, {"SHORT": "a", "ONE": "CANARY", "TWO": "CANARY-long"})
        == "bad <TWO> and <ONE> and a"
    )


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("form", [repr, ascii, json.dumps, str, os.fsencode])
def test_each_form_of_a_value_gives_way(value: str, form: Callable[[str], object]) -> None:
    said = masking.without_values(f"saw {form(value)!s}", {"ONE": value})

    assert "CANARY" not in said
    assert "<ONE>" in said


def test_a_line_with_a_part_of_a_value_is_not_shown() -> None:
    said = masking.without_parts("one\nsaw 9c1 and\nsaw 9c1-77", {"ONE": "9c1-77"})

    assert said == "one\n(a line that holds a part of a value is not shown)\nsaw <ONE>"


def test_a_problem_is_closed() -> None:
    with pytest.raises(ValueError, match="prefix"):
        Problem.model_validate({"prefix": "warning: ", "message": "x"})
