"""The CustomResourceDefinitions: structural, closed, and named as the rest of jr2 names them.

The API server itself judges them in `tests/cluster`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jr2 import names
from jr2_infra import crds

DEFINITIONS = {definition["metadata"]["name"]: definition for definition in crds.load()}
STRUCTURE = {"apiVersion", "kind", "metadata"}
POD_FRAGMENTS = {"securityContext", "volumes", "sidecars", "initContainers", "command", "args"}


def schema(name: str) -> dict[str, Any]:
    (version,) = DEFINITIONS[name]["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return found


def nodes(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for place in ("items", "additionalProperties"):
        if place in node:
            yield from nodes(node[place], f"{path}[]")


def test_names() -> None:
    assert set(DEFINITIONS) == {names.SANDBOXES_CRD, names.REPOS_CRD}
    for name, definition in DEFINITIONS.items():
        spec = definition["spec"]
        assert name == f"{spec['names']['plural']}.{names.API_GROUP}"
        assert (spec["group"], spec["scope"]) == (names.API_GROUP, "Namespaced")
        (version,) = spec["versions"]
        assert version["name"] == names.API_VERSION
        assert version["subresources"] == {"status": {}}


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        (names.SANDBOXES_CRD, ["Phase", "Endpoint", "Age"]),
        (names.REPOS_CRD, ["URL", "Synced", "Age"]),
    ],
)
def test_columns(name: str, columns: list[str]) -> None:
    (version,) = DEFINITIONS[name]["spec"]["versions"]
    assert [column["name"] for column in version["additionalPrinterColumns"]] == columns


@pytest.mark.parametrize("name", DEFINITIONS)
def test_every_field_has_a_type_and_a_bound(name: str) -> None:
    unbounded = []
    for path, node in nodes(schema(name)):
        assert "type" in node, path
        assert "x-kubernetes-preserve-unknown-fields" not in node, path
        if path.split(".")[1:2] and path.split(".")[1] in STRUCTURE:
            continue
        bounded = {
            "string": "maxLength" in node or "enum" in node or node.get("format") == "date-time",
            "array": "maxItems" in node and "x-kubernetes-list-type" in node,
            "object": "properties" in node or "maxProperties" in node,
        }
        if not bounded.get(node["type"], True):
            unbounded.append(path)
    assert unbounded == []


@pytest.mark.parametrize("name", DEFINITIONS)
def test_required_fields_exist(name: str) -> None:
    for path, node in nodes(schema(name)):
        assert set(node.get("required", [])) <= set(node.get("properties", {})), path


def test_a_sandbox_holds_no_fragment_of_a_pod() -> None:
    fields = set(schema(names.SANDBOXES_CRD)["properties"]["spec"]["properties"])
    assert fields & POD_FRAGMENTS == set()
    assert (
        schema(names.SANDBOXES_CRD)["properties"]["spec"]["properties"]["runAsUser"]["minimum"] > 0
    )
