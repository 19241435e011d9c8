"""The page of the HTTP API is what the routes say."""

from __future__ import annotations

from pathlib import Path

from jr2_runtime.orchestrator.api.app import document
from jr2_runtime.orchestrator.api.page import page

PAGE = Path(__file__).parents[2] / "docs" / "http-api.md"

AGAIN = {("post", "/assemblies/{hash}/missing"), ("post", "/blobs"), ("put", "/blobs/{sha256}")}
"""Routes that may be asked again without a key: a question, and blobs by their digests (ADR-0118)."""


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(document()), "run scripts/write-http-api"


def test_each_route_says_what_it_answers_and_whom_it_opens_to() -> None:
    stated = document()
    for path, methods in stated["paths"].items():
        for method, route in methods.items():
            answers = route["responses"]
            assert "421" in answers, (method, path)
            assert len(route["tags"]) == 1, (method, path)
            guarded = route["tags"] != ["open"]
            assert ("401" in answers) is guarded, (method, path)
            assert (route["security"] != []) is guarded, (method, path)
            named = [each["name"] for each in route.get("parameters", [])]
            is_once = method != "get" and (method, path) not in AGAIN
            assert ("Idempotency-Key" in named) is is_once, (method, path)
            for code, answer in answers.items():
                assert answer["description"], (method, path, code)
                if int(code) >= 400:
                    schema = answer["content"]["application/json"]["schema"]
                    name = schema["$ref"].rpartition("/")[2]
                    assert name in ("ErrorBody", "PublishRefused"), (method, path, code)
