"""What `jr2 check` refuses of Machines, word for word, and that each line it prints mends it.

The folder of each case is real, and so are the walk and its process. A printed `customize(…)` line
is pasted into the Workflow's file, with a value for each `<…>`; then the check finds nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from jr2_infra import check, converge
from tests.unit.infra.machine_folders import PARTS, instance, refused, workflow

if TYPE_CHECKING:
    from tests.reporter import Reporter
    from tests.unit.infra.conftest import MakeInstance

VALUES = {
    "<slot>": "app",
    "<url>": "https://github.com/acme/app.git",
    "<provider>/<model>": "local/qwen",
    "https://<host>/<path>": "https://example.com/hook",
    "<program>": "make",
    "<arg>": "test",
    "<name>": "TOKEN",
    "<workflow>": "w",
    "<memory>": "4Gi",
    "<cpu>": "2",
}
BIND = "bind it where the Machine is registered: machine = customize(<import>, "
RETUNE = "; a composer retunes it where the Machine is registered: machine = customize(<import>, "
SHORT = (
    "the Size leaves the Harness container {left} memory and {cpu} cpu, and it needs 256Mi and more "
    "than 0 cpu: {total} minus Custodian 64Mi/50m (kit)"
)

CASES: dict[str, tuple[str, list[str]]] = {
    "a Repo Slot": (
        'wrap(body(), repos={"app": OPEN})',
        [
            f'refusing: workflow "w" leaves Repo Slot "app" open — {BIND}repos={{"app": "<url>"}})  '
            "(ADR-0051)"
        ],
    ),
    "the whole map of slots": (
        "wrap(body(), repos=OPEN)",
        [
            f'refusing: workflow "w" leaves its Repo Slots open — {BIND}repos={{"<slot>": "<url>"}})'
            "  (ADR-0051)"
        ],
    ),
    "an Agent": (
        "triage(model=OPEN)",
        [
            f'refusing: workflow "w" leaves Agent "coder" open — {BIND}agents={{"coder": {{"model": '
            '"<provider>/<model>"}})  (ADR-0054)'
        ],
    ),
    "the url and the secret of an Effect": (
        'triage(effects={"notify": Http(url=OPEN, secret=OPEN)})',
        [
            'refusing: workflow "w" leaves the url and secret of Effect "notify" open — '
            f'{BIND}effects={{"notify": {{"url": "https://<host>/<path>", "secret": "<name>"}}}})  '
            "(ADR-0054)"
        ],
    ),
    "the url of an Effect": (
        'triage(effects={"notify": Http(url=OPEN)})',
        [
            'refusing: workflow "w" leaves the url of Effect "notify" open — '
            f'{BIND}effects={{"notify": {{"url": "https://<host>/<path>"}}}})  (ADR-0054)'
        ],
    ),
    "the argv and the secret of an Effect": (
        'wrap(body(effects={"tests": Command(argv=OPEN, secret=OPEN)}))',
        [
            'refusing: workflow "w" leaves the argv and secret of Effect "tests" open — '
            f'{BIND}effects={{"tests": {{"argv": ["<program>", "<arg>"], "secret": "<name>"}}}})  '
            "(ADR-0054)"
        ],
    ),
    "the argv of an Effect": (
        'wrap(body(effects={"tests": Command(argv=OPEN)}))',
        [
            'refusing: workflow "w" leaves the argv of Effect "tests" open — '
            f'{BIND}effects={{"tests": {{"argv": ["<program>", "<arg>"]}}}})  (ADR-0054)'
        ],
    ),
    "the secret of an Effect": (
        'wrap(body(effects={"tests": Command(argv=["make"], secret=OPEN)}))',
        [
            'refusing: workflow "w" leaves the secret of Effect "tests" open — '
            f'{BIND}effects={{"tests": {{"secret": "<name>"}}}})  (ADR-0054)'
        ],
    ),
    "parts of a composed Machine, two levels down": (
        'triage(child=triage(model=OPEN, child=wrap(body(), repos={"app": OPEN})))',
        [
            'refusing: workflow "w" leaves Agent "coder" open (on the Machine composed as "review") '
            f'— {BIND}actors={{"review": {{"agents": {{"coder": {{"model": "<provider>/<model>"'
            "}}}})  (ADR-0054)",
            'refusing: workflow "w" leaves Repo Slot "app" open (on the Machine composed as "review" '
            f'→ "review") — {BIND}actors={{"review": {{"actors": {{"review": {{"repos": {{"app": '
            '"<url>"}}}}})  (ADR-0051)',
        ],
    ),
    "parts of a pool's worker": (
        'triage(child=pooled(triage(model=OPEN, child=wrap(body(), repos={"app": OPEN}))))',
        [
            'refusing: workflow "w" leaves Agent "coder" open (on the Machine composed as "review") '
            f'— {BIND}actors={{"review": {{"agents": {{"coder": {{"model": "<provider>/<model>"'
            "}}}})  (ADR-0054)",
            'refusing: workflow "w" leaves Repo Slot "app" open (on the Machine composed as "review" '
            f'→ "review") — {BIND}actors={{"review": {{"actors": {{"review": {{"repos": {{"app": '
            '"<url>"}}}}})  (ADR-0051)',
        ],
    ),
    "a Size": (
        'wrap(body(), resources=Size(memory="256Mi", cpu="50m"))',
        [
            'refusing: workflow "w": '
            + SHORT.format(
                left="192Mi",
                cpu="0",
                total="256Mi/50m (resources.memory of workspace(), resources.cpu of workspace())",
            )
            + "; make resources.memory of workspace() and resources.cpu of workspace() larger"
            + f'{RETUNE}resources={{"limits": {{"memory": "<memory>"}}}})'
        ],
    ),
    "a Size whose cpu alone is too small": (
        'wrap(body(), resources=Size(memory="1Gi", cpu="50m"))',
        [
            'refusing: workflow "w": '
            + SHORT.format(
                left="960Mi",
                cpu="0",
                total="1Gi/50m (resources.memory of workspace(), resources.cpu of workspace())",
            )
            + "; make resources.cpu of workspace() larger"
            + f'{RETUNE}resources={{"limits": {{"cpu": "<cpu>"}}}})'
        ],
    ),
    "a Size of a composed Machine whose cpu alone is too small": (
        'triage(child=wrap(body(), resources=Size(memory="1Gi", cpu="20m")))',
        [
            'refusing: workflow "w" (on the Machine composed as "review"): '
            + SHORT.format(
                left="960Mi",
                cpu="-30m",
                total="1Gi/20m (resources.memory of workspace(), resources.cpu of workspace())",
            )
            + "; make resources.cpu of workspace() larger"
            + f'{RETUNE}actors={{"review": {{"resources": {{"limits": {{"cpu": "<cpu>"}}}}}}}})'
        ],
    ),
    "a Size of a composed Machine, with an Effector and a User Container": (
        'triage(child=wrap(body(effects={"p": Push(repo="app")}), user=UserContainer(image="u:1", '
        'resources=Size(memory="1Gi", cpu="100m")), resources=Size(memory="1Gi")))',
        [
            'refusing: workflow "w" (on the Machine composed as "review"): '
            + SHORT.format(
                left="-128Mi", cpu="800m", total="1Gi/1 (resources.memory of workspace(), kit)"
            )
            + ", User Container 1Gi/100m (user.resources), Effector 64Mi/50m (kit); make "
            "resources.memory of workspace() larger"
            f'{RETUNE}actors={{"review": {{"resources": {{"limits": {{"memory": "<memory>"}}}}}}}})'
        ],
    ),
    "a secret that is not declared": (
        'triage(effects={"notify": Http(url="https://h/x", secret="OTHER")})',
        [
            'refusing: workflow "w": Effect "notify" names the secret "OTHER", which jr2_config.py '
            'does not declare — add it there: secrets=[…, Secret("OTHER", '
            'value=os.environ.get("OTHER"))], or name another one where the Machine is registered: '
            'machine = customize(<import>, effects={"notify": {"secret": "<name>"}})  (ADR-0059)'
        ],
    ),
    "a Workflow that is not there": (
        'triage(effects={"go": Dispatch(workflow="deploy")})',
        [
            'refusing: workflow "w": Effect "go" starts a run of the Workflow "deploy", which this '
            "folder does not have (it has: w) — name one of them, as where the Machine is "
            'registered: machine = customize(<import>, effects={"go": {"workflow": "<workflow>"}})'
        ],
    ),
    "a secret of a composed Machine": (
        'triage(child=triage(effects={"n": Http(url="https://h/x", secret="OTHER")}))',
        [
            'refusing: workflow "w": Effect "n" (on the Machine composed as "review") names the '
            'secret "OTHER", which jr2_config.py does not declare — add it there: secrets=[…, '
            'Secret("OTHER", value=os.environ.get("OTHER"))], or name another one where the Machine '
            'is registered: machine = customize(<import>, actors={"review": {"effects": {"n": '
            '{"secret": "<name>"}}}})  (ADR-0059)'
        ],
    ),
}
NO_LINE: dict[str, tuple[str, list[str]]] = {
    "a part of a Machine invoked inline": (
        "triage(inline=triage(model=OPEN))",
        [
            'refusing: workflow "w" leaves Agent "coder" open on a Machine invoked inline — no '
            'customize() reaches an actor without a slot key; declare it with .child("<slot>", …) '
            "and bind it there  (ADR-0049, ADR-0054)"
        ],
    ),
    "a Size of a Machine invoked inline": (
        'triage(inline=wrap(body(), resources=Size(memory="128Mi")))',
        [
            'refusing: workflow "w": '
            + SHORT.format(
                left="64Mi", cpu="950m", total="128Mi/1 (resources.memory of workspace(), kit)"
            )
            + "; make resources.memory of workspace() larger"
        ],
    ),
    "an Agent with no Workspace": (
        "body()",
        [
            'refusing: workflow "w": Agent "coder" of machine "ticket" has workspace="write", and no '
            "workspace() is around it — wrap its Machine in workspace(…), or give it "
            'workspace="none"'
        ],
    ),
    "a push of a slot that is not there": (
        'wrap(body(effects={"ship": Push(repo="docs")}))',
        [
            'refusing: workflow "w": Effect "ship" of machine "ticket" pushes the Repo Slot "docs", '
            "which its Workspace does not have (it has: app)"
        ],
    ),
    "a secret of another Orchestrator": (
        'triage(effects={"go": Dispatch(workflow="x", target=Target(url="https://h", '
        'secret="OTHER"))})',
        [
            'refusing: workflow "w": Effect "go" names the secret "OTHER", which jr2_config.py does '
            'not declare — add it there: secrets=[…, Secret("OTHER", '
            'value=os.environ.get("OTHER"))]  (ADR-0059)'
        ],
    ),
    "a push whose token is not set": (
        'wrap(body(effects={"ship": Push(repo="app")}))',
        [
            'error: Workspace of workflow "w": the push of Repo Slot "app" '
            '(https://github.com/acme/app.git): git.credentials entry "github.com/acme/" cannot push '
            "— its token's variable GITHUB_TOKEN is not set — set it in .env (ADR-0051)"
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_line_is_whole_and_mends_its_refusal(
    make_instance: MakeInstance, said: Reporter, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "x")
    machine, lines = CASES[name]
    root = instance(make_instance, machine)

    assert refused(root, said) == lines

    bound = "shipped"
    for line in lines:
        (call,) = re.findall(r"machine = (customize\(.*?\))(?:  \(ADR-\d+\))?$", line)
        for sample, value in VALUES.items():
            call = call.replace(sample, value)
        bound = call.replace("<import>", bound)
    if name == "a Size":
        # The line sets the memory; what the cpu lacks is said, and is set by the same key.
        bound = bound.replace('"memory": "4Gi"', '"memory": "4Gi", "cpu": "1"')
    (root / "workflows" / "w.py").write_text(workflow(machine, bound))
    check.check(root, said)


@pytest.mark.parametrize("name", NO_LINE)
def test_what_no_line_mends(make_instance: MakeInstance, said: Reporter, name: str) -> None:
    machine, lines = NO_LINE[name]

    assert refused(instance(make_instance, machine), said) == lines


def test_all_of_one_kind_in_one_run_then_the_next_kind(
    make_instance: MakeInstance, said: Reporter
) -> None:
    root = instance(make_instance, "triage(model=OPEN)")
    folder = root / "workflows"
    files = {
        "a": 'triage(effects={"n": Http(url=OPEN, secret="OTHER")})',
        "b": 'wrap(body(), resources=Size(memory="128Mi"))',
        "c": 'triage(effects={"n": Http(url="https://h", secret="OTHER")})',
    }
    for name, machine in files.items():
        (folder / f"{name}.py").write_text(workflow(machine))
    (folder / "d.py").write_text("1 / 0\n")
    (folder / "e.py").write_text("x = 1\n")
    (folder / "f.py").write_text("machine = 1\n")
    (folder / "g.py").write_text("machine = 2\n")

    def starts() -> list[str]:
        return [line.split(" — ")[0][:60] for line in refused(root, said)]

    assert starts() == [
        'error: workflow "d": workflows/d.py did not load',
        'error: workflow "e": workflows/e.py has no "machine" (use `m',
    ]
    (folder / "d.py").unlink()
    (folder / "e.py").unlink()
    assert starts() == [
        f'refusing: workflow "{name}": `machine` is an object of type int, but'[:60]
        for name in "fg"
    ]
    (folder / "f.py").unlink()
    (folder / "g.py").unlink()
    assert starts() == [
        'refusing: workflow "a" leaves the url of Effect "n" open',
        'refusing: workflow "w" leaves Agent "coder" open',
    ]
    (folder / "a.py").unlink()
    (folder / "w.py").unlink()
    assert starts() == ['refusing: workflow "b": the Size leaves the Harness container 64Mi'[:60]]
    (folder / "b.py").unlink()
    assert starts() == ['refusing: workflow "c": Effect "n" names the secret "OTHER", '[:60]]


def test_what_the_host_judges_comes_after_what_the_walk_judges(
    make_instance: MakeInstance, said: Reporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = 'body(effects={"p": Push(repo="app")}), image=context(__file__, "gone")'
    root = instance(make_instance, f"wrap({shipped}, repos=OPEN)")
    (root / "workflows" / "x.py").write_text(workflow(f"wrap({shipped})"))
    (root / "charts").mkdir()
    (root / "charts" / "w.mmd").write_text("")
    (root / "charts" / "y.mmd").write_text("")

    assert refused(root, said)[0].startswith('refusing: workflow "w" leaves its Repo Slots open')
    (root / "workflows" / "w.py").write_text(workflow(f"wrap({shipped})"))
    assert [line.split(":")[0:2] for line in refused(root, said)] == [
        ["error", f' Workspace of workflow "{name}"'] for name in "wx"
    ]
    monkeypatch.setenv("GITHUB_TOKEN", "x")
    (line,) = refused(root, said)
    assert line.startswith(f"error: the Sandbox Image context {root}/workflows/gone cannot be read")
    (root / "workflows" / "gone").mkdir()
    assert [line.split(" — ")[0] for line in refused(root, said)] == [
        "refusing: charts/w.mmd does not parse: it is empty",
        "refusing: charts/y.mmd names no Workflow (this folder has w, x)",
    ]


def test_a_push_of_a_composed_workspace_names_its_route(
    make_instance: MakeInstance, said: Reporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = instance(make_instance, 'triage(child=wrap(body(effects={"p": Push(repo="app")})))')

    deep = 'triage(child=pooled(triage(child=wrap(body(effects={"p": Push(repo="app")})))))'
    (root / "workflows" / "w.py").write_text(workflow(deep))
    assert refused(root, said)[0].startswith(
        'error: Workspace of workflow "w" → "asking" → "asking": the push'
    )
    (root / "workflows" / "w.py").write_text(
        workflow('triage(child=wrap(body(effects={"p": Push(repo="app")})))')
    )
    assert refused(root, said)[0].startswith(
        'error: Workspace of workflow "w" → "asking": the push'
    )
    monkeypatch.setenv("GITHUB_TOKEN", "")
    assert len(refused(root, said)) == 1
    monkeypatch.setenv("GITHUB_TOKEN", "CANARY")
    check.check(root, said)
    assert not any("CANARY" in line for line in said.lines)


@pytest.mark.parametrize(
    ("folder", "code"), [("gone", "ENOENT"), ("_parts.py", "ENOTDIR"), ("a b", None)]
)
def test_the_folder_of_a_sandbox_image(
    make_instance: MakeInstance, said: Reporter, folder: str, code: str | None
) -> None:
    root = instance(make_instance, f'wrap(body(), image=context(__file__, "{folder}"))')
    (root / "workflows" / "a b").mkdir()

    if code is None:
        found = check.check(root, said)
        assert found.workflows[0].parts.images == [f"file://{root}/workflows/a%20b"]
        return
    assert refused(root, said) == [
        f"error: the Sandbox Image context {root}/workflows/{folder} cannot be read ({code}) — a "
        '`workspace()` names its image with `context(__file__, "<dir>")`, so that directory must '
        "exist beside the Machine's own module (ADR-0037/0049)."
    ]


def test_what_is_legal_and_not_meant_is_warned_of(
    make_instance: MakeInstance, said: Reporter
) -> None:
    root = instance(make_instance, 'wrap(body(), resources=Size(memory="2.9Gi"))')
    parts = root / "workflows" / "_parts.py"
    parts.write_text(PARTS.replace(".on(AgentFault, to=done)", ""))

    check.check(root, said)

    assert said.lines == [
        "typecheck: ty (the instance's own checker)",
        'warning: workflow "w": resources.memory of workspace() "2.9Gi" is not a whole number of '
        'bytes: Kubernetes keeps it as 3113851289600m — write "3113851290"',
        'warning: workflow "w": state "coding" runs a Turn of Agent "coder", and neither it nor a '
        "state around it handles agent.fault: a Turn that cannot be saved leaves the run waiting "
        "there — add .on(AgentFault, to=…)",
        "warning: secrets[0]: TOKEN names no hosts, so no pod holds it, and no Effect names it "
        "(ADR-0059)",
    ]


def test_what_a_machine_carries_reaches_the_converge(
    make_instance: MakeInstance, said: Reporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "x")
    inner = 'body(effects={"ship": Push(repo="app"), "t": Command(argv=["make"])})'
    root = instance(
        make_instance,
        f'triage(child=wrap({inner}, repos={{"app": "git@github.com:acme/app", "docs": lambda d: "u"}}, '
        'image="r/i:1", user="u:1"), effects={"n": Http(url="https://h", secret="TOKEN")})',
    )

    found = check.check(root, said)

    parts = found.workflows[0].parts
    assert [(one.slot, one.model, one.workspace) for one in parts.agents] == [
        ("coder", "a/b", "none"),
        ("coder", "a/b", "write"),
    ]
    assert [(one.slot, one.kind, one.place, one.secret) for one in parts.effects] == [
        ("n", "http", "instance-effector", "TOKEN"),
        ("ship", "push", "sandbox-effector", None),
        ("t", "command", "harness", None),
    ]
    assert [(one.identity, one.way) for one in parts.repos] == [("github.com/acme/app", "ssh")]
    (sandbox,) = parts.sandboxes
    assert (sandbox.path, sandbox.memory, sandbox.cpu) == (["review"], "2Gi", "1")
    assert (sandbox.image, sandbox.user, sandbox.effector) == ("r/i:1", "u:1", True)
    assert [(one.slot, one.url) for one in sandbox.pushes] == [("app", "git@github.com:acme/app")]
    assert (parts.images, parts.default_image, parts.users) == (["r/i:1"], False, ["u:1"])
    assert (parts.menu_only, parts.instance_effector) == (True, True)
    assert found.composes_sandbox
    assert found.menu_only_agents
    line = converge.agents_line(found.workflows)
    assert line == "agents: coder (carried by 1 workflow machine(s))"
    assert converge.agents_line(()) == "agents: (none) (carried by 0 workflow machine(s))"
