"""The pure parts of the Console, asked in a page of it: fields, lights, parked Gates, frames."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import pytest
from pydantic import BaseModel, Field

from jr2.document import document
from tests.charts import ticket

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.browser.conftest import Console
    from tests.browser.driver import Page

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def page(served_console: Console) -> Iterator[Page]:
    made = served_console.open()
    yield made
    assert made.said == []


def call(page: Page, module: str, script: str, **given: Any) -> Any:
    """Return what an expression gives that sees the names of a module, and what is given."""
    names = ", ".join(given)
    values = ", ".join(json.dumps(value) for value in given.values())
    return page.run(
        f"import('/assets/{module}.js').then((own) => (({names}) => {script})({values}))"
    )


class Inner(BaseModel):
    """Inside."""

    deep: int


class Asked(BaseModel):
    """Every kind of field."""

    text: str
    maybe: str | None = None
    whole: int = Field(default=3, title="A whole number")
    part: float
    yes: bool = True
    one: Literal["a"] = "a"
    some: Literal["a", 2] | None = None
    inner: Inner
    perhaps: Inner | None = None
    either: int | str
    many: list[int] = []
    table: dict[str, int]


def test_the_fields_of_a_schema(page: Page) -> None:
    told = call(page, "schema", "own.fields(schema)", schema=Asked.model_json_schema())
    kinds = {each["name"]: (each["kind"], each["required"], each["nullable"]) for each in told}

    assert kinds == {
        "text": ("text", True, False),
        "maybe": ("text", False, True),
        "whole": ("integer", False, False),
        "part": ("number", True, False),
        "yes": ("boolean", False, False),
        "one": ("choice", False, False),
        "some": ("choice", False, True),
        "inner": ("group", True, False),
        "perhaps": ("json", False, True),
        "either": ("json", True, False),
        "many": ("json", False, False),
        "table": ("json", True, False),
    }
    titles = {each["name"]: each["title"] for each in told}
    assert titles["whole"] == "A whole number"


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {"type": "string"},
        {"type": "object"},
        {"$ref": "#/$defs/nobody"},
        {"$ref": "#", "$defs": {}},
        {"type": "object", "properties": {}, "additionalProperties": True},
    ],
)
def test_what_no_form_can_ask_is_asked_as_json(page: Page, schema: Any) -> None:
    assert call(page, "schema", "own.fields(schema)", schema=schema) is None


def test_a_schema_that_holds_itself_ends(page: Page) -> None:
    schema = {"$ref": "#/$defs/T", "$defs": {"T": {"type": "object", "properties": {}}}}
    schema["$defs"]["T"]["properties"]["t"] = {"$ref": "#/$defs/T"}  # type: ignore[index]

    told = call(page, "schema", "own.fields(schema)", schema=schema)
    depth = 0
    while told and told[0]["kind"] == "group":
        told, depth = told[0]["fields"], depth + 1
    assert (depth, told[0]["kind"]) == (3, "json")


@pytest.mark.parametrize(
    ("kind", "answer", "given"),
    [
        ("text", "", ""),
        ("text", " x ", " x "),
        ("integer", "3", 3),
        ("integer", "3.5", "refused"),
        ("integer", "", "refused"),
        ("integer", "9007199254740993", "refused"),
        ("number", "1e400", "refused"),
        ("number", "-0.5", -0.5),
        ("json", '{"a": [1]}', {"a": [1]}),
        ("json", "{a}", "refused"),
        ("choice", "1", 2),
        ("choice", "", "refused"),
    ],
)
def test_the_value_of_an_answer(page: Page, kind: str, answer: str, given: Any) -> None:
    asked = {"kind": kind, "title": "It", "required": True, "nullable": False, "options": ["a", 2]}
    script = (
        "{ try { return own.value(asked, answer) } catch (failed) {"
        " if (failed instanceof own.BadAnswer) return 'refused'; throw failed } }"
    )

    assert given == call(page, "schema", script, asked=asked, answer=answer)


def lit(page: Page, value: Any, children: list[dict[str, Any]]) -> dict[str, int]:
    found = call(
        page,
        "machine",
        "Object.fromEntries(own.lights(machine, value, children))",
        machine=document(ticket()),
        value=value,
        children=children,
    )
    assert isinstance(found, dict)
    return found


def test_regions_and_children_are_lit(page: Page) -> None:
    value = {"working": {"checks": {"lint": "run", "test": "ok"}}}
    assert lit(page, value, []) == {
        "": 1,
        "working": 1,
        "working.checks": 1,
        "working.checks.lint": 1,
        "working.checks.lint.run": 1,
        "working.checks.test": 1,
        "working.checks.test.ok": 1,
    }

    child = {"id": "sub", "src": "sub", "status": "active", "value": "work", "children": []}
    items = [{**child, "id": name, "src": "each"} for name in ("a", "b")]
    over = {**items[0], "id": "c", "status": "done", "value": "end"}
    assert lit(page, "delegating", [child, *items, over]) == {
        "": 1,
        "delegating": 1,
        "delegating/sub": 1,
        "delegating/sub:work": 1,
        "delegating/each": 2,
        "delegating/each:work": 2,
    }


@pytest.mark.parametrize("value", [None, {}, "nobody", "__proto__", {"constructor": "x"}, 7, [1]])
def test_a_value_that_the_machine_does_not_have_lights_nothing(page: Page, value: Any) -> None:
    assert set(lit(page, value, [])) <= {"", "__proto__", "constructor"}


@pytest.mark.parametrize(
    ("path", "key"),
    [
        (["review"], "review"),
        (["working", "coding"], "working.coding"),
        (["b", "work"], "delegating/each:work"),
        (["nobody", "work"], None),
        ([], None),
    ],
)
def test_where_a_gate_is_parked(page: Page, path: list[str], key: str | None) -> None:
    child = {"id": "b", "src": "each", "status": "active", "value": "work", "children": []}
    found = call(
        page,
        "machine",
        "own.parkedAt(machine, value, children, path)",
        machine=document(ticket()),
        value="delegating",
        children=[child],
        path=path,
    )

    assert key == found


def test_frames_that_come_in_pieces(page: Page) -> None:
    stream = (
        'retry: 2000\nevent: runs\ndata: [1]\n\n:\n\nevent: status\ndata: {"a":\ndata: "é"}\n\n'
    )
    script = (
        "{ const heard = []; const take = own.frames((event, data) => heard.push([event, data]));"
        " for (let at = 0; at < stream.length; at += size) take(stream.slice(at, at + size));"
        " return heard }"
    )

    for size in (1, 3, 1000):
        heard = call(page, "http", script, stream=stream, size=size)
        assert heard == [["runs", [1]], ["status", {"a": "é"}]]


def test_a_machine_of_many_states_is_laid_out(page: Page) -> None:
    """Every kind of box, and more of them than anybody reads at once."""
    machine = document(ticket())
    many = {
        "machine": "many",
        "initial": "s0",
        "on": [{"event": "reset", "targets": ["s0"], "guarded": False}],
        "events": [],
        "machines": {},
        "opaqueStates": [],
        "states": [
            {
                "key": f"s{at}",
                "id": f"s{at}",
                "type": "atomic",
                "invokes": [],
                "on": [
                    {"event": f"e{to}", "targets": [f"s{(at * 7 + to) % 120}"], "guarded": False}
                    for to in range(2)
                ],
            }
            for at in range(120)
        ],
    }
    for given in (machine, many):
        placed = page.run(
            "Promise.all([import('/assets/machine.js'), import('/assets/layout.js')]).then(async"
            " ([machine, layout]) => {"
            f" const shown = machine.picture({json.dumps(given)}, () => false);"
            " const placed = await layout.place(shown, {width: 800, height: 800});"
            " const arrows = shown.arrows.filter((one) => !placed.arrows.has(one.name));"
            " return [placed.boxes.size, shown.arrows.length, arrows.length] })"
        )
        assert placed[0] > 20
        assert placed[1] > 20
        assert placed[2] == 0, "an arrow has no place"
