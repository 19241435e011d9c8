"""`docs/http-api.md`, written from the OpenAPI document alone.

Run `scripts/write-http-api` after a change of a route; a test fails while the page is not current.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

_HEAD: Final = """\
---
title: The HTTP API
description: The routes of the Orchestrator, who may call them, and what each status code means.
---

# The HTTP API

"""
_TAIL: Final = """\
## Read next

- [Durable runs](durable-runs.md)
- [Fix a failed converge](fix-a-failed-converge.md)
"""


def page(document: Mapping[str, Any]) -> str:
    """Return the page.

    Args:
        document: the OpenAPI document.
    """
    parts = [_HEAD, document["info"]["description"], "\n"]
    for tag in document["tags"]:
        parts.append(f"## Band: {tag['name']}\n\n{tag['description']}\n\n")
        for path, methods in document["paths"].items():
            for method, route in methods.items():
                if tag["name"] in route["tags"]:
                    parts.extend(_route(method, path, route))
    parts.append(_TAIL)
    return "".join(parts)


def _route(method: str, path: str, route: Mapping[str, Any]) -> Iterator[str]:
    yield f"### `{method.upper()} {path}`\n\n{_text(route['description'])}\n\n"
    body = route.get("requestBody")
    if body is not None:
        media = ", ".join(body["content"])
        yield f"Body ({media}): {_text(body['description'])}\n\n"
    asked = [each for each in route.get("parameters", []) if each["in"] == "header"]
    if asked:
        yield "| header | meaning |\n| --- | --- |\n"
        for each in asked:
            needed = " Required." if each.get("required") else ""
            yield f"| `{each['name']}` | {_text(each['description'])}{needed} |\n"
        yield "\n"
    yield "| code | answer |\n| --- | --- |\n"
    for code, answer in sorted(route["responses"].items()):
        yield f"| {code} | {_text(answer['description'])} |\n"
    yield "\n"


def _text(text: str) -> str:
    return " ".join(text.split())
