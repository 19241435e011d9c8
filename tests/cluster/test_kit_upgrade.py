"""An Instance moves to the next Kit version, and another one on the same cluster does not.

The tests stand in the order of docs/upgrade-the-kit-version.md. The next version is this checkout
with another number, and its own Kit images.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from jr2 import names
from tests.cluster import kit_versions
from tests.cluster.kit_versions import CHECKOUT, NEXT, NOW
from tests.waiting import wait_for

from .conftest import CONTEXT, HeldPublish, Instance
from .settled import written

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

HERE = Path(__file__).parent
CONVERGED = "converged — `jr2 run <workflow>` when ready"


@pytest.fixture(scope="module")
def building(kit_images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Future[Path]]:
    """The checkout of the next Kit version, whose Kit images are built while others converge."""

    def build() -> Path:
        checkout = kit_versions.copy_checkout(tmp_path_factory.mktemp("newer"))
        kit_versions.build_images(checkout)
        return checkout

    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(build)


@pytest.fixture(scope="module")
def newer(building: Future[Path]) -> Path:
    """The checkout of the next Kit version, with its Kit images."""
    return building.result()


@pytest.fixture(scope="module")
def upgraded(
    new_instance: Callable[[str], Instance],
    building: Future[Path],
    depart: Callable[[Instance], None],
) -> Iterator[Instance]:
    """The Instance that is upgraded, at the version of now, with an operator of that version."""
    made = new_instance("upgraded")
    made.write("workflows/parked.py", (HERE / "workflows" / "parked.py").read_text())
    # What another test left of the operator is not this test's; the next converge makes it anew.
    remove_operator(made)
    made.up()
    yield made
    depart(made)
    remove_operator(made)


@pytest.fixture(scope="module")
def stays(
    new_instance: Callable[[str], Instance], depart: Callable[[Instance], None]
) -> Iterator[Instance]:
    """An Instance that keeps its version."""
    made = new_instance("stays")
    yield made
    depart(made)


@pytest.fixture(scope="module")
def run(upgraded: Instance) -> str:
    """A run that waits at a Gate."""
    done = upgraded.jr2("run", "parked", "--detach", "--context", CONTEXT)
    return str(json.loads(done.stdout)["runId"])


def remove_operator(instance: Instance) -> None:
    instance.kubectl(
        "-n", names.SYSTEM_NAMESPACE, "delete", "deployment", names.OPERATOR, "--ignore-not-found",
        "--wait",
    )  # fmt: skip


def operator(instance: Instance) -> Any:
    text = instance.kubectl(
        "-n", names.SYSTEM_NAMESPACE, "get", "deployment", names.OPERATOR, "-o", "json",
        "--show-managed-fields",
    )  # fmt: skip
    return json.loads(text)


def rows(report: str) -> dict[str, str]:
    found = [line.partition(":") for line in report.splitlines() if line and line[0] != " "]
    return {label: text.strip() for label, _, text in found}


def in_order(lines: list[str], *starts: str) -> None:
    """Expect lines with these beginnings, in this order."""
    left = iter(lines)
    for start in starts:
        assert any(line.startswith(start) for line in left), f"{start!r} in {lines}"


def test_before_it_both_agree(upgraded: Instance, run: str) -> None:
    found = rows(upgraded.jr2("version", "--context", CONTEXT).stdout)

    assert found["cli"].startswith(f"{NOW} ")
    assert found["kit"].startswith(f"{NOW} ")
    assert found["kit"].endswith(" ok")
    assert "skew" not in found
    assert operator(upgraded)["metadata"]["labels"][names.LABEL_VERSION] == NOW


def test_the_new_version_is_installed_and_the_command_hands_off_to_it(
    upgraded: Instance, newer: Path
) -> None:
    kit_versions.pin(upgraded.folder, newer, NEXT)
    pinned = rows(upgraded.jr2("version", "--local").stdout)
    assert pinned["kit"].endswith(f"; pyproject.toml pins {NEXT} — reinstall")

    upgraded.sync()

    found = rows(upgraded.jr2("version", "--local").stdout)
    assert found["cli"].startswith(f"{NEXT} {newer}/cli/")
    assert found["global"].startswith(f"{NOW} ")
    assert found["kit"] == f"{NEXT} {newer}/runtime/kit/src/jr2 ok"


def test_the_cluster_is_behind(upgraded: Instance) -> None:
    found = rows(upgraded.jr2("version", "--context", CONTEXT).stdout)

    assert found["orchestrator"].startswith("assembly ")
    assert found["operator"].startswith(f"{NOW} ")
    assert found["skew"] == "deployed predates this kit — `jr2 up` converges it"


def test_one_converge_moves_orchestrator_operator_and_assembly(
    upgraded: Instance, run: str, held_publish: HeldPublish
) -> None:
    before = upgraded.get("deployment", names.ORCHESTRATOR)["spec"]["template"]["spec"]
    environment = {"PATH": held_publish.environment["PATH"]}
    child = upgraded.start("up", "--context", CONTEXT, "--yes", environment=environment)
    try:
        # The new Orchestrator runs and holds no Assembly that it could load, until the publish.
        def serves() -> bool:
            health = json.loads(
                upgraded.kubectl(
                    "get", "--raw",
                    f"/api/v1/namespaces/{upgraded.name}/services/"
                    f"{names.ORCHESTRATOR}:{names.ORCHESTRATOR_PORT}/proxy/healthz",
                )
            )  # fmt: skip
            return bool(health["version"] == NEXT and not health.get("hash"))

        def serves_now() -> bool:
            try:
                return serves()
            except AssertionError:
                # It is not up yet.
                return False

        wait_for("the new Orchestrator without an Assembly", serves_now)
        with upgraded.forward() as client:
            refused = client.post("/workflows/ping/runs", json={"message": "hi"})
            assert refused.status_code == 503
            assert "no Assembly is current" in refused.json()["error"]
            assert client.get(f"/runs/{run}").json()["status"] == "active"
    finally:
        held_publish.let_go()
        _, said = child.communicate(timeout=400)
    assert child.returncode == 0, said
    lines = said.splitlines()
    version_image = operator(upgraded)["spec"]["template"]["spec"]["containers"][0]["image"]
    in_order(
        lines,
        f"AGENTS.md: jr2 block updated for {NEXT}",
        f'jr2 up — instance "upgraded" → context {CONTEXT} / namespace upgraded',
        "typecheck: mypy (the instance's own checker)",
        "images: checkout kit",
        f"operator: applying v{NEXT} ({version_image}) over v{NOW}",
        "orchestrator: applying (image ",
        "orchestrator: waiting for rollout",
        "orchestrator: verified — 1 pod(s) running ",
        "assembly: publishing ",
    )
    (published,) = [line for line in lines if line.startswith("assembly: publishing ")]
    assert published.endswith("(no current Assembly)")
    assert lines[-1] == CONVERGED
    after = upgraded.get("deployment", names.ORCHESTRATOR)["spec"]["template"]["spec"]
    assert after["containers"][0]["image"] != before["containers"][0]["image"]
    assert operator(upgraded)["metadata"]["labels"][names.LABEL_VERSION] == NEXT


def test_the_parked_run_drifted_and_says_why(upgraded: Instance, run: str) -> None:
    status = json.loads(upgraded.jr2("status", run, "--context", CONTEXT).stdout)

    assert status["status"] == "drifted"
    reason = json.dumps(status, ensure_ascii=False)
    assert 'workflow \\"parked\\": Assembly ' in reason
    assert f"was published for Kit version {NOW}; this Orchestrator is {NEXT}" in reason


def test_a_new_run_works_and_a_second_converge_changes_nothing(
    upgraded: Instance, pulumi_must_not_run: dict[str, str]
) -> None:
    done = upgraded.jr2("run", "ping", "--context", CONTEXT, "--input", '{"message":"hi"}')
    assert "pong: hi" in done.stdout

    said = upgraded.up(environment=pulumi_must_not_run)
    assert said.splitlines()[-1] == CONVERGED
    assert "AGENTS.md" not in said

    found = rows(upgraded.jr2("version", "--context", CONTEXT).stdout)
    assert "skew" not in found


def test_an_instance_of_the_older_version_never_downgrades_the_operator(
    upgraded: Instance, stays: Instance, pulumi_must_not_run: dict[str, str]
) -> None:
    before = written(operator(stays))
    leaving = f"operator: leaving v{NEXT} (newer than this kit's v{NOW} — never downgraded)"

    said = stays.up().splitlines()

    assert leaving in said
    assert said[-1] == CONVERGED
    assert not [line for line in said if line.startswith("operator: applying")]
    assert written(operator(stays)) == before
    again = stays.up(environment=pulumi_must_not_run).splitlines()
    assert leaving in again
    assert again[-1] == CONVERGED
    # Its own Orchestrator is of its own version.
    pod = stays.pod()
    assert pod["spec"]["containers"][0]["image"] != upgraded.pod()["spec"]["containers"][0]["image"]


def test_the_operator_of_somebody_else_and_classes_of_the_cluster_are_left_alone(
    upgraded: Instance, stays: Instance, pulumi_must_not_run: dict[str, str]
) -> None:
    before = written(operator(stays))
    stays.kubectl("create", "priorityclass", "team-control", "--value=7")
    config = (stays.folder / "jr2_config.py").read_text()
    try:
        stays.write(
            "jr2_config.py",
            "from jr2 import Config, Operator, PriorityClasses\n\n"
            "config = Config(\n"
            "    operator=Operator(manage=False),\n"
            '    priority_classes=PriorityClasses(control="team-control"),\n'
            ")\n",
        )

        said = stays.up().splitlines()

        assert (
            "operator: skipped (operator.manage: false — somebody else runs the operator of this "
            "cluster)"
        ) in said
        assert said[-1] == CONVERGED
        assert stays.pod()["spec"]["priorityClassName"] == "team-control"
        assert stays.pod()["spec"]["priority"] == 7
        assert written(operator(stays)) == before
        # The other Instance still uses the class of jr2, so it stays.
        assert "jr2-control" in stays.kubectl("get", "priorityclasses")
        assert stays.up(environment=pulumi_must_not_run).splitlines()[-1] == CONVERGED
    finally:
        stays.write("jr2_config.py", config)
        stays.up()
        stays.kubectl("delete", "priorityclass", "team-control")


def test_all_is_refused_while_another_instance_needs_it(
    upgraded: Instance, stays: Instance
) -> None:
    before = written(operator(stays))

    done = stays.jr2("down", "--all", "--yes", "--context", CONTEXT, code=1)

    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"refusing: other instances on {CONTEXT} use the operator: ")
    assert '"upgraded" (namespace upgraded)' in last
    assert last.endswith("Nothing was removed.")
    assert written(operator(stays)) == before
    assert stays.pod()


def test_back_at_the_older_version_the_cluster_is_ahead(upgraded: Instance) -> None:
    kit_versions.pin(upgraded.folder, CHECKOUT, NOW)
    upgraded.sync()

    found = rows(upgraded.jr2("version", "--context", CONTEXT).stdout)

    assert found["skew"] == (
        "deployed is newer than this kit — `jr2 up` would roll the orchestrator back; the operator "
        "is never downgraded"
    )
