"""The jr2 block of AGENTS.md: changed between its markers only, and only when it changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jr2_infra import agents_block

BLOCK = """\
<!-- jr2-docs:start -->
## jr2 1.2.3

This folder is a jr2 Instance: `jr2_config.py`, and a Machine in each `workflows/*.py`.
After each edit run `jr2 check`: it needs no cluster, and says what `jr2 up` would refuse.
Read the page before you use what it describes; these are the docs of this Kit version.

- Config: Every field. — `.venv/lib/python3.11/site-packages/jr2/docs/config.md`
- Up — `.venv/lib/python3.11/site-packages/jr2/docs/guides/up.md`
<!-- jr2-docs:end -->"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The package `jr2` of an Instance at `tmp_path`, with two pages."""
    package = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages" / "jr2"
    (package / "docs" / "guides").mkdir(parents=True)
    (package / "docs" / "config.md").write_text(
        "---\ntitle: Config\ndescription: Every field.\n---\n"
    )
    (package / "docs" / "guides" / "up.md").write_text("# Up\n")
    return package


def test_the_block_is_written_once(tmp_path: Path, package: Path) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_text(
        "# Mine\n\n<!-- jr2-docs:start -->\nold\n<!-- jr2-docs:end -->\n\nafter ä\n",
        encoding="utf-8",
    )
    file.chmod(0o640)

    said = agents_block.update(tmp_path, package, "1.2.3")

    assert said == ("AGENTS.md: jr2 block updated for 1.2.3", None)
    assert file.read_text(encoding="utf-8") == f"# Mine\n\n{BLOCK}\n\nafter ä\n"
    assert file.stat().st_mode & 0o777 == 0o640
    assert agents_block.update(tmp_path, package, "1.2.3") == (None, None)
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".AGENTS")] == []


def test_the_line_ends_of_the_file_are_kept(tmp_path: Path, package: Path) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_bytes(b"a\r\n<!-- jr2-docs:start --><!-- jr2-docs:end -->\r\nb\r\n")

    agents_block.update(tmp_path, package, "1.2.3")

    assert file.read_bytes() == b"a\r\n" + BLOCK.replace("\n", "\r\n").encode() + b"\r\nb\r\n"


def test_a_pipe_is_a_warning_and_is_not_waited_for(tmp_path: Path, package: Path) -> None:
    os.mkfifo(tmp_path / "AGENTS.md")

    assert agents_block.update(tmp_path, package, "1.2.3") == (
        None,
        "warning: AGENTS.md: it cannot be read (it is no regular file), so the jr2 block was not "
        "updated",
    )


def test_a_link_stays_a_link(tmp_path: Path, package: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("<!-- jr2-docs:start --><!-- jr2-docs:end -->")
    (tmp_path / "AGENTS.md").symlink_to("CLAUDE.md")

    agents_block.update(tmp_path, package, "1.2.3")

    assert (tmp_path / "AGENTS.md").is_symlink()
    assert (tmp_path / "CLAUDE.md").read_text() == BLOCK


def test_a_page_elsewhere_is_named_by_its_whole_path(tmp_path: Path, package: Path) -> None:
    root = tmp_path / "instance"
    root.mkdir()

    lines = agents_block.block(root, package, "1.2.3")

    assert lines[-1] == f"- Up — `{package}/docs/guides/up.md`"


@pytest.mark.parametrize("text", [None, "# Mine, without markers\n"])
def test_a_file_without_markers_is_left_alone(
    tmp_path: Path, package: Path, text: str | None
) -> None:
    if text is not None:
        (tmp_path / "AGENTS.md").write_text(text)

    assert agents_block.update(tmp_path, package, "1.2.3") == (None, None)
    assert text is None or (tmp_path / "AGENTS.md").read_text() == text


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (
            b"<!-- jr2-docs:start -->",
            "it holds <!-- jr2-docs:start --> and no <!-- jr2-docs:end -->",
        ),
        (
            b"<!-- jr2-docs:end -->",
            "it holds <!-- jr2-docs:end --> and no <!-- jr2-docs:start -->",
        ),
        (
            b"<!-- jr2-docs:end --> <!-- jr2-docs:start -->",
            "<!-- jr2-docs:end --> stands before <!-- jr2-docs:start -->",
        ),
        (
            b"<!-- jr2-docs:start --><!-- jr2-docs:start --><!-- jr2-docs:end -->",
            "it holds 2 start markers and 1 end markers of jr2-docs",
        ),
        (b"\xff<!-- jr2-docs:start --><!-- jr2-docs:end -->", "it is not UTF-8"),
    ],
)
def test_markers_that_are_no_pair_are_a_warning(
    tmp_path: Path, package: Path, content: bytes, why: str
) -> None:
    (tmp_path / "AGENTS.md").write_bytes(content)

    said = agents_block.update(tmp_path, package, "1.2.3")

    assert said == (None, f"warning: AGENTS.md: {why}, so the jr2 block was not updated")
    assert (tmp_path / "AGENTS.md").read_bytes() == content


def test_a_folder_that_cannot_be_written_is_a_warning(
    tmp_path: Path, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "AGENTS.md").write_text("<!-- jr2-docs:start --><!-- jr2-docs:end -->")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)

    assert agents_block.update(tmp_path, package, "1.2.3") == (
        None,
        "warning: AGENTS.md: it cannot be written (No space left on device), so the jr2 block was "
        "not updated",
    )
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".AGENTS")] == []
