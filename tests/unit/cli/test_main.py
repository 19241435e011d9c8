"""The frame of the command through its process: usage, exit codes, streams, speed of its imports."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jr2_cli import application, json_input, main, verbs
from tests.unit.cli.conftest import RUN
from tests.waiting import LIMIT

if TYPE_CHECKING:
    from tests.unit.cli.conftest import FarOrchestrator, Jr2

HEAVY = ("pulumi", "pulumi_kubernetes", "cyclopts", "httpx2", "lightkube", "pydantic", "rich")


@pytest.mark.parametrize("word", ["help", "--help", "-h"])
def test_help_is_the_usage_on_stderr_and_exits_0(jr2: Jr2, word: str) -> None:
    said = jr2(word)

    assert (said.code, said.stdout) == (0, "")
    assert said.stderr == f"{verbs.usage()}\n"


def test_no_command_is_the_usage_on_stderr_and_exits_2(jr2_process: Jr2) -> None:
    said = jr2_process()

    assert (said.code, said.stdout) == (2, "")
    assert said.stderr == f"{verbs.usage()}\n"


@pytest.mark.parametrize(
    ("word", "line"),
    [
        ("rnu", 'error: unknown command "rnu" — did you mean `jr2 run`?'),
        ("approve", 'error: unknown command "approve"'),
        ("--frob", 'error: unknown option "--frob"'),
    ],
)
def test_an_unknown_word_says_so_then_the_usage_and_exits_2(jr2: Jr2, word: str, line: str) -> None:
    said = jr2(word)

    assert (said.code, said.stdout) == (2, "")
    assert said.stderr == f"{line}\n\n{verbs.usage()}\n"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["run"], "error: jr2 run: WORKFLOW is missing"),
        (["run", "ping", "--input"], "error: jr2 run: --input needs a value"),
        (
            ["run", "ping", "--inptu", "{}"],
            "error: jr2 run: Unknown option: --inptu. Did you mean --input?",
        ),
        (["run", "ping", "pong"], 'error: jr2 run: unexpected argument "pong"'),
        (["up", "extra"], 'error: jr2 up: unexpected argument "extra"'),
        (["runs", "a", "b"], 'error: jr2 runs: unexpected argument "a"'),
        (["cluster", "status", "a"], 'error: jr2 cluster: unexpected argument "a"'),
        (["send", "3f2a"], "error: jr2 send: --event needs a value"),
        (["runs", "--yes"], "error: jr2 runs: Unknown option: --yes"),
    ],
)
def test_a_wrong_argument_is_one_line_with_a_hint_and_exits_2(
    jr2: Jr2, arguments: list[str], line: str
) -> None:
    said = jr2(*arguments)

    assert (said.code, said.stdout) == (2, "")
    assert said.stderr.splitlines() == [line, f"`jr2 {arguments[0]} --help` shows what it takes"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "{message: hi}",
            "error: --input is not JSON (Expecting property name enclosed in double quotes at "
            "column 2)",
        ),
        ('"hi"', """error: --input is not a JSON object, such as '{"message":"hi"}'"""),
        ('{"a": NaN}', "error: --input is not JSON (NaN is no JSON number)"),
        ("{\n}}", "error: --input is not JSON (Extra data at line 2 column 2)"),
        ('{"message":"\\ud800"}', "error: --input is not valid Unicode"),
        ('{"\\udfff":1}', "error: --input is not valid Unicode"),
        ('{"message":"\udcff"}', "error: --input is not valid Unicode"),
        (
            '{"a": 1e999}',
            "error: --input is not JSON (Out of range float values are not JSON compliant)",
        ),
        ('{"a":' * 100_000, "error: --input is nested too deeply"),
        ("@/nowhere", "error: cannot read --input from /nowhere: No such file or directory"),
        ("@", 'error: cannot read --input from "": Is a directory'),
    ],
)
@pytest.mark.parametrize(
    "verb", [["run", "ping"], ["send", RUN, "--gate", "review", "--event", "approve"]]
)
def test_an_input_that_is_no_json_object_is_refused_before_anything_is_asked(
    jr2: Jr2, verb: list[str], text: str, line: str
) -> None:
    said = jr2(*verb, "--input", text)

    assert (said.code, said.stdout, said.stderr) == (2, "", f"{line}\n")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ([b"run", b"ping", b"--input", b'{"message":"\xff"}'], "--input"),
        ([b"run", b"ping", b'--input={"message":"\xff"}'], "--input"),
        ([b"run", b"\xff"], "an argument"),
        ([b"run", b"ping", b"-n", b"\xff"], "-n"),
        ([b"send", b"\xff\xff\xff\xff", b"--event", b"CANCEL"], "an argument"),
        ([b"send", b"3f2a", b"--event", b"\xff", b"--gate", b"g"], "--event"),
        ([b"send", b"3f2a", b"--event", b"go", b"--gate", b"\xff"], "--gate"),
        ([b"status", b"3f2a\xff"], "an argument"),
        ([b"up", b"--context", b"\xff"], "--context"),
    ],
)
def test_a_byte_that_is_no_unicode_is_refused_before_anything_is_asked(
    jr2: Jr2, arguments: list[bytes], name: str
) -> None:
    # A process finds such a byte in its arguments as `os.fsdecode` gives it.
    said = jr2(*map(os.fsdecode, arguments))

    assert (said.code, said.stdout) == (2, "")
    assert said.stderr == f"error: {name} is not valid Unicode\n"


def test_a_byte_that_is_no_unicode_reaches_the_process(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable.encode(), b"-m", b"jr2_cli", b"run", b"ping", b"-n", b"\xff"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"error: -n is not valid Unicode\n"


@pytest.mark.parametrize("given", ["BAD NS", "", "a.b", "-a", "a-", "x" * 64, "a/b", "é"])
@pytest.mark.parametrize(
    "verb", [["up"], ["down"], ["run", "ping"], ["runs"], ["status"], ["version"]]
)
def test_a_namespace_that_is_no_dns_label_is_refused(jr2: Jr2, verb: list[str], given: str) -> None:
    said = jr2(*verb, f"--namespace={given}")

    assert (said.code, said.stdout) == (2, "")
    assert said.stderr == (
        f'error: "{given}" cannot name a namespace: a name has 1 to 63 of a-z, 0-9 and `-`, and '
        "starts and ends with a letter or a digit\n"
    )


@pytest.mark.parametrize("given", ["a", "my-instance", "x" * 63, "0"])
def test_a_dns_label_names_a_namespace(jr2: Jr2, given: str) -> None:
    said = jr2("runs", "-n", given)

    assert said.code == 1
    assert "not inside a jr2 instance" in said.stderr


@pytest.mark.parametrize("option", ["-", "@input.json", "@/dev/stdin"])
@pytest.mark.parametrize(
    ("content", "code", "line"),
    [
        (b'{"message":\n"hi"}\n', 0, None),
        (b"\xff", 2, "error: --input is not valid Unicode"),
        (b"", 2, "error: --input is not JSON (Expecting value at column 1)"),
    ],
)
def test_an_input_comes_from_a_file_or_from_stdin(
    jr2: Jr2,
    far: FarOrchestrator,
    at: dict[str, str],
    tmp_path: Path,
    option: str,
    content: bytes,
    code: int,
    line: str | None,
) -> None:
    (tmp_path / "input.json").write_bytes(content)
    arguments = ("run", "ping", "--detach", "--input", option)
    said = jr2(*arguments, cwd=tmp_path, env=at, stdin=content)

    assert (said.code, said.stderr) == (code, f"{line or f'→ {far.url}'}\n")
    asked = [("POST", "/workflows/ping/runs", {"message": "hi"})] if line is None else []
    assert far.asked == asked


@pytest.mark.parametrize("option", ["-", "@/dev/stdin"])
def test_an_input_comes_from_the_stdin_of_the_process(
    jr2_process: Jr2, far: FarOrchestrator, at: dict[str, str], option: str
) -> None:
    arguments = ("run", "ping", "--detach", "--input", option)
    said = jr2_process(*arguments, env=at, stdin='{"message":"hé"}'.encode())

    assert (said.code, said.stderr) == (0, f"→ {far.url}\n")
    assert far.asked == [("POST", "/workflows/ping/runs", {"message": "hé"})]


def test_an_input_from_a_closed_stdin_is_empty(tmp_path: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -m jr2_cli run ping --input - <&-', sys.executable],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )

    assert done.returncode == 2
    assert done.stderr == "error: --input is not JSON (Expecting value at column 1)\n"


@pytest.mark.parametrize("word", ["--help", "-h"])
@pytest.mark.parametrize("verb", ["run", "up"])
def test_a_verb_has_help_of_its_own_with_examples(jr2: Jr2, verb: str, word: str) -> None:
    said = jr2(verb, word)

    assert (said.code, said.stdout) == (0, "")
    assert said.stderr.startswith(f"Usage: jr2 {verb}")
    known = verbs.find(verb)
    assert known is not None
    for example in known.examples:
        assert f"  {example}\n" in said.stderr
    assert jr2("help", verb).stderr == said.stderr


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom jr2_cli.main import main\ncode = main(['--help'])\n"
        f"print(code, sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT, check=True
    )

    assert done.stdout == "0 []\n"


def test_no_verb_imports_pulumi_for_its_help() -> None:
    own = [verb.name for verb in verbs.VERBS if verb.code.startswith("jr2_cli.commands.")]
    code = (
        "import sys\nfrom jr2_cli.main import main\n"
        f"codes = {{main([verb, '--help']) for verb in {own!r}}}\n"
        "print(codes, 'pulumi' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT, check=True
    )

    assert done.stdout == "{0} False\n"


def test_each_verb_of_the_usage_text_is_registered() -> None:
    app = application.build()

    for verb in verbs.VERBS:
        assert verb.name in app
        assert verb.examples
        for example in verb.examples:
            assert example.startswith(f"jr2 {verb.name}")


def shown_examples() -> list[str]:
    """Each command line that a help text shows."""
    usage = verbs.usage().partition("\nExamples:\n")[2].partition("\n\n")[0].splitlines()
    return [line.strip() for line in usage] + [line for v in verbs.VERBS for line in v.examples]


@pytest.mark.parametrize("example", shown_examples())
def test_each_example_of_a_help_text_is_a_call_that_is_understood(example: str) -> None:
    name, *arguments = shlex.split(example)

    assert name == "jr2"
    _, bound, _ = application.build().parse_args(arguments, exit_on_error=False, print_error=False)
    given = bound.arguments
    # A Gate takes the names of its events, which are snake case; a run takes CANCEL alone.
    if "event" in given:
        assert given["event"].islower() if given.get("gate") else given["event"] == "CANCEL"
    if str(given.get("input", "@")).startswith("{"):
        assert json_input.parse(given["input"])


def test_completion_is_written_for_the_shell_of_the_person(jr2: Jr2, tmp_path: Path) -> None:
    said = jr2("--install-completion", "--shell", "bash", env={"SHELL": "/bin/bash"})

    assert said.code == 0
    written = [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and "jr2" in path.read_text(errors="replace")
    ]
    assert any("_jr2" in path.read_text() for path in written)


def test_an_unknown_failure_is_one_line_without_its_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: list[str]) -> int:
        raise ValueError("CANARY")

    monkeypatch.setattr(application, "run", fail)

    assert main.main(["runs"]) == 1
    said = capsys.readouterr()
    assert said.err.startswith("error: jr2 does not know this failure: ValueError at ")
    assert said.err.count("\n") == 1
    assert "CANARY" not in said.out + said.err


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = "import os, sys; os.rmdir(os.getcwd()); from jr2_cli.main import main; sys.exit(main(['check']))"

    done = subprocess.run(
        [sys.executable, "-c", script], cwd=gone, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: the folder that this command stands in is gone — go into another one: `cd`\n"
    )


def test_a_loop_of_links_is_no_place_for_an_instance(jr2_process: Jr2, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")

    said = jr2_process("init", str(tmp_path / "loop"))

    assert said.code == 1
    assert said.stderr.splitlines()[1:] == [
        f"error: cannot write {tmp_path}/loop/pyproject.toml: {tmp_path}/loop is no folder"
    ]
