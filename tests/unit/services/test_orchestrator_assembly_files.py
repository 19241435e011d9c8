"""The list of an Assembly's files: what must not be in it is refused before a byte is sent."""

from __future__ import annotations

import pytest

from jr2.wire import AssemblyFile, AssemblyListing
from jr2_runtime.orchestrator.assemblies.listing import Limits, blobs, check, resolve
from jr2_runtime.orchestrator.assemblies.refused import PublishError

DIGEST = "ab" * 32
OTHER = "cd" * 32


def file(path: str, digest: str = DIGEST, size: int = 1) -> AssemblyFile:
    return AssemblyFile(path=path, kind="file", sha256=digest, size=size)


def link(path: str, target: str | None) -> AssemblyFile:
    return AssemblyFile(path=path, kind="link", target=target)


MANIFEST = file("assembly.json")


def paths(files: list[AssemblyFile]) -> list[str]:
    return [each.path for each in files]


@pytest.mark.parametrize(
    ("files", "code", "text"),
    [
        ([file("/instance/a")], 400, "not allowed"),
        ([file("instance/../a")], 400, "not allowed"),
        ([file("../a")], 400, "not allowed"),
        ([file("instance//a")], 400, "not allowed"),
        ([file("instance/a/")], 400, "not allowed"),
        ([file("instance/./a")], 400, "not allowed"),
        ([file("instance/a\\b")], 400, "not allowed"),
        ([file("instance/a\nb")], 400, "not allowed"),
        ([file("")], 400, "not allowed"),
        ([file("instance/" + "a/" * 70 + "b")], 400, "not allowed"),
        ([file("instance/" + "a" * 2000)], 400, "not allowed"),
        ([file("other/a")], 400, "no part of an Assembly"),
        ([file("a")], 400, "no part of an Assembly"),
        ([file("instance")], 400, "no part of an Assembly"),
        ([file("assembly.json/a")], 400, "no part of an Assembly"),
        ([file("instance/a"), file("instance/a/b")], 400, "which is no folder"),
        ([link("instance/a", "b"), file("instance/a/b")], 400, "which is no folder"),
        ([link("instance/a", "/etc/passwd")], 400, "points outside"),
        ([link("instance/a", "../../etc")], 400, "points outside"),
        ([link("instance/a", "../..")], 400, "points outside"),
        ([link("instance/a", "")], 400, "points outside"),
        ([link("instance/a", None)], 400, "points outside"),
        ([AssemblyFile(path="instance/a", kind="file", size=1)], 400, "has a digest"),
        ([AssemblyFile(path="instance/a", kind="exec", target="b")], 400, "has a digest"),
        ([file("instance/a", OTHER), file("instance/b", OTHER, 2)], 400, "another size"),
        ([file(f"instance/{n}") for n in range(3)], 413, "more than 3 files: it has 4"),
        ([file("instance/a", OTHER, 100)], 413, "larger than 100 bytes: it has 101"),
    ],
)
def test_what_must_not_be_in_it_is_refused(files: list[AssemblyFile], code: int, text: str) -> None:
    with pytest.raises(PublishError, match=text) as caught:
        check([MANIFEST, *files], Limits(files=3, unpacked=100))
    assert caught.value.code == code


def test_an_assembly_has_a_manifest_that_is_a_file() -> None:
    for files in ([file("instance/a")], [link("assembly.json", "instance/a")]):
        with pytest.raises(PublishError, match=r"holds no assembly\.json"):
            check(files, Limits())


def test_files_links_and_long_names_are_taken() -> None:
    files = [
        MANIFEST,
        file("packages/very/" + "long/" * 30 + "name.py"),
        file("packages/é.py"),
        AssemblyFile(path="instance/run", kind="exec", sha256=OTHER, size=7),
        link("instance/link.py", "a.py"),
        link("packages/up", "../instance/a.py"),
    ]
    check(files, Limits())
    assert blobs(files) == {DIGEST: 1, OTHER: 7}


def test_a_list_that_starts_from_another_names_what_differs() -> None:
    base = [MANIFEST, file("instance/a"), file("instance/b"), link("instance/c", "a")]
    sent = AssemblyListing(
        base="0" * 64,
        removed=["instance/b", "instance/c"],
        files=[file("instance/a", OTHER), file("instance/c/d")],
    )
    found = resolve(sent, base)
    assert paths(found) == ["assembly.json", "instance/a", "instance/c/d"]
    assert found[1].sha256 == OTHER
    assert paths(resolve(AssemblyListing(files=base), [])) == sorted(paths(base))


def test_a_list_names_each_path_once_and_takes_away_what_is_there() -> None:
    twice = AssemblyListing(files=[file("instance/a"), file("instance/a")])
    with pytest.raises(PublishError, match="twice"):
        resolve(twice, [])
    for removed in (["instance/x"], ["instance/a", "instance/a"]):
        with pytest.raises(PublishError, match="which its base does not have"):
            resolve(AssemblyListing(removed=removed), [file("instance/a")])
