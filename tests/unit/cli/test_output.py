"""Where words go: lines as they are, events, results, questions."""

from __future__ import annotations

import io
import json
import os
import pty

import pytest

from jr2 import errors
from jr2_cli.output import Output


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise io.UnsupportedOperation


def plain() -> tuple[Output, io.StringIO, io.StringIO]:
    stdout, stderr = io.StringIO(), io.StringIO()
    return Output(stdout=stdout, stderr=stderr, stdin=io.StringIO()), stdout, stderr


def test_a_line_is_written_as_it_is() -> None:
    out, stdout, stderr = plain()
    text = f"refusing: [bold]{'x' * 500}[/bold] — :tada: /a/b[0]"

    out.line(text)

    assert (stdout.getvalue(), stderr.getvalue()) == ("", f"{text}\n")


@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [
        (errors.Refusal("no\n  why"), "refusal", "refusing: no\n  why"),
        (errors.StepFailed("broke"), "error", "error: broke"),
        (errors.Usage("how"), "usage", "error: how"),
        (
            errors.Aborted("aborted — nothing was changed"),
            "aborted",
            "aborted — nothing was changed",
        ),
    ],
)
def test_an_error_has_its_prefix_and_its_code(
    error: errors.Jr2Error, code: str, printed: str
) -> None:
    out, stdout, stderr = plain()
    out.error(error)
    assert (stdout.getvalue(), stderr.getvalue()) == ("", f"{printed}\n")

    out, stdout, stderr = plain()
    out.stream_events()
    out.error(error)
    assert json.loads(stdout.getvalue()) == {"code": code, "text": printed}
    assert stderr.getvalue() == ""


def test_events_are_one_json_object_a_line() -> None:
    out, stdout, _ = plain()
    out.stream_events()

    out.line("first\nsecond", code="a")
    out.warning("warning: third")

    assert [json.loads(line) for line in stdout.getvalue().splitlines()] == [
        {"code": "a", "text": "first\nsecond"},
        {"code": "warning", "text": "warning: third"},
    ]


def test_a_result_is_one_line_and_indented_on_a_terminal() -> None:
    out, stdout, _ = plain()
    out.result({"reply": "pong: é"})
    assert stdout.getvalue() == '{"reply": "pong: é"}\n'

    terminal = Terminal()
    Output(stdout=terminal, stderr=io.StringIO(), stdin=io.StringIO()).result({"a": 1})
    assert terminal.getvalue() == '{\n  "a": 1\n}\n'


def test_progress_is_shown_on_a_terminal_only_and_a_line_stays_whole() -> None:
    out, _, stderr = plain()
    out.progress("waiting")
    assert stderr.getvalue() == ""

    terminal = Terminal()
    out = Output(stdout=io.StringIO(), stderr=terminal, stdin=io.StringIO())
    out.progress("waiting [0]")
    out.line("orchestrator: waiting for rollout")
    out.progress(None)
    assert "waiting [0]" in terminal.getvalue()
    assert "orchestrator: waiting for rollout\n" in terminal.getvalue()


def test_with_no_terminal_nothing_is_asked_and_the_answer_is_no() -> None:
    out, stdout, stderr = plain()

    assert out.confirm('deploy instance "a"?') is False
    assert stdout.getvalue() == ""
    assert stderr.getvalue() == (
        'deploy instance "a"? — not a tty; pass --yes to proceed non-interactively\n'
    )


@pytest.mark.parametrize(
    ("typed", "answer"),
    [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("", False), ("yep\n", False)],
)
def test_on_a_terminal_the_question_is_asked(typed: str, answer: bool) -> None:
    terminal, keyboard = Terminal(), Terminal(typed)
    out = Output(stdout=io.StringIO(), stderr=terminal, stdin=keyboard)

    assert out.confirm("deploy?") is answer
    assert terminal.getvalue() == "deploy? [y/N] "


def test_without_a_terminal_a_menu_is_not_shown_and_nothing_is_picked() -> None:
    out, stdout, stderr = plain()

    assert out.choose("where should the git ssh key come from?", ("a", "b")) is None
    assert stdout.getvalue() == ""
    assert stderr.getvalue() == (
        "where should the git ssh key come from? — not a tty; pass --yes to take the recommended "
        "option non-interactively\n"
    )


def test_a_stream_of_another_encoding_still_gets_the_line() -> None:
    raw = io.BytesIO()
    stderr = io.TextIOWrapper(raw, encoding="ascii")
    out = Output(stdout=io.StringIO(), stderr=stderr, stdin=io.StringIO())

    out.line("converged — `jr2 run <workflow>` when ready")

    assert raw.getvalue() == b"converged ? `jr2 run <workflow>` when ready\n"


def test_a_real_terminal_is_asked() -> None:
    ours, theirs = pty.openpty()
    with (
        open(theirs, encoding="utf-8", closefd=False) as stdin,
        open(theirs, "w", encoding="utf-8", closefd=False) as stderr,
    ):
        os.write(ours, b"y\n")
        out = Output(stdout=io.StringIO(), stderr=stderr, stdin=stdin)
        assert out.confirm("deploy?") is True
    os.close(theirs)
    os.close(ours)
