"""`.env` through its parser and through the process (field case 6)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jr2_cli import env_file

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Jr2

FIELD_CASE = (
    b"\xef\xbb\xbfA=plain\r\n"
    b"export B=one\n"
    b'C="two words"  # note\n'
    b"D='a#b $HOME \"q\"'\n"
    b"E=a#b\n"
    b"F=a # b\n"
    b"G=\n"
    b'H="x\\ny"\n'
    b"I=tok \n"
    b'J="tok "\n'
    b"K=pa${HOME}w0$d\n" + "L=été\n".encode() + b"M=first\nM=second\n"
    b"N = spaced\n"
    b"O\n"
)

VALUES = {
    "A": "plain",
    "B": "one",
    "C": "two words",
    "D": 'a#b $HOME "q"',
    "E": "a#b",
    "F": "a",
    "G": "",
    "H": "x\ny",
    "I": "tok",
    "J": "tok ",
    "K": "pa${HOME}w0$d",
    "L": "été",
    "M": "second",
    "N": "spaced",
}


@pytest.mark.parametrize("name", VALUES)
def test_each_line_of_the_field_case_has_the_right_value(name: str) -> None:
    read = env_file.parse(FIELD_CASE.decode())

    assert VALUES[name] == read.values[name]


def test_the_field_case_warns_of_the_line_without_equals_and_of_the_name_set_twice() -> None:
    read = env_file.parse(FIELD_CASE.decode())

    assert set(VALUES) == set(read.values)
    assert read.warnings == (
        "line 16: it has no `=`; the line is ignored",
        "M is set in lines 13 and 14; the last one counts",
    )


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("P=#not-a-comment\n", {"P": "#not-a-comment"}),
        ("P= # a comment\n", {"P": ""}),
        ("P=\t'a'\t# b\n", {"P": "a"}),
        ("P='a\nb'\nQ=c\n", {"P": "a\nb", "Q": "c"}),
        ('P="a\nb"\nQ=c\n', {"P": "a\nb", "Q": "c"}),
        ('P="a\\"b\\\\c\\t\\q"\n', {"P": 'a"b\\c\t\\q'}),
        ("P=it's\n", {"P": "it's"}),
        ("P=a=b==\n", {"P": "a=b=="}),
        ("  \n# all\n\t# of this\nP=1", {"P": "1"}),
        ("export  P=1\n", {"P": "1"}),
        ("P=\\n\n", {"P": "\\n"}),
        ("", {}),
    ],
)
def test_values(text: str, values: dict[str, str]) -> None:
    read = env_file.parse(text)

    assert values == read.values
    assert read.warnings == ()


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("\n\nsecret-text\n", "line 3: it has no `=`; the line is ignored"),
        ("1P=secret\n", "line 1: it does not start with a name and `=`; the line is ignored"),
        ("A-B=secret\n", "line 1: it does not start with a name and `=`; the line is ignored"),
        ('P="secret\n', "line 1: the quote of P is not closed; the line is ignored"),
        ("P='secret'x\n", "line 1: something follows the quoted value of P; the line is ignored"),
        ("P=sec\0ret\n", "line 1: the value of P holds a NUL character; the line is ignored"),
    ],
)
def test_a_line_that_cannot_be_read_is_named_by_its_number_and_the_next_is_read(
    text: str, warning: str
) -> None:
    read = env_file.parse(f"{text}Q=after\n")

    assert read.values == {"Q": "after"}
    assert read.warnings == (warning,)
    assert "secret" not in warning


def test_a_value_is_in_no_repr() -> None:
    assert "CANARY" not in repr(env_file.parse("A=CANARY\n"))


def test_the_shell_wins_and_what_it_kept_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"A=file\nB=file\nC=same\nD=\xff\n")
    environ = {"A": "shell", "C": "same"}

    filled = env_file.fill(tmp_path / ".env", environ)

    assert environ == {"A": "shell", "B": "file", "C": "same", "D": "\udcff"}
    assert filled == env_file.Filled(names=("B", "D"), kept=("A",))


def test_a_missing_file_fills_nothing(tmp_path: Path) -> None:
    environ: dict[str, str] = {}

    assert env_file.fill(tmp_path / ".env", environ) == env_file.Filled()
    assert environ == {}


def test_the_command_names_what_it_filled_and_no_value(jr2: Jr2, tmp_path: Path) -> None:
    root = tmp_path / "instance"
    (root / "workflows").mkdir(parents=True)
    (root / "jr2_config.py").write_text("")
    (root / ".env").write_text("A=CANARY\nB=CANARY\nC=CANARY\nbroken CANARY\n")

    said = jr2("run", cwd=root / "workflows", env={"B": "shell"})

    assert said.stderr.splitlines()[:3] == [
        "warning: .env: line 4: it has no `=`; the line is ignored",
        "→ .env: the shell's own B stays",
        "→ .env: A, C",
    ]
    assert "CANARY" not in said.stderr + said.stdout


def test_a_pipe_is_a_warning_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".env")

    assert env_file.fill(tmp_path / ".env", {}).warnings == (
        "the file cannot be read: it is no regular file",
    )
