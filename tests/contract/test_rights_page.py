"""docs/rights.md has exactly the Roles that the Converge asks for."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

from jr2_infra import access
from jr2_infra.closed_list import INSTANCE_OBJECTS

CHECKOUT = Path(__file__).parents[2]
PAGE = CHECKOUT / "docs" / "rights.md"
RENDER: dict[str, Any] = runpy.run_path(str(CHECKOUT / "scripts" / "render_rights.py"))
BLOCKS = ("converge", "shared", "preview", "use", "remove")


def test_the_page_is_current() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert RENDER["render"](text) == text, "run scripts/render_rights.py"


@pytest.mark.parametrize("name", BLOCKS)
def test_each_block_is_objects_that_kubectl_applies(name: str) -> None:
    found = re.search(
        rf"<!-- rights: {name} -->\n```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )
    assert found is not None
    objects = list(yaml.safe_load_all(found[1]))
    assert objects
    for one in objects:
        assert one["kind"] in {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
        assert one["metadata"]["name"] == f"jr2-{name}"
        if one["kind"] in ("RoleBinding", "ClusterRoleBinding"):
            assert one["roleRef"]["name"] == one["metadata"]["name"]


def verbs(grants: tuple[access.Grant, ...], resource: str) -> set[str]:
    return {
        verb
        for grant in grants
        for rule in grant.rules
        if grant.place == "instance" and resource in rule.resources
        for verb in rule.verbs
    }


def test_a_converge_may_write_every_kind_that_it_makes_and_a_preview_none() -> None:
    for kind in {kind for kind, _ in INSTANCE_OBJECTS}:
        assert verbs(access.converge("demo", shared=False), kind.plural) >= {
            "get", "list", "create", "patch", "delete",
        }  # fmt: skip
        assert verbs(access.preview("demo"), kind.plural) == {"get", "list"}
    wildcards = [
        rule
        for grant in (*access.converge("demo", shared=True), *access.remove("demo"))
        for rule in grant.rules
        if "*" in (*rule.verbs, *rule.resources, *rule.groups)
    ]
    assert wildcards == []


def test_who_uses_an_instance_reads_one_secret_by_its_name() -> None:
    [secrets] = [
        rule for grant in access.use("demo") for rule in grant.rules if "secrets" in rule.resources
    ]
    assert (secrets.verbs, secrets.resource_names) == (("get",), ("jr2-instance",))
