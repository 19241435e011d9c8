"""The verbs of runs through the process, against an Orchestrator that speaks `jr2.wire`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from jr2 import names, wire
from tests.unit.cli.conftest import HASH, OTHER_RUN, RUN, TOKEN, run_status

if TYPE_CHECKING:
    from tests.unit.cli.conftest import FarOrchestrator, Jr2

DONE = run_status("done", value="done", output={"reply": "pong: hi"})
"""How a run of the scaffolded Workflow settles."""


def test_run_attaches_shows_what_happens_and_prints_how_it_settled(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str]
) -> None:
    far.feeds = [
        [
            ("status", run_status(value="thinking")),
            ("emit", {"type": "note", "payload": {"text": "é [b]"}}),
            ("retry", {"kind": "retry", "child": "coder", "attempt": 2, "reason": "busy"}),
            ("pick", {"kind": "pick", "status": "error"}),
            ("status", DONE),
        ]
    ]

    said = jr2("run", "ping", "--input", '{"message":"hi"}', env=at)

    assert said.code == 0
    assert said.stderr.splitlines() == [
        f"→ {far.url}",
        f"run {RUN} (ping) — attached",
        '  → active "thinking"',
        '  emit {"type":"note","payload":{"text":"é [b]"}}',
        "  retry coder attempt 2 (busy)",
        '  → done "done"',
    ]
    assert said.stdout.count("\n") == 1
    assert json.loads(said.stdout) == DONE
    assert ("POST", "/workflows/ping/runs", {"message": "hi"}) in far.asked
    assert TOKEN not in said.stdout + said.stderr


@pytest.mark.parametrize(
    ("status", "code"), [("done", 0), ("cancelled", 0), ("error", 1), ("drifted", 0), ("lost", 0)]
)
def test_the_exit_code_of_run_says_whether_the_run_ended_in_an_error(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str], status: str, code: int
) -> None:
    far.feeds = [[("status", run_status(status))]]

    said = jr2("run", "ping", env=at)

    assert said.code == code
    assert json.loads(said.stdout)["status"] == status


def test_run_detached_prints_the_id_and_leaves(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str]
) -> None:
    said = jr2("run", "ping", "--detach", env=at)

    assert (said.code, said.stdout) == (0, f'{{"runId": "{RUN}"}}\n')
    assert said.stderr == f"→ {far.url}\n"


def test_run_attaches_again_when_the_connection_breaks_and_says_so_once(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str]
) -> None:
    waiting = run_status(value="waiting")
    far.feeds = [
        [("status", waiting)],
        [("status", waiting)],
        [("status", waiting), ("status", DONE)],
    ]

    said = jr2("run", "ping", env=at)

    assert said.code == 0
    assert said.stderr.splitlines() == [
        f"→ {far.url}",
        f"run {RUN} (ping) — attached",
        '  → active "waiting"',
        "  the connection to the Orchestrator broke — the run goes on, attaching again",
        '  → done "done"',
    ]
    assert [path for _, path, _ in far.asked].count("/workflows/ping/runs") == 1


def test_an_unknown_workflow_is_named_with_what_is_deployed(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str]
) -> None:
    said = jr2("run", "pnig", env=at)

    assert (said.code, said.stdout) == (1, "")
    assert said.stderr.splitlines() == [
        f"→ {far.url}",
        'error: no workflow "pnig" (ping)',
        f"  this instance runs jr2 {names.KIT_VERSION} (assembly 87cddbde1271), this command is "
        f"jr2 {names.KIT_VERSION} — `jr2 up` converges it",
    ]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("", '""'),
        ("../ping", '"../ping"'),
        ("a/b", '"a/b"'),
        ("..", '".."'),
        ("ping/runs", '"ping/runs"'),
        ("ping?x=1", '"ping?x=1"'),
        ("pïng", '"pïng"'),
        ("a\nb", r'"a\nb"'),
    ],
)
def test_what_can_name_no_workflow_is_an_unknown_one(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str], name: str, shown: str
) -> None:
    said = jr2("run", name, env=at)

    assert (said.code, said.stdout) == (1, "")
    assert said.stderr.splitlines()[1:2] == [
        f"error: no workflow {shown} — workflows: ping, review"
    ]
    assert not any(method == "POST" for method, _, _ in far.asked)


@pytest.mark.parametrize(("status", "hinted"), [(404, True), (405, True), (400, False)])
def test_an_instance_of_another_version_is_named_where_it_explains(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str], status: int, hinted: bool
) -> None:
    far.health = wire.Health(version="0.9.0", hash=None)
    far.answers[("GET", "/runs")] = (status, {"error": "what?"})

    said = jr2("runs", env=at)

    assert said.code == 1
    hint = (
        f"  this instance runs jr2 0.9.0, this command is jr2 {names.KIT_VERSION} — `jr2 up` "
        "converges it"
    )
    assert said.stderr.splitlines()[1:] == ["error: what?", *([hint] if hinted else [])]


def test_a_token_that_is_not_accepted_is_not_shown(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str]
) -> None:
    said = jr2("runs", env={**at, names.ENV_TOKEN: "CANARY-other"})

    assert (said.code, said.stdout) == (1, "")
    assert said.stderr.splitlines()[1:] == [
        "error: 127.0.0.1 does not accept the Instance token (HTTP 401) — JR2_TOKEN gives another "
        "one"
    ]


@pytest.mark.parametrize("token", ["CANARY\nx", "CANARY\xe9", "CANARY "])
def test_a_token_that_no_header_carries_is_not_sent_and_not_shown(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str], token: str
) -> None:
    said = jr2("runs", env={**at, names.ENV_TOKEN: token})

    assert (said.code, said.stdout) == (1, "")
    assert said.stderr == (
        "error: JR2_TOKEN holds a character a header cannot carry (outside printable ASCII) or "
        "leading or trailing space — a pasted newline, most likely; the value itself is not shown\n"
    )


@pytest.mark.parametrize("address", ["http://me:CANARY@127.0.0.1:1", "http://me:CANARY@[::1"])
def test_the_user_of_an_address_is_not_shown(jr2: Jr2, address: str) -> None:
    said = jr2("runs", "--url", address, env={names.ENV_TOKEN: TOKEN})

    assert said.code != 0
    assert f"→ {address.replace('me:CANARY@', '')}\n" in said.stderr
    assert "CANARY" not in said.stderr


def test_a_refused_input_is_the_orchestrators_own_words(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str]
) -> None:
    far.answers[("POST", "/workflows/ping/runs")] = (
        400,
        {"error": 'workflow "ping": input.message: Field required'},
    )

    said = jr2("run", "ping", env=at)

    assert said.code == 1
    assert said.stderr.splitlines()[1:] == ['error: workflow "ping": input.message: Field required']


def test_runs_lists_the_live_runs(jr2: Jr2, far: FarOrchestrator, at: dict[str, str]) -> None:
    said = jr2("runs", env=at)

    assert said.code == 0
    assert json.loads(said.stdout) == [run_status()]
    assert said.stdout.count("\n") == 1


def test_an_option_names_the_orchestrator_before_the_environment(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str]
) -> None:
    said = jr2("runs", "--url", f"{far.url}/", env={**at, names.ENV_URL: "http://127.0.0.1:1"})

    assert (said.code, json.loads(said.stdout)) == (0, [run_status()])


def test_an_orchestrator_that_is_not_there_is_an_error(jr2: Jr2) -> None:
    said = jr2("runs", "--url", "http://127.0.0.1:1", env={names.ENV_TOKEN: TOKEN})

    assert (said.code, said.stdout) == (1, "")
    assert said.stderr.splitlines()[1].startswith(
        "error: cannot reach the Orchestrator at http://127.0.0.1:1 ("
    )


def test_an_answer_of_another_shape_is_an_error_that_does_not_show_it(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str]
) -> None:
    far.answers[("POST", "/workflows/ping/runs")] = (201, {"id": "CANARY"})

    said = jr2("run", "ping", env=at)

    assert said.code == 1
    assert said.stderr.splitlines()[1:] == [
        f"error: the Orchestrator at {far.url} answered /workflows/ping/runs in a shape that jr2 "
        f"{names.KIT_VERSION} does not know"
    ]


@pytest.mark.parametrize("typed", [RUN, "3f2a9", RUN[:-1]])
def test_a_run_is_named_by_its_id_or_the_start_of_it(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str], typed: str
) -> None:
    far.runs[OTHER_RUN] = run_status()
    far.runs[RUN] = {**run_status(), "gates": []}

    said = jr2("status", typed, env=at)

    assert (said.code, json.loads(said.stdout)) == (0, far.runs[RUN])


@pytest.mark.parametrize(
    ("typed", "code", "lines"),
    [
        ("3f2", 2, ['error: "3f2" is too short for a run id — give at least 4 characters']),
        ("", 2, ['error: "" is too short for a run id — give at least 4 characters']),
        ("ffff", 1, ['error: no run "ffff"']),
        (
            "3f2a",
            1,
            ['error: "3f2a" is the start of more than one run:', f"  {OTHER_RUN}", f"  {RUN}"],
        ),
        (RUN.replace("3", "0"), 1, [f'error: no run "{RUN.replace("3", "0")}"']),
    ],
)
@pytest.mark.parametrize("verb", ["status", "logs"])
def test_a_run_that_is_not_one_run_is_an_error(
    jr2: Jr2,
    far: FarOrchestrator,
    at: dict[str, str],
    verb: str,
    typed: str,
    code: int,
    lines: list[str],
) -> None:
    far.runs[OTHER_RUN] = run_status()

    said = jr2(verb, typed, env=at)

    assert (said.code, said.stdout) == (code, "")
    assert said.stderr.splitlines()[1:] == lines


def test_an_instance_that_cannot_look_up_ids_says_so(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str]
) -> None:
    far.answers[("GET", "/runs/resolve")] = (404, {"error": "no route"})

    said = jr2("status", "3f2a", env=at)

    assert said.code == 1
    assert said.stderr.splitlines()[1:] == [
        "error: this instance cannot look up a run by the start of its id (jr2 "
        f"{names.KIT_VERSION} can) — give the whole id, or run `jr2 up`"
    ]


def assemblies() -> dict[str, object]:
    held = wire.Assemblies(
        current=HASH,
        assemblies=[
            wire.HeldAssembly(hash="1" * 64, kit_version="1.0.0", current=False, runs=[RUN]),
            wire.HeldAssembly(hash=HASH, kit_version="1.0.0", current=True, runs=[]),
        ],
        maps=wire.Maps(),
    )
    return held.model_dump(mode="json", by_alias=True)


def test_bare_status_is_a_table_with_the_current_assembly_first(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str]
) -> None:
    # A field of a later version does no harm.
    far.answers[("GET", "/assemblies")] = (200, {**assemblies(), "later": 1})

    said = jr2("status", env=at)

    assert said.code == 0
    assert said.stdout.splitlines() == [
        "ASSEMBLY      KIT    CURRENT  LIVE RUNS",
        "87cddbde1271  1.0.0  yes      0",
        "111111111111  1.0.0  no       1",
    ]


def test_bare_status_names_each_run_that_nothing_will_move(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str]
) -> None:
    far.answers[("GET", "/assemblies")] = (200, {**assemblies(), "stuck": [RUN, OTHER_RUN]})

    said = jr2("status", env=at)

    assert said.stdout.splitlines()[3:] == [
        f"run {RUN}: stuck: no next action",
        f"run {OTHER_RUN}: stuck: no next action",
    ]


def test_bare_status_as_json_is_what_the_orchestrator_says(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str]
) -> None:
    far.answers[("GET", "/assemblies")] = (200, assemblies())

    said = jr2("status", "--json", env=at)

    assert (said.code, json.loads(said.stdout)) == (0, assemblies())


def test_bare_status_before_the_first_publish(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str]
) -> None:
    empty = wire.Assemblies(current=None, assemblies=[], maps=wire.Maps())
    far.answers[("GET", "/assemblies")] = (200, empty.model_dump(mode="json", by_alias=True))

    assert jr2("status", env=at).stdout == "no Assembly is published\n"


def test_logs_prints_where_the_run_stands_and_leaves(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str]
) -> None:
    far.feeds = [[("status", run_status()), ("emit", {"type": "late"})]]

    said = jr2("logs", RUN, env=at)

    assert (said.code, json.loads(said.stdout)) == (0, run_status())
    assert said.stderr == f"→ {far.url}\n"


def test_logs_follows_until_the_run_settles(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str]
) -> None:
    far.feeds = [[("status", run_status()), ("status", run_status("error", fault="boom"))]]

    said = jr2("logs", RUN, "-f", env=at)

    assert (said.code, json.loads(said.stdout)) == (0, run_status("error", fault="boom"))
    assert said.stderr.splitlines()[1:] == ['  → active "waiting"', '  → error "waiting"']


def test_send_delivers_an_event_to_a_gate(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str]
) -> None:
    said = jr2(
        "send", "3f2a", "--gate", "a/b", "--event", "Approve", "--input", '{"by":"sam"}', env=at
    )

    assert (said.code, said.stdout) == (0, "")
    assert said.stderr.splitlines()[1:] == [f'delivered Approve to gate "a/b" on {RUN}']
    assert far.asked[-1] == (
        "POST",
        f"/runs/{RUN}/gates/a%2Fb/events",
        {"type": "Approve", "by": "sam"},
    )


@pytest.mark.parametrize("event", ["CANCEL", "cancel"])
def test_send_cancels_a_run(jr2: Jr2, far: FarOrchestrator, at: dict[str, str], event: str) -> None:
    said = jr2("send", RUN, "--event", event, env=at)

    assert said.code == 0
    assert said.stderr.splitlines()[1:] == [f"sent CANCEL to {RUN}"]
    assert far.asked[-1] == ("POST", f"/runs/{RUN}/events", {"type": "CANCEL"})


@pytest.mark.parametrize("status", ["done", "error", "cancelled", "lost", "drifted"])
@pytest.mark.parametrize("typed", [RUN, "3f2a"])
def test_a_run_that_has_settled_is_not_cancelled_again(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str], status: str, typed: str
) -> None:
    far.runs[RUN] = run_status(status)

    said = jr2("send", typed, "--event", "CANCEL", env=at)

    assert (said.code, said.stdout) == (0, "")
    assert said.stderr.splitlines()[1:] == [f"run {RUN} had settled already ({status})"]
    assert not any(method == "POST" for method, _, _ in far.asked)


def test_a_run_that_is_not_there_is_not_cancelled(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str]
) -> None:
    said = jr2("send", OTHER_RUN, "--event", "CANCEL", env=at)

    assert (said.code, said.stdout) == (1, "")
    assert said.stderr.splitlines()[1:] == [f'error: no run "{OTHER_RUN}"']
    assert not any(method == "POST" for method, _, _ in far.asked)


def test_a_gate_that_is_closed_is_the_orchestrators_own_words(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str]
) -> None:
    far.answers[("POST", f"/runs/{RUN}/gates/old/events")] = (
        404,
        {"error": 'no open gate "old" (open: review)'},
    )

    said = jr2("send", RUN, "--gate", "old", "--event", "GO", env=at)

    assert said.code == 1
    assert said.stderr.splitlines()[1:] == ['error: no open gate "old" (open: review)']


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["--event", "STOP"],
            'error: "STOP" is no event of a run: give --gate for an event of a Gate, or '
            "--event CANCEL",
        ),
        (["--event", "CANCEL", "--input", "{}"], "error: CANCEL carries no --input"),
        (
            ["--gate", "g", "--event", "GO", "--input", '{"type":"X"}'],
            'error: --input may not hold "type": --event gives it',
        ),
        (
            ["--gate", "g", "--event", "GO", "--input", "[]"],
            """error: --input is not a JSON object, such as '{"message":"hi"}'""",
        ),
    ],
)
def test_send_refuses_what_does_not_fit_before_it_asks_anything(
    jr2: Jr2, far: FarOrchestrator, at: dict[str, str], arguments: list[str], line: str
) -> None:
    said = jr2("send", RUN, *arguments, env=at)

    assert (said.code, said.stdout, said.stderr) == (2, "", f"{line}\n")
    assert far.asked == []
