"""Live objects of a real API server, and what derived state must say of each.

Each file in `data/derived` holds a wanted object, the live one after an edit, the fields that
differ, and what is more than wanted.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jr2_infra.derived import derive, differences, healing, live_objects, nothing_more, settled
from jr2_infra.derived.derive import applied
from jr2_infra.resources import Component, KubernetesResource, Program

DATA = Path(__file__).parent / "data" / "derived"
CASES = sorted(DATA.glob("*.json"))


def load(path: Path) -> dict[str, Any]:
    case: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return case


def program_of(*objects: dict[str, Any]) -> Program:
    return Program(
        project="jr2",
        stack="demo.0123456789ab",
        components=(Component(name="part", type="Part"),),
        resources=tuple(
            KubernetesResource(name=f"object-{at}", object=obj, component="part")
            for at, obj in enumerate(objects)
        ),
    )


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_what_differs_is_named_with_its_manager(path: Path) -> None:
    case = load(path)

    assert changes(case["wanted"], case["live"]) == case["differences"]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_what_is_more_is_named_with_its_manager(path: Path) -> None:
    case = load(path)

    assert [str(more) for more in nothing_more(case["wanted"], case["live"])] == case["more"]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_no_value_of_another_manager_is_said_to_be_ours(path: Path) -> None:
    """The engine would send it back as our own; of a Secret it would stand in clear."""
    case = load(path)
    by_others = {"evil", "EVIL", "CANARY", "Q0FOQVJZ", "1.2.3.4", "NET_ADMIN", "hostPath"}
    if "Q0FOQVJZ" in json.dumps(case["wanted"]):
        by_others.discard("Q0FOQVJZ")

    for said in (derive(case["wanted"], case["live"]), applied(case["wanted"], case["live"])):
        assert [word for word in by_others if word in json.dumps(said)] == []


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_healing_leaves_nothing_more(path: Path) -> None:
    case = load(path)
    patch = healing(case["live"], nothing_more(case["wanted"], case["live"]))

    version = case["live"]["metadata"]["resourceVersion"]
    assert patch[0] == {"op": "test", "path": "/metadata/resourceVersion", "value": version}
    healed = json.loads(json.dumps(case["live"]))
    for operation in patch[1:]:
        put(healed, operation["path"], operation.get("value"))
    assert nothing_more(case["wanted"], healed) == []
    before = tuple(path for path, _, _ in case["differences"])
    assert all(path.startswith(before) for path, _, _ in changes(case["wanted"], healed))


@pytest.mark.parametrize("value", ["true", "by hand"])
def test_of_a_crd_only_the_value_counts_since_the_engine_replaces_it(value: str) -> None:
    """Another manager owns an annotation now; replacing the same value does not take it back."""
    case = load(DATA / "unchanged-customresourcedefinition.json")
    live, name = case["live"], "pulumi.com/skipAwait"
    live["metadata"]["annotations"][name] = value
    owned: dict[str, Any] = {"f:metadata": {"f:annotations": {f"f:{name}": {}}}}
    for entry in live["metadata"]["managedFields"]:
        entry["fieldsV1"].get("f:metadata", {}).get("f:annotations", {}).pop(f"f:{name}", None)
    live["metadata"]["managedFields"].append(
        {"manager": "co-owner", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": owned}
    )

    found = changes(case["wanted"], live)

    path = f'metadata.annotations["{name}"]'
    assert found == ([] if value == "true" else [[path, "update", ["co-owner"]]])


def test_an_empty_value_that_another_took_from_a_crd_is_named() -> None:
    """An empty `status` makes the subresource, so that it is gone says something."""
    case = load(DATA / "unchanged-customresourcedefinition.json")
    wanted, live = case["wanted"], case["live"]
    assert wanted["spec"]["versions"][0]["subresources"] == {"status": {}}
    (entry,) = live["metadata"]["managedFields"]
    versions = entry["fieldsV1"]["f:spec"].pop("f:versions")
    live["metadata"]["managedFields"].append(
        {
            "manager": "other",
            "operation": "Update",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:versions": versions}},
        }
    )

    assert changes(wanted, live) == [], "the values are still those that are wanted"
    live["spec"]["versions"][0]["subresources"] = {}

    assert changes(wanted, live) == [["spec.versions", "update", ["other"]]]


def changes(wanted: dict[str, Any], obj: dict[str, Any]) -> list[list[Any]]:
    live = live_objects([obj])
    found = differences(settled(program_of(wanted), live), live)
    assert all(difference.operation == "update" for difference in found)
    return [[change.path, change.kind, list(change.by)] for d in found for change in d.fields]


def put(obj: Any, pointer: str, value: Any) -> None:
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    for part in parents:
        obj = obj[int(part)] if isinstance(obj, list) else obj[part]
    key: Any = int(last) if isinstance(obj, list) else last
    if value is None:
        del obj[key]
    else:
        obj[key] = value
