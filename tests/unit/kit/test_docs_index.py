"""The docs of the Kit: where they lie, and what stands in their index."""

from __future__ import annotations

from pathlib import Path

import jr2
from jr2 import docs_index


def test_an_installed_kit_holds_its_docs(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "jr2"
    (package / "docs").mkdir(parents=True)

    assert docs_index.docs_folder(package) == package / "docs"


def test_a_checkout_holds_them_beside(tmp_path: Path) -> None:
    package = tmp_path / "runtime" / "kit" / "src" / "jr2"
    package.mkdir(parents=True)

    assert docs_index.docs_folder(package) is None
    (tmp_path / "docs").mkdir()
    assert docs_index.docs_folder(package) == tmp_path / "docs"
    assert docs_index.docs_folder(tmp_path / "elsewhere" / "jr2") is None


def test_a_page_says_its_title_and_its_description(tmp_path: Path) -> None:
    pages = {
        "b.md": "---\ntitle: Bee\ndescription: About bees: all of them.\n---\n\n# Other\n",
        "a/z.md": '---\r\ntitle: "Zed"\r\n---\r\ntext\r\n',
        "a/y.md": "text\n\n# Why  \n",
        "c.md": "no heading",
        "adr/0100-x.md": "# not shipped",
        "notes.txt": "",
    }
    for name, text in pages.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())

    found = docs_index.pages(tmp_path)

    assert [(p.file.relative_to(tmp_path).as_posix(), p.title, p.description) for p in found] == [
        ("a/y.md", "Why", ""),
        ("a/z.md", "Zed", ""),
        ("b.md", "Bee", "About bees: all of them."),
        ("c.md", "c", ""),
    ]


def test_each_page_of_ours_has_a_title_and_a_description() -> None:
    docs = docs_index.docs_folder(Path(jr2.__file__).resolve().parent)

    assert docs is not None
    pages = docs_index.pages(docs)
    assert pages
    assert [page.file.name for page in pages if not page.description] == []
