"""The tree that runs in any image: which compiled-in paths become its own, byte for byte."""

from __future__ import annotations

import pytest

from jr2 import names
from jr2_infra.images.build.tree import REWRITES, Rewrite, rewrite_bytes


@pytest.mark.parametrize("rewrite", REWRITES, ids=lambda item: f"{item.file}:{item.old}")
def test_each_path_fits_in_its_place(rewrite: Rewrite) -> None:
    data = b"\x7fELF..\0" + rewrite.old.encode() + b"\0next\0"
    changed = rewrite_bytes(data, rewrite)
    assert len(changed) == len(data)
    assert rewrite.old.encode() not in changed
    assert changed.partition(b"..\0")[2].split(b"\0")[0] == rewrite.new.encode()
    assert changed.endswith(b"\0next\0")


def test_a_shorter_string_is_padded() -> None:
    changed = rewrite_bytes(b"\0/bin/sh\0--man\0", Rewrite("git", "/bin/sh", "jr2-sh"))
    assert changed == b"\0jr2-sh\0\0--man\0"


def test_a_string_within_a_longer_one_stays() -> None:
    data = b"\0#!/bin/sh\0/bin/sh\0/bin/sh -e\0"
    changed = rewrite_bytes(data, Rewrite("git", "/bin/sh", "jr2-sh"))
    assert changed == b"\0#!/bin/sh\0jr2-sh\0\0/bin/sh -e\0"


def test_a_prefix_keeps_the_rest_of_each_path() -> None:
    rewrite = Rewrite("libcrypto", "/usr/lib/ssl", "/opt/jr2/ssl", whole=False)
    assert rewrite_bytes(b"/usr/lib/ssl/cert.pem\0/usr/lib/ssl\0", rewrite) == (
        b"/opt/jr2/ssl/cert.pem\0/opt/jr2/ssl\0"
    )


@pytest.mark.parametrize(
    ("rewrite", "problem"),
    [
        (Rewrite("git", "/bin/sh", "/opt/jr2/sh"), "does not fit in the place of /bin/sh"),
        (Rewrite("git", "/bin/sh", "sh", whole=False), "does not fit in the place of /bin/sh"),
        (Rewrite("git", "/usr/libexec", "/x"), "does not hold /usr/libexec: Debian's build"),
    ],
    ids=["longer", "a prefix of another length", "absent"],
)
def test_what_cannot_be_rewritten_is_refused(rewrite: Rewrite, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        rewrite_bytes(b"\0/bin/sh\0", rewrite)


def test_the_paths_of_the_tree_agree() -> None:
    own = {
        *(names.TREE_PYTHON, names.TREE_GIT, names.TREE_RIPGREP, names.TREE_INIT),
        *(names.KIT_PATH, names.SERVICES_PATH),
    }
    assert all(path.startswith(f"{names.TREE_PATH}/") for path in own)
    assert f"/{names.TREE_SUBPATH}" == names.TREE_PATH
