"""The verbs in an Instance folder: which Instance, which cluster, and what they refuse first."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jr2 import errors, names
from jr2_cli import tooling
from jr2_cli.tools import catalogue, lookup
from tests.unit.cli.conftest import RUN, SECRET, TOKEN, run_status

if TYPE_CHECKING:
    from tests.unit.cli.conftest import FarKubectl, FarOrchestrator, Jr2

NO_INSTANCE = "error: not inside a jr2 instance — no jr2_config.py found walking up from cwd\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["up"],
        ["down", "--yes"],
        ["check"],
        ["chart"],
        ["run", "ping"],
        ["runs"],
        ["status"],
        ["logs", RUN],
        ["send", RUN, "--event", "CANCEL"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_verb_of_an_instance_needs_one(jr2: Jr2, arguments: list[str]) -> None:
    said = jr2(*arguments)

    assert (said.code, said.stdout, said.stderr) == (1, "", NO_INSTANCE)


def test_a_verb_finds_its_instance_through_the_cluster_from_a_folder_within(
    jr2: Jr2,
    instance: Path,
    in_cluster: dict[str, str],
    far: FarOrchestrator,
    kubectl: FarKubectl,
) -> None:
    said = jr2("runs", cwd=instance / "workflows", env=in_cluster)

    assert said.code == 0
    assert said.stderr == "→ context kind-jr2 / namespace my-instance\n"
    assert json.loads(said.stdout) == [run_status()]
    assert kubectl.started == [
        "--context=kind-jr2 --namespace=my-instance port-forward --address=127.0.0.1 "
        "service/jr2-orchestrator :4000"
    ]
    assert far.tokens == [f"Bearer {TOKEN}"]


def test_the_name_in_the_config_is_the_namespace_and_an_option_wins(
    jr2: Jr2, instance: Path, in_cluster: dict[str, str]
) -> None:
    (instance / "jr2_config.py").write_text(
        'from jr2.config import Config\n\nconfig = Config(name="named")\n'
    )

    by_name = jr2("runs", cwd=instance, env=in_cluster)
    by_option = jr2("runs", "-n", "other", cwd=instance, env=in_cluster)

    for said, namespace in ((by_name, "named"), (by_option, "other")):
        assert said.code == 1
        assert said.stderr.splitlines() == [
            f"→ context kind-jr2 / namespace {namespace}",
            f"error: not deployed here — context kind-jr2 / namespace {namespace} holds no Secret "
            "jr2-instance; run `jr2 up`",
        ]


def test_a_token_of_the_environment_needs_no_secret(
    jr2: Jr2, instance: Path, in_cluster: dict[str, str], far: FarOrchestrator
) -> None:
    del far.objects[SECRET]

    said = jr2("runs", cwd=instance, env={**in_cluster, names.ENV_TOKEN: TOKEN})

    assert (said.code, json.loads(said.stdout)) == (0, [run_status()])
    assert said.stderr.splitlines()[1:] == [
        "warning: the key that proves the Orchestrator cannot be read from Secret jr2-instance — "
        "the token of JR2_TOKEN is sent unproved"
    ]


@pytest.mark.parametrize("data", [b"CANARY\xff", b"CANARY\n", b""])
def test_a_token_that_somebody_wrote_by_hand_is_not_shown(
    jr2: Jr2, instance: Path, in_cluster: dict[str, str], far: FarOrchestrator, data: bytes
) -> None:
    far.objects[SECRET]["data"]["JR2_INSTANCE_TOKEN"] = base64.b64encode(data).decode()

    said = jr2("runs", cwd=instance, env=in_cluster)

    assert (said.code, said.stdout) == (1, "")
    assert said.stderr.splitlines()[1:] == [
        "error: Secret jr2-instance in namespace my-instance holds a JR2_INSTANCE_TOKEN that is not "
        "printable ASCII; the value itself is not shown — delete that key, and run `jr2 up`"
    ]


@pytest.mark.parametrize("verb", ["up", "down", "runs"])
@pytest.mark.parametrize("name", ["", "te\nsts"])
def test_a_context_without_a_name_is_not_taken_for_the_current_one(
    jr2: Jr2, instance: Path, in_cluster: dict[str, str], verb: str, name: str
) -> None:
    said = jr2(verb, "--context", name, cwd=instance, env=in_cluster)

    assert (said.code, said.stdout) == (2, "")
    assert said.stderr == (
        f"error: {json.dumps(name)} cannot name a context — leave --context out to take the "
        "current one\n"
    )


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--context", "nope"], 'error: context "nope" does not exist'),
        (["--context", "away"], 'error: cluster "nowhere" does not exist'),
    ],
)
def test_a_context_that_is_not_there_is_named(
    jr2: Jr2, instance: Path, in_cluster: dict[str, str], arguments: list[str], line: str
) -> None:
    said = jr2("runs", *arguments, cwd=instance, env=in_cluster)

    assert (said.code, said.stdout, said.stderr) == (1, "", f"{line}\n")


def test_no_context_at_all_says_how_to_get_one(jr2: Jr2, instance: Path) -> None:
    said = jr2("runs", cwd=instance)

    assert (said.code, said.stdout) == (1, "")
    assert said.stderr == (
        "error: no kube context — `jr2 cluster create` or `kind create cluster` (or point kubectl "
        "at one), then re-run `jr2 up`\n"
    )


def test_an_instance_of_another_kit_version_is_refused(
    jr2: Jr2, instance: Path, in_cluster: dict[str, str]
) -> None:
    (instance / ".venv").unlink()

    said = jr2("runs", cwd=instance, env=in_cluster)

    assert (said.code, said.stdout) == (1, "")
    assert said.stderr.startswith(
        "error: Kit version mismatch — an Instance has one (ADR-0056):\n"
        f"  jr2 does not resolve from {instance}\n"
    )


def test_chart_draws_the_workflows_that_are_named(jr2: Jr2, instance: Path) -> None:
    machine = 'from jr2 import Machine\nm = Machine("m")\nm.state("s", initial=True)\n'
    (instance / "workflows" / "one.py").write_text(machine + "machine = m.build()\n")
    (instance / ".env").write_text("REGISTRY=CANARY\n")

    said = jr2("chart", "one", cwd=instance / "workflows")

    assert (said.code, said.stdout) == (0, "")
    assert said.stderr == "→ .env: REGISTRY\ncharts/one.mmd: written\n"
    assert (instance / "charts" / "one.mmd").read_text().startswith("%% The Machine m, written")
    unknown = jr2("chart", "two", cwd=instance)
    assert (unknown.code, unknown.stderr.splitlines()[-1][:36]) == (
        2,
        'error: there is no workflow "two" (t',
    )


def test_check_streams_its_steps_and_its_error_as_events(jr2: Jr2, instance: Path) -> None:
    (instance / ".env").write_text("REGISTRY=CANARY\n")

    said = jr2("check", "--json", cwd=instance)

    assert (said.code, said.stderr) == (1, "")
    events = [json.loads(line) for line in said.stdout.splitlines()]
    assert events[0] == {"code": "env", "text": "→ .env: REGISTRY"}
    assert events[-1] == {
        "code": "error",
        "text": "error: this instance's pyproject.toml has no [tool.jr2] typecheck — `jr2 init` "
        "scaffolds one, and `jr2 up` typechecks the folder before it builds anything",
    }
    assert "CANARY" not in said.stdout


def test_programs_that_are_missing_are_named_with_the_command_that_installs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    find = tooling.look_for_tooling()

    with pytest.raises(errors.StepFailed) as caught:
        find()

    assert caught.value.printed == (
        "error: pulumi, pulumi-resource-kubernetes, kubectl are not installed — run `jr2 tools "
        "install pulumi pulumi-resource-kubernetes kubectl`, then try again"
    )


def test_a_missing_program_hides_no_earlier_refusal(
    jr2: Jr2, instance: Path, in_cluster: dict[str, str], tmp_path: Path
) -> None:
    said = jr2("up", cwd=instance, env={**in_cluster, "PATH": str(tmp_path)})

    assert (said.code, said.stdout) == (1, "")
    assert said.stderr.splitlines()[-1].startswith("error: this instance's pyproject.toml has no ")


def test_down_needs_no_program(
    jr2: Jr2, instance: Path, in_cluster: dict[str, str], tmp_path: Path, far: FarOrchestrator
) -> None:
    far.objects["/version"] = {"gitVersion": "v1.36.3", "major": "1", "minor": "36"}
    far.objects["/api/v1/namespaces/kube-system"] = {"metadata": {"uid": "5f0c9a3e7b1d"}}

    said = jr2("down", "--yes", cwd=instance, env={**in_cluster, "PATH": str(tmp_path)})

    assert said.code == 1
    assert "error: not deployed here" in said.stderr


def test_init_writes_an_instance_that_the_other_verbs_find(jr2: Jr2, tmp_path: Path) -> None:
    made = jr2("init", "new", "--name", "named", cwd=tmp_path)
    again = jr2("init", cwd=tmp_path / "new")

    assert (made.code, made.stdout) == (0, "")
    lines = made.stderr.splitlines()
    assert lines[0] == f"jr2 init — scaffolding named in {tmp_path / 'new'}"
    assert "  create workflows/ping.py" in lines
    assert (tmp_path / "new" / names.CONFIG_FILE).is_file()
    assert again.code == 0
    assert "  skip   workflows/ping.py (exists)" in again.stderr.splitlines()
    assert jr2("version", "--local", cwd=tmp_path / "new").stdout.count("instance:") == 1


@pytest.fixture
def with_tools(in_cluster: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """The environment of a machine in whose cache each program lies; none of them is started."""
    for name in ("pulumi", "pulumi-resource-kubernetes"):
        place = lookup.cached_binary(catalogue.BY_NAME[name], tmp_path / "cache/jr2/tools")
        place.parent.mkdir(parents=True)
        place.write_text("")
        place.chmod(0o755)
    return {**in_cluster, "XDG_CACHE_HOME": str(tmp_path / "cache")}


def test_down_asks_on_a_terminal_only_and_changes_nothing_without_an_answer(
    jr2: Jr2, instance: Path, with_tools: dict[str, str], far: FarOrchestrator
) -> None:
    far.objects["/version"] = {"gitVersion": "v1.36.3", "major": "1", "minor": "36"}
    far.objects["/api/v1/namespaces/kube-system"] = {"metadata": {"uid": "5f0c9a3e7b1d"}}
    far.objects["/api/v1/namespaces/my-instance"] = {
        "metadata": {"name": "my-instance", "labels": {names.LABEL_INSTANCE: "my-instance"}},
        "status": {"phase": "Active"},
    }

    said = jr2("down", cwd=instance, env=with_tools)

    assert (said.code, said.stdout) == (1, "")
    assert said.stderr.splitlines() == [
        'remove instance "my-instance" from context kind-jr2 (delete namespace "my-instance" with '
        "its runs)? — not a tty; pass --yes to proceed non-interactively",
        "aborted — nothing was changed",
    ]
    assert {method for method, _, _ in far.asked} == {"GET"}


def test_down_of_an_instance_that_is_not_there_is_an_error_event(
    jr2: Jr2, instance: Path, with_tools: dict[str, str], far: FarOrchestrator
) -> None:
    far.objects["/version"] = {"gitVersion": "v1.36.3", "major": "1", "minor": "36"}
    far.objects["/api/v1/namespaces/kube-system"] = {"metadata": {"uid": "5f0c9a3e7b1d"}}

    said = jr2("down", "--yes", "--json", "-n", "other", cwd=instance, env=with_tools)

    assert (said.code, said.stderr) == (1, "")
    assert json.loads(said.stdout) == {
        "code": "error",
        "text": 'error: not deployed here — instance "my-instance" is not in context kind-jr2 / '
        "namespace other",
    }


def test_up_reads_env_after_the_kit_and_the_agents_block_and_before_the_config(
    jr2: Jr2, instance: Path, with_tools: dict[str, str]
) -> None:
    (instance / ".env").write_text("REGISTRY=CANARY\n")
    (instance / "AGENTS.md").write_text("<!-- jr2-docs:start --><!-- jr2-docs:end -->")

    said = jr2("up", cwd=instance, env=with_tools)

    agents, env, header, *_ = said.stderr.splitlines()
    assert agents.startswith("AGENTS.md: jr2 block updated for ")
    assert env == "→ .env: REGISTRY"
    assert header.startswith("jr2 up — instance ")

    (instance / ".venv").rename(instance / "no-venv")
    for verb in ("up", "check"):
        refused = jr2(verb, cwd=instance, env=with_tools)
        assert refused.stderr.startswith("error: Kit version mismatch")
        assert ".env" not in refused.stderr


def test_up_says_its_header_before_what_it_refuses(
    jr2: Jr2, instance: Path, with_tools: dict[str, str]
) -> None:
    said = jr2("up", "-n", "other", "--context", "away", cwd=instance, env=with_tools)

    assert (said.code, said.stdout) == (1, "")
    assert said.stderr.splitlines()[0] == (
        'jr2 up — instance "my-instance" → context away / namespace other'
    )
    assert said.stderr.splitlines()[-1].startswith("error: this instance's pyproject.toml has no ")
