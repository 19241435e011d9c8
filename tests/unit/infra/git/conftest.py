"""A person who answers, and Workflows as the walk tells them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest

from jr2 import repo_identity
from jr2.walk import WalkedEffect, WalkedParts, WalkedPush, WalkedRepo, WalkedSandbox
from jr2_infra.facts.instance import WorkflowFacts


class Person:
    """A person at a terminal: gets lines and questions, and gives the answers of a test."""

    def __init__(self, picks: str | None = None, says: str = "") -> None:
        self.seen: list[str] = []
        self._picks = picks
        self._says = says

    def line(self, text: str, *, code: str = "line") -> None:
        self.seen += text.splitlines()

    def warning(self, text: str, *, code: str = "warning") -> None:
        self.seen.append(text)

    def progress(self, text: str | None) -> None:
        pass

    def confirm(self, question: str) -> bool:
        return True

    def choose(self, question: str, options: Sequence[str]) -> int | None:
        self.seen += [question, *options]
        if self._picks is None:
            return None
        return next(i for i, text in enumerate(options) if text.startswith(self._picks))

    def ask(self, question: str) -> str:
        self.seen.append(question)
        return self._says

    def ask_hidden(self, question: str, end: re.Pattern[str]) -> str:
        self.seen.append(question)
        lines = self._says.splitlines(keepends=True)
        last = next((i for i, text in enumerate(lines) if end.fullmatch(text.rstrip())), None)
        return "".join(lines if last is None else lines[: last + 1])


MakeWorkflow = Callable[..., WorkflowFacts]


@pytest.fixture
def make_workflow() -> MakeWorkflow:
    """Make what the walk says of a Workflow that binds and pushes Repos."""

    def make(*urls: str, pushes: Sequence[str | None] = ()) -> WorkflowFacts:
        repos = [(url, repo_identity.identify(url)) for url in urls]
        effect = WalkedEffect(slot="ship", kind="push", place="sandbox-effector", secret=None)
        return WorkflowFacts(
            name="w",
            file="workflows/w.py",
            machine_id="w",
            input=None,
            shape="0" * 12,
            document={},
            parts=WalkedParts(
                repos=[
                    WalkedRepo(url=url, identity=one.identity, key=one.key, way=one.way)
                    for url, one in repos
                ],
                effects=[effect] if pushes else [],
                sandboxes=[
                    WalkedSandbox(
                        path=[],
                        route=[],
                        image=None,
                        user=None,
                        effector=bool(pushes),
                        memory="2Gi",
                        cpu="1",
                        pushes=[WalkedPush(slot=f"s{i}", url=url) for i, url in enumerate(pushes)],
                    )
                ],
            ),
        )

    return make
