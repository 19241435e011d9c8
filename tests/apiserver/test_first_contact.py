"""The question before a namespace is used for the first time, on a real terminal.

Source: seed 003 (Rules), spec/converge.md §2.6 and §6.1.
"""

from __future__ import annotations

import contextlib
import os
import pty
import select
import subprocess
import time
from collections.abc import Mapping
from typing import Final

import pytest

from jr2 import names
from tests.apiserver.conftest import BIN, Instance, NewInstance
from tests.apiserver.server import ApiServer
from tests.waiting import LIMIT

# The platform is refused in step 8, so a yes is followed by the namespace and by nothing else.
CONFIG: Final = 'from jr2 import Config\n\nconfig = Config(platforms=["linux/s390x"])\n'
REFUSED: Final = "error: `platforms` names linux/s390x — the kit releases images for "


def up_on_a_terminal(instance: Instance, server: ApiServer, answer: str) -> tuple[int, list[str]]:
    """Run `jr2 up` on a terminal, give one answer, and return the exit code and what it showed."""
    terminal, end = pty.openpty()
    shown, answered, limit = b"", False, time.monotonic() + LIMIT
    with contextlib.ExitStack() as opened:
        opened.callback(os.close, terminal)
        try:
            process = opened.enter_context(
                subprocess.Popen(
                    [str(BIN / "jr2"), "up"],
                    cwd=instance.folder,
                    env={**os.environ, "KUBECONFIG": str(server.kubeconfig), "TERM": "dumb"},
                    stdin=end,
                    stdout=end,
                    stderr=end,
                    start_new_session=True,
                )
            )
        finally:
            os.close(end)
        opened.callback(process.kill)
        while time.monotonic() < limit:
            ready, _, _ = select.select([terminal], [], [], 1.0)
            try:
                shown += os.read(terminal, 65536) if ready else b""
            except OSError:  # The other side is closed: the command has ended.
                break
            if not answered and shown.endswith(b"[y/N] "):
                os.write(terminal, f"{answer}\n".encode())
                answered = True
        code = process.wait(timeout=LIMIT)
    return code, shown.decode().replace("\r\n", "\n").splitlines()


def labels(server: ApiServer, name: str) -> Mapping[str, str] | None:
    found = server.get(f"/api/v1/namespaces/{name}")
    return None if found is None else (found["metadata"].get("labels") or {})


@pytest.fixture(scope="module")
def asked(new_instance: NewInstance) -> Instance:
    """One Instance for the tests that leave no namespace behind."""
    return new_instance("asked")


@pytest.mark.parametrize("answer", ["", "n", "yep"])
def test_any_other_answer_than_yes_changes_nothing(
    asked: Instance, api_server: ApiServer, answer: str
) -> None:
    code, shown = up_on_a_terminal(asked, api_server, answer)

    question = (
        'first contact: deploy instance "asked" to context tests (create namespace "asked")? [y/N] '
    )
    assert shown[-2:] == [question + answer, "aborted — nothing was changed"]
    assert code == 1
    assert labels(api_server, "asked") is None


@pytest.mark.parametrize("answer", ["y", "YES"])
def test_yes_makes_the_namespace_and_goes_on(
    new_instance: NewInstance, api_server: ApiServer, answer: str
) -> None:
    name = f"made-{answer.lower()}"
    instance = new_instance(name)
    instance.write("jr2_config.py", CONFIG)

    code, shown = up_on_a_terminal(instance, api_server, answer)

    assert (shown[-1][: len(REFUSED)], code) == (REFUSED, 1)
    assert (labels(api_server, name) or {})[names.LABEL_INSTANCE] == name
    # The namespace is the Instance's now, so the next run asks nothing.
    assert "first contact" not in instance.up(api_server)


def test_a_namespace_without_an_owner_is_adopted_and_keeps_its_labels(
    new_instance: NewInstance, api_server: ApiServer
) -> None:
    api_server.add_namespace("theirs", {"team": "green"})
    instance = new_instance("theirs")
    instance.write("jr2_config.py", CONFIG)

    code, shown = up_on_a_terminal(instance, api_server, "n")
    assert shown[-2:] == [
        'first contact: deploy instance "theirs" to context tests '
        '(adopt existing namespace "theirs")? [y/N] n',
        "aborted — nothing was changed",
    ]
    assert (code, names.LABEL_INSTANCE in (labels(api_server, "theirs") or {})) == (1, False)

    code, shown = up_on_a_terminal(instance, api_server, "y")
    assert shown[-1][: len(REFUSED)] == REFUSED
    found = labels(api_server, "theirs") or {}
    assert (code, found[names.LABEL_INSTANCE], found["team"]) == (1, "theirs", "green")


def test_with_no_terminal_the_question_is_said_and_answered_no(
    asked: Instance, api_server: ApiServer
) -> None:
    done = asked.jr2("up", code=1, kubeconfig=api_server.kubeconfig)

    assert done.stderr.splitlines()[-2:] == [
        'first contact: deploy instance "asked" to context tests '
        '(create namespace "asked")? — not a tty; pass --yes to proceed non-interactively',
        "aborted — nothing was changed",
    ]
    assert labels(api_server, "asked") is None
