"""What a Chart file says: what may differ, what does not parse, what no longer matches."""

from __future__ import annotations

import pytest

from jr2 import charts
from jr2.charts import Unreadable, difference
from tests.charts import ticket

DRAWN = """\
%% made
stateDiagram-v2
    [*] --> a
    state "a" as a {
        [*] --> a__x
        state "x" as a__x
        a__x : runs t
        --
        state "y" as a__y
    }
    state "b" as b
    a --> b : go
    a --> b : go
"""
DRESSED = """\
\ufeff%%{init: {"theme": "dark"}}%%\r
stateDiagram-v2\r
direction LR\r
classDef red fill:#f00\r
\r
[*] --> a\r
state "a" as a {\r
direction TB
[*] --> a__x
state "x" as a__x
\t%% a word
a__x : runs t
--
state "y" as a__y
}
state "b" as b
class b red
style a fill:#0f0
accTitle: a title
a --> b : go
a --> b : go"""


def test_how_it_looks_is_no_difference() -> None:
    assert difference(DRESSED, DRAWN) is None
    assert difference(charts.draw(ticket()), charts.draw(ticket())) is None


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (('    state "b" as b\n', ""), 'it lacks "state "b" as b"'),
        (("    a --> b : go\n", "    a --> b : gone\n"), 'it lacks "a --> b : go"'),
        (
            ('    state "b" as b\n', '    state "b" as b\n    b --> b : again\n'),
            'it holds "b --> b : again", which the Machine has not',
        ),
        (
            (
                '        state "x" as a__x\n        a__x : runs t\n',
                '        a__x : runs t\n        state "x" as a__x\n',
            ),
            "its lines stand in another order",
        ),
    ],
)
def test_the_first_difference_is_named(edit: tuple[str, str], said: str) -> None:
    held = DRAWN.replace(*edit, 1)
    assert held != DRAWN

    assert difference(held, DRAWN) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty"),
        ("%% only a word\n", "it is empty"),
        ("graph TD\n  a --> b\n", 'line 1 is not "stateDiagram-v2", with which a Chart starts'),
        ("stateDiagram-v2\na -> b\n", 'line 2: "a -> b"'),
        ("stateDiagram-v2\n<<<<<<< HEAD\n", 'line 2: "<<<<<<< HEAD"'),
        ("stateDiagram-v2\nnote right of a : x\n", 'line 2: "note right of a : x"'),
        ('stateDiagram-v2\nstate "a" as a {\n', "nothing closes the state that line 2 opens"),
        ("stateDiagram-v2\n}\n", "line 2 closes a state that no line opens"),
        (f"stateDiagram-v2\n{'x' * 500}\n", f'line 2: "{"x" * 120}"'),
        ("stateDiagram-v2\n\x00\x01\n", 'line 2: "\x00\x01"'),
    ],
)
def test_what_does_not_parse_is_named_by_its_line(text: str, said: str) -> None:
    with pytest.raises(Unreadable) as raised:
        difference(text, DRAWN)

    assert str(raised.value) == said
