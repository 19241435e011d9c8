"""Which of the two dialects a request wants: JSON, or a page for a browser.

JSON is the default. Only an `Accept` that prefers `text/html` gets a page: a program that sends no
header, `*/*`, `application/json` or `text/event-stream` gets what it always got.

Source: spec/runtime.md §1.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_RANGE: Final = re.compile(r"\s*([^;\s]+)\s*(?:;(.*))?", re.S)
_QUALITY: Final = re.compile(r"\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*", re.I)
_HTML: Final = ("text/html", "text/*", "*/*")
_JSON: Final = ("application/json", "application/*", "*/*")


def prefers_html(headers: Iterable[str]) -> bool:
    """Whether a page is wanted more than JSON.

    Args:
        headers: the values of `Accept`, in their order.
    """
    ranges: dict[str, float] = {}
    for part in ",".join(headers).split(","):
        found = _RANGE.fullmatch(part)
        if found is None:
            continue
        quality = 1.0
        for parameter in (found[2] or "").split(";"):
            stated = _QUALITY.fullmatch(parameter)
            if stated is not None:
                quality = float(stated[1])
        name = found[1].lower()
        ranges[name] = max(quality, ranges.get(name, 0.0))
    return _quality(ranges, _HTML) > _quality(ranges, _JSON)


def _quality(ranges: dict[str, float], names: Iterable[str]) -> float:
    """Return how much a type is wanted: what is said of it most exactly counts."""
    return next((ranges[name] for name in names if name in ranges), 0.0)
