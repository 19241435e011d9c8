"""The reference of the command is what the application takes, and what it shows can be done."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from jr2 import names
from jr2_cli import application, verbs
from tests.waiting import LIMIT

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "cli-reference.md").read_text(encoding="utf-8")
JR2: Final = str(Path(sys.executable).with_name("jr2"))


def test_the_page_is_current() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "render_cli_reference.py"))

    assert script["render"]() == PAGE, "run scripts/render_cli_reference.py"


@pytest.mark.parametrize("verb", verbs.VERBS, ids=lambda verb: verb.name)
def test_each_option_of_a_command_is_in_its_section(verb: verbs.Verb) -> None:
    section = PAGE.partition(f"\n### `jr2 {verb.name}`\n")[2].partition("\n### ")[0]
    command: Any = application.build()[verb.name]
    taken = {
        name
        for app in (command, *(command[name] for name in command if not name.startswith("-")))
        if app.default_command is not None
        for argument in app.assemble_argument_collection()
        for name in argument.names
        if name.startswith("--") and not name.startswith("--no-")
    }

    assert section
    assert {option for option in taken if not re.search(rf"`{option}[ ,`]", section)} == set()
    assert [example for example in verb.examples if example not in section] == []


def test_the_variables_of_the_page_are_those_of_the_code() -> None:
    own = {names.ENV_URL, names.ENV_TOKEN, names.ENV_TRACEBACK}

    assert set(re.findall(r"^\| `(JR2_\w+)` \|", PAGE, re.M)) == own


def test_each_event_of_the_page_has_a_code_of_the_source() -> None:
    source = "\n".join(
        path.read_text(encoding="utf-8")
        for package in ("infra/src", "cli/src")
        for path in (ROOT / package).rglob("*.py")
    )
    shown = re.findall(r'^\{"code".*\}$', PAGE, re.M)
    assert len(shown) == 3
    for line in shown:
        event = json.loads(line)
        assert set(event) == {"code", "text"}
        assert f'code="{event["code"]}"' in source


def test_an_event_is_the_line_that_it_stands_for(tmp_path: Path) -> None:
    def said(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [JR2, *arguments],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )

    line, event = said("check"), said("check", "--json")

    assert (line.returncode, line.stdout, event.returncode, event.stderr) == (1, "", 1, "")
    (text,) = line.stderr.splitlines()
    assert json.loads(event.stdout) == {"code": "error", "text": text}


@pytest.fixture(scope="module")
def completion(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `jr2 --install-completion` writes for bash."""
    home = tmp_path_factory.mktemp("completion")
    file = home / "jr2.bash"
    subprocess.run(
        [JR2, "--install-completion", "--shell", "bash", "--output", str(file)],
        env={"PATH": "/usr/bin:/bin", "HOME": str(home)},
        capture_output=True,
        check=True,
        timeout=LIMIT,
    )
    return file


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash on this machine")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (("u",), {"up"}),
        (("cluster", "st"), {"start", "stop", "status"}),
        (("up", "--fo"), {"--force"}),
    ],
)
def test_a_shell_completes_commands_and_options(
    completion: Path, typed: tuple[str, ...], offered: set[str]
) -> None:
    words = " ".join(("jr2", *typed))
    script = (
        f"source {completion}\n"
        "function=$(complete -p jr2 | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n"
        f"COMP_WORDS=({words}); COMP_CWORD={len(typed)}; COMP_LINE='{words}'\n"
        f"COMP_POINT=${{#COMP_LINE}}\n"
        f'$function jr2 "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"\n'
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )

    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True, timeout=LIMIT
    )

    assert set(done.stdout.split()) == offered
