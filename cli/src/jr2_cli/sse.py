"""Server-sent events: lines in, events out.

Pure: it reads no socket and knows no run. A comment is dropped, a field that is not known is
ignored, and an event that the end of the stream cuts off is never given out.

Source: spec/runtime.md §1.5, libraries.md §3 (row SSE client), the HTML standard's event streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of a stream.

    Args:
        name: its kind; `message` when the stream names none.
        data: its data, lines joined.
        id: the last id that the stream gave, to resume after it.
    """

    name: str
    data: str
    id: str = ""


def events(lines: Iterable[str]) -> Iterator[Event]:
    """Give out each event of a stream.

    Args:
        lines: the lines of the stream, without their ends, as they come.
    """
    name, data, last_id = "", list[str](), ""
    first = True
    for line in lines:
        if first:
            line, first = line.removeprefix("\ufeff"), False
        if not line:
            if data:
                yield Event(name=name or "message", data="\n".join(data), id=last_id)
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match field:
            case "event":
                name = value
            case "data":
                data.append(value)
            case "id" if "\0" not in value:
                last_id = value
            case _:
                # A comment (an empty field), `retry`, or a field of a later version.
                pass
