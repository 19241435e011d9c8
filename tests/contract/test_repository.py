"""What must hold for the repository as a whole."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from jr2 import names

ROOT = Path(__file__).resolve().parents[2]
DISTRIBUTIONS = ("runtime/kit", "runtime/services", "runtime/machines", "infra", "cli")


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def project(folder: str) -> dict[str, object]:
    document = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())
    found = document["project"]
    assert isinstance(found, dict)
    return found


def test_one_version_and_exact_pins_between_our_own() -> None:
    own = {project(folder)["name"] for folder in DISTRIBUTIONS}

    for folder in DISTRIBUTIONS:
        found = project(folder)
        assert found["version"] == names.KIT_VERSION
        dependencies = found["dependencies"]
        assert isinstance(dependencies, list)
        for dependency in dependencies:
            name = re.split(r"[=<>~!;\[ ]", dependency)[0]
            if name in own:
                assert dependency == f"{name}=={names.KIT_VERSION}"


def test_the_kit_needs_pydantic_alone() -> None:
    dependencies = project("runtime/kit")["dependencies"]
    assert isinstance(dependencies, list)

    assert [re.split(r"[=<>]", dependency)[0] for dependency in dependencies] == ["pydantic"]


def test_each_cited_adr_is_a_page_with_its_four_parts() -> None:
    pages = {path.name[:4]: path for path in (ROOT / "docs" / "adr").glob("*.md")}
    cited: dict[str, str] = {}
    for path in tracked("*.py", "*.md", "*.toml"):
        for number in re.findall(r"ADR-(\d{4})", path.read_text(errors="replace")):
            cited.setdefault(number, str(path.relative_to(ROOT)))

    assert cited
    assert not {number: where for number, where in cited.items() if number not in pages}
    for number, page in pages.items():
        text = page.read_text()
        assert text.startswith(f"# ADR-{number}: ")
        for part in ("Context", "Decision", "What it costs", "What would change our mind"):
            assert f"\n## {part}\n" in text, page.name


def test_each_direct_dependency_has_its_line() -> None:
    stated = (ROOT / "docs/adr/0107-one-document-states-each-dependency.md").read_text()
    for folder in DISTRIBUTIONS:
        dependencies = project(folder)["dependencies"]
        assert isinstance(dependencies, list)
        for dependency in dependencies:
            name = re.split(r"[=<>~!;\[ ]", dependency)[0]
            if not name.startswith("jr2"):
                assert re.search(rf"^\| [^|]*\b{re.escape(name)}\b", stated, re.M), name


def test_no_address_of_a_package_registry_is_committed() -> None:
    # Spelled in two parts, so that this file does not hold what it looks for.
    hosts = [
        "pypi" + ".org",
        "pythonhosted" + ".org",
        "proxy.golang" + ".org",
        "registry.npmjs" + ".org",
        "deb.debian" + ".org",
        "crates" + ".io",
    ]

    found = [
        f"{path.relative_to(ROOT)}: {host}"
        for path in tracked()
        for host in hosts
        if host.encode() in path.read_bytes()
    ]

    assert found == []


def test_no_lock_with_addresses_is_committed() -> None:
    assert [path.name for path in tracked("uv.lock", "*/uv.lock", "package-lock.json")] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.stem)
def test_each_page_says_what_it_is_and_links_to_pages_that_exist(page: Path) -> None:
    text = page.read_text()

    assert re.match(r"---\ntitle: .+\ndescription: .+\n---\n\n# ", text)
    for target in re.findall(r"\]\(([^)#:]+\.md)\)", text):
        assert (page.parent / target).is_file(), target


def test_the_readme_links_to_files_that_exist_and_to_each_page() -> None:
    text = (ROOT / "README.md").read_text()
    targets = re.findall(r"\]\(([^)#:]+)\)", text)

    assert not [target for target in targets if not (ROOT / target).exists()]
    linked = {Path(target).name for target in targets}
    assert {page.name for page in (ROOT / "docs").glob("*.md")} <= linked


def test_modules_hold_one_idea() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in tracked("*/src/*.py")
        if (lines := path.read_text().count("\n")) > 600
    }

    assert long == {}
