"""Open parts: each refusal with its whole text, and each printed line binds its part."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

import jr2
from jr2 import OPEN, BuiltMachine, Command, Http
from jr2.parts.open_parts import find, refusals

if TYPE_CHECKING:
    from .conftest import Built, MakeBody, Wrap

BIND = "bind it where the Machine is registered: machine = customize(<import>, "


def test_every_open_part_is_said_with_the_line_that_binds_it(everything: Built) -> None:
    w = 'workflow "w" leaves '
    composed = '(on the Machine composed as "review")'
    deep = '(on the Machine composed as "review" → "deep")'
    nested = 'actors={"review": {"actors": {"deep": {'
    assert refusals("w", everything) == [
        f'{w}Repo Slot "app" open — {BIND}repos={{"app": "<url>"}})  (ADR-0051)',
        f'{w}Agent "coder" open — {BIND}agents={{"coder": {{"model": "<provider>/<model>"}}}})  '
        "(ADR-0054)",
        f'{w}the url and secret of Effect "hook" open — {BIND}effects={{"hook": {{"url": '
        '"https://<host>/<path>", "secret": "<name>"}})  (ADR-0054)',
        f'{w}the secret of Effect "tests" open — {BIND}effects={{"tests": {{"secret": "<name>"}}}})'
        "  (ADR-0054)",
        f'{w}Agent "coder" open {composed} — {BIND}actors={{"review": {{"agents": {{"coder": '
        '{"model": "<provider>/<model>"}}}})  (ADR-0054)',
        f'{w}its Repo Slots open {deep} — {BIND}{nested}"repos": {{"<slot>": "<url>"}}}}}}}}}})  '
        "(ADR-0051)",
        f'{w}Agent "coder" open {deep} — {BIND}{nested}"agents": {{"coder": {{"model": '
        '"<provider>/<model>"}}}}}})  (ADR-0054)',
        f'{w}the argv of Effect "sh" open {deep} — {BIND}{nested}"effects": {{"sh": {{"argv": '
        '["<program>", "<arg>"]}}}}}})  (ADR-0054)',
        f'{w}Agent "coder" open on a Machine invoked inline — no customize() reaches an actor '
        'without a slot key; declare it with .child("<slot>", …) and bind it there  '
        "(ADR-0049, ADR-0054)",
    ]


def test_a_whole_map_of_slots_on_the_registered_machine(make: MakeBody, wrap: Wrap) -> None:
    assert refusals("w", wrap(make(), repos=OPEN)) == [
        f'workflow "w" leaves its Repo Slots open — {BIND}repos={{"<slot>": "<url>"}})  (ADR-0051)'
    ]


@pytest.mark.parametrize(
    ("definition", "parts", "sample"),
    [
        (Http(url=OPEN), "url", '"url": "https://<host>/<path>"'),
        (Command(argv=OPEN), "argv", '"argv": ["<program>", "<arg>"]'),
        (
            Command(argv=OPEN, secret=OPEN),
            "argv and secret",
            '"argv": ["<program>", "<arg>"], "secret": "<name>"',
        ),
    ],
)
def test_each_open_field_of_an_effect_has_a_sample(
    make: MakeBody, definition: Any, parts: str, sample: str
) -> None:
    assert refusals("w", make(effects={"e": definition})) == [
        f'workflow "w" leaves the {parts} of Effect "e" open — {BIND}effects={{"e": {{{sample}}}}})'
        "  (ADR-0054)"
    ]


VALUES = {
    "<slot>": "app",
    "<url>": "https://github.com/you/app.git",
    "<provider>/<model>": "local/qwen",
    "https://<host>/<path>": "https://example.com/hook",
    "<program>": "make",
    "<arg>": "test",
    "<name>": "HOOK_TOKEN",
    "<import>": "it",
}


def pasted(refusal: str, machine: Built) -> Built:
    """Run the line that a refusal prints, with a value in the place of each `<…>`."""
    (line,) = re.findall(r"(machine = customize\(.*\))  \(ADR-\d+\)$", refusal)
    for sample, value in VALUES.items():
        line = line.replace(sample, value)
    names: dict[str, Any] = {"it": machine, "customize": jr2.customize}
    exec(compile(line, "workflows/w.py", "exec"), names)
    made = names["machine"]
    assert isinstance(made, BuiltMachine)
    return made


def test_each_printed_line_binds_its_part_and_no_other(everything: Built) -> None:
    reachable = [part for part in find(everything) if not part.inline]
    assert len(reachable) == 8
    for number, refusal in enumerate(refusals("w", everything)[:8]):
        bound = pasted(refusal, everything)

        left = [part.what for part in find(bound)]
        expected = [part.what for part in find(everything)]
        del expected[number]
        assert left == expected


def test_all_lines_together_leave_what_is_inline(everything: Built) -> None:
    machine = everything
    for refusal in refusals("w", everything)[:8]:
        machine = pasted(refusal, machine)

    assert [part.inline for part in find(machine)] == [True]
    assert machine.shape() == everything.shape()


def test_what_is_bound_is_not_refused(make: MakeBody, wrap: Wrap) -> None:
    assert refusals("w", wrap(make(), repos={"app": lambda door: door.ticket})) == []
