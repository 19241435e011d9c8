"""The record of what was made is written over the one that was read, and over no other."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from jr2 import names
from jr2.errors import StepFailed
from jr2_infra.api import Api
from jr2_infra.made import Made, keep

NEW = Made(uids={"Secret/a": "1"})


class Namespaces:
    """The Namespace `demo` of an API server that guards its version."""

    def __init__(self, record: str | None) -> None:
        self.annotations: dict[str, str] = {"theirs": "kept"}
        if record is not None:
            self.annotations[names.ANNOTATION_MADE] = record
        self.version = 1
        self.writes: list[dict[str, Any]] = []
        self.before_write: Callable[[], None] = lambda: None
        self.refusal: int | None = None

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        assert request.url.path == "/api/v1/namespaces/demo"
        if request.method == "PATCH":
            return self._write(request)
        metadata = {"resourceVersion": str(self.version), "annotations": dict(self.annotations)}
        return httpx2.Response(200, json={"metadata": metadata})

    def _write(self, request: httpx2.Request) -> httpx2.Response:
        self.before_write()
        assert request.url.params["fieldManager"] == names.RECORD_MANAGER
        body = json.loads(request.content)
        self.writes.append(body)
        if self.refusal is not None:
            return httpx2.Response(self.refusal, json={"message": "no"})
        if body["metadata"]["resourceVersion"] != str(self.version):
            return httpx2.Response(409, json={"message": "changed"})
        self.annotations |= body["metadata"]["annotations"]
        self.version += 1
        return httpx2.Response(200, json={})

    def keep(self, made: Made, *, over: str | None) -> str:
        with httpx2.Client(base_url="http://api", transport=httpx2.MockTransport(self)) as http:
            return keep(Api(http), "demo", made, over=over)


@pytest.mark.parametrize("over", [None, Made(uids={"Secret/b": "2"}).text(), "not a record"])
def test_it_is_written_over_what_was_read(over: str | None) -> None:
    found = Namespaces(over)

    assert found.keep(NEW, over=over) == NEW.text()

    assert found.annotations == {"theirs": "kept", names.ANNOTATION_MADE: NEW.text()}


def test_what_stands_already_is_not_written() -> None:
    found = Namespaces(NEW.text())
    assert found.keep(NEW, over=NEW.text()) == NEW.text()
    assert found.writes == []


def test_another_writer_of_the_namespace_is_no_hindrance() -> None:
    found = Namespaces(None)

    def once() -> None:
        found.before_write = lambda: None
        found.version += 1

    found.before_write = once
    found.keep(NEW, over=None)
    assert len(found.writes) == 2
    assert found.annotations[names.ANNOTATION_MADE] == NEW.text()


@pytest.mark.parametrize("read", [None, Made().text()])
def test_the_record_of_another_run_is_never_overwritten(read: str | None) -> None:
    other = Made(uids={"Secret/c": "3"}).text()
    found = Namespaces(other)
    with pytest.raises(StepFailed, match="another run wrote it meanwhile"):
        found.keep(NEW, over=read)
    assert found.writes == []

    late = Namespaces(read)

    def meanwhile() -> None:
        late.annotations[names.ANNOTATION_MADE] = other
        late.version += 1

    late.before_write = meanwhile
    with pytest.raises(StepFailed, match="another run wrote it meanwhile"):
        late.keep(NEW, over=read)
    assert late.annotations[names.ANNOTATION_MADE] == other


@pytest.mark.parametrize(
    ("status", "words"), [(403, ": no — run"), (409, "changed each time it was to be written")]
)
def test_what_cannot_be_written_ends_the_converge(status: int, words: str) -> None:
    found = Namespaces(None)
    found.refusal = status
    with pytest.raises(StepFailed, match=words):
        found.keep(NEW, over=None)


def test_a_connection_that_is_cut_without_a_word_is_told_by_its_name() -> None:
    found = Namespaces(None)

    def cut() -> None:
        raise httpx2.ReadError("")

    found.before_write = cut
    with pytest.raises(StepFailed, match=r"the API server stopped answering \(ReadError\) — run"):
        found.keep(NEW, over=None)
