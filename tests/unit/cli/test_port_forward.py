"""The way to an Orchestrator in a cluster: Secret, kubectl port-forward, reconnection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jr2 import errors, names
from jr2_cli import follow, output, target, way
from jr2_cli.port_forward import ForwardFailed, PortForward
from jr2_infra.kube import KubeContext, load_context
from tests.unit.cli.conftest import (
    DEPLOYMENT,
    NAMESPACE,
    RUN,
    SECRET,
    SIGNING_KEY,
    TOKEN,
    run_status,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import FarKubectl, FarOrchestrator, Jr2


def forward(kubectl: FarKubectl, within: float = 30.0) -> PortForward:
    return PortForward(
        kubectl.path, context="kind-jr2", namespace="my-instance", ready_within=within
    )


def test_the_announced_port_is_the_address_and_kubectl_ends_with_it(kubectl: FarKubectl) -> None:
    kubectl.does(
        'print("a word before", flush=True)\n'
        'print("Forwarding from 127.0.0.1:40331 -> 4000", flush=True)\n'
        'print("Forwarding from [::1]:40331 -> 4000", flush=True)\n'
        "time.sleep(3600)\n"
    )

    with forward(kubectl) as opened:
        assert opened.url == "http://127.0.0.1:40331"
        assert opened.alive
    assert not opened.alive
    assert kubectl.started == [
        "--context=kind-jr2 --namespace=my-instance port-forward --address=127.0.0.1 "
        "service/jr2-orchestrator :4000"
    ]


def test_a_kubectl_that_fails_is_quoted(kubectl: FarKubectl) -> None:
    kubectl.does('sys.exit("error: services \\"jr2-orchestrator\\" not found")')

    with pytest.raises(ForwardFailed) as raised:
        forward(kubectl)

    assert str(raised.value) == (
        "cannot forward a port to service/jr2-orchestrator in namespace my-instance of kind-jr2: "
        'kubectl port-forward: it ended\n  error: services "jr2-orchestrator" not found'
    )


def test_a_kubectl_that_announces_nothing_is_not_waited_for_for_ever(
    kubectl: FarKubectl,
) -> None:
    kubectl.does('print("waiting", file=sys.stderr, flush=True)\ntime.sleep(3600)\n')

    with pytest.raises(ForwardFailed, match=r"announced no port within 0\.5s"):
        forward(kubectl, within=0.5)


def test_a_kubectl_that_is_not_there_is_named(kubectl: FarKubectl) -> None:
    kubectl.path.unlink()

    with pytest.raises(ForwardFailed, match=r"cannot run .*kubectl: No such file or directory"):
        forward(kubectl)


@pytest.fixture
def cluster(
    far: FarOrchestrator, in_cluster: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> target.ClusterTarget:
    """An Instance in a cluster whose API server and Orchestrator are the far one."""
    for name, value in in_cluster.items():
        monkeypatch.setenv(name, value)
    return target.ClusterTarget(context=load_context(None), namespace="my-instance")


def test_the_token_comes_from_the_secret(
    cluster: target.ClusterTarget, far: FarOrchestrator
) -> None:
    assert cluster.values() == target.Values(token=TOKEN, signing_key=SIGNING_KEY)
    assert "CANARY" not in repr(cluster.values())
    assert far.asked == [("GET", SECRET, None)] * 2


def test_an_instance_that_is_not_there_is_not_a_cluster_that_does_not_answer(
    cluster: target.ClusterTarget, far: FarOrchestrator
) -> None:
    del far.objects[SECRET]
    with pytest.raises(target.NotDeployed) as missing:
        cluster.values()
    assert str(missing.value) == (
        "not deployed here — context kind-jr2 / namespace my-instance holds no Secret jr2-instance; "
        "run `jr2 up`"
    )

    gone = KubeContext(
        name="kind-jr2",
        server="http://127.0.0.1:1",
        namespace="default",
        cluster={"server": "http://127.0.0.1:1"},
        user={},
    )
    with pytest.raises(errors.StepFailed, match="cannot reach the API server of kind-jr2") as away:
        target.ClusterTarget(context=gone, namespace="my-instance").values()
    assert not isinstance(away.value, target.NotDeployed)


def test_a_link_goes_through_a_forward_and_closes_it(
    cluster: target.ClusterTarget, far: FarOrchestrator, kubectl: FarKubectl
) -> None:
    link = target.Link(url=None, token=TOKEN, cluster=cluster)

    assert link.client.live_runs() == [run_status()]
    link.drop()

    assert far.tokens == [f"Bearer {TOKEN}"]
    assert len(kubectl.started) == 1


def test_a_dropped_forward_is_opened_again_while_a_run_is_followed(
    cluster: target.ClusterTarget,
    far: FarOrchestrator,
    kubectl: FarKubectl,
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = run_status("done")
    far.feeds = [[("status", run_status())], [("status", run_status()), ("status", done)]]
    link = target.Link(url=None, token=TOKEN, cluster=cluster)

    status = follow.until_settled(link, RUN, output.Output(), sleep=lambda _: None)
    link.drop()

    assert status == done
    assert len(kubectl.started) == 2
    assert capsys.readouterr().err.splitlines() == [
        '  → active "waiting"',
        "  the connection to the Orchestrator broke — the run goes on, attaching again",
        '  → done "waiting"',
    ]


def test_a_forward_through_which_nothing_answers_says_kubectls_words(
    cluster: target.ClusterTarget, kubectl: FarKubectl
) -> None:
    kubectl.does(
        'print("Forwarding from 127.0.0.1:1 -> 4000", flush=True)\n'
        'sys.exit("error: lost connection to pod")'
    )
    link = target.Link(url=None, token=TOKEN, cluster=cluster)

    with pytest.raises(ForwardFailed, match="it ended\n  error: lost connection to pod"):
        _ = link.client
    link.drop()


ANNOUNCES = 'print("Forwarding from 127.0.0.1:1 -> 4000", flush=True)\n'
COMPLAINS = (
    'print("E1130 02:00:00.1 error forwarding port 4000: refused", file=sys.stderr, flush=True)\n'
)
STAYS = "time.sleep(3600)\n"
ENDS = 'sys.exit("error: unable to forward port because pod is not running")\n'
GOING = (
    "error: namespace my-instance of kind-jr2 is being deleted — once it is gone, `jr2 up` deploys "
    "the Instance again"
)
UNREADY = "error: the Orchestrator in namespace my-instance of kind-jr2 is not ready"


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the cluster after a moment; the last wait is longer than a test may last."""
    monkeypatch.setattr(way, "_OPEN_SECONDS", (2.0, 600.0))
    monkeypatch.setattr(way, "_ANSWER_SECONDS", (2.0, 600.0))


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("does", [STAYS, ENDS, ANNOUNCES + STAYS, COMPLAINS + ANNOUNCES + STAYS])
def test_a_namespace_that_is_being_deleted_is_why_no_forward_works(
    jr2: Jr2,
    instance: Path,
    far: FarOrchestrator,
    in_cluster: dict[str, str],
    kubectl: FarKubectl,
    does: str,
) -> None:
    far.objects[NAMESPACE] = {
        "metadata": {"name": "my-instance", "deletionTimestamp": "2026-11-30T02:00:00Z"}
    }
    kubectl.does(does)

    said = jr2("run", "ping", cwd=instance, env=in_cluster)

    assert (said.code, said.stdout) == (1, "")
    assert said.stderr.splitlines()[1:] == [GOING]
    assert len(kubectl.started) == 1


def test_a_namespace_that_is_being_deleted_is_why_the_secret_is_gone(
    jr2: Jr2, instance: Path, far: FarOrchestrator, in_cluster: dict[str, str]
) -> None:
    del far.objects[SECRET]
    far.objects[NAMESPACE] = {"metadata": {"deletionTimestamp": "2026-11-30T02:00:00Z"}}

    said = jr2("run", "ping", cwd=instance, env=in_cluster)

    assert said.code == 1
    assert said.stderr.splitlines()[1:] == [GOING]


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("does", [ENDS, COMPLAINS + ANNOUNCES + STAYS, ANNOUNCES + ENDS])
def test_an_orchestrator_that_is_not_ready_is_why_a_forward_fails(
    jr2: Jr2,
    instance: Path,
    far: FarOrchestrator,
    in_cluster: dict[str, str],
    kubectl: FarKubectl,
    does: str,
) -> None:
    far.objects[DEPLOYMENT]["status"] = {"unavailableReplicas": 1}
    kubectl.does(does)

    said = jr2("runs", cwd=instance, env=in_cluster)

    assert (said.code, said.stdout) == (1, "")
    lines = said.stderr.splitlines()[1:]
    assert lines[:2] == [
        UNREADY,
        "  see: kubectl --context=kind-jr2 -n my-instance get pods",
    ]
    assert lines[2].startswith("  cannot forward a port to service/jr2-orchestrator")


@pytest.mark.usefixtures("soon")
def test_an_orchestrator_that_is_gone_is_why_a_forward_fails(
    jr2: Jr2,
    instance: Path,
    far: FarOrchestrator,
    in_cluster: dict[str, str],
    kubectl: FarKubectl,
) -> None:
    del far.objects[DEPLOYMENT]
    kubectl.does(ENDS)

    said = jr2("runs", cwd=instance, env=in_cluster)

    assert said.code == 1
    assert said.stderr.splitlines()[1:] == [
        "error: not deployed here — context kind-jr2 / namespace my-instance holds no Deployment "
        "jr2-orchestrator; run `jr2 up`"
    ]


@pytest.mark.usefixtures("soon")
def test_a_kubectl_that_is_slow_and_says_no_error_is_waited_for(
    jr2: Jr2,
    instance: Path,
    far: FarOrchestrator,
    in_cluster: dict[str, str],
    kubectl: FarKubectl,
) -> None:
    kubectl.does(
        "if sum(1 for _ in open(os.path.join(folder, 'started'))) == 1: time.sleep(3600)\n"
        "print('a warning', file=sys.stderr, flush=True)\n"
        f'print("Forwarding from 127.0.0.1:{far.port} -> 4000", flush=True)\n{STAYS}'
    )

    said = jr2("runs", cwd=instance, env=in_cluster)

    assert said.code == 0
    assert len(kubectl.started) == 2


def test_following_gives_up_after_its_limit_and_says_how_to_go_on(
    far: FarOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    link = target.Link(url="http://127.0.0.1:1", token=TOKEN)
    now = iter(range(0, 10_000, 50))

    with pytest.raises(errors.StepFailed) as raised:
        follow.until_settled(
            link, RUN, output.Output(), clock=lambda: next(now), sleep=lambda _: None
        )
    link.drop()

    assert str(raised.value).endswith(
        f"\nthe run goes on without this command — `jr2 logs {RUN} -f` follows it"
    )
    assert capsys.readouterr().err.count("attaching again") == 1


@pytest.mark.parametrize("key", [None, SIGNING_KEY[::-1]])
@pytest.mark.parametrize("environment", [{}, {names.ENV_TOKEN: TOKEN}])
def test_no_token_is_sent_to_what_does_not_prove_that_it_is_the_instance(
    jr2: Jr2,
    instance: Path,
    far: FarOrchestrator,
    in_cluster: dict[str, str],
    key: str | None,
    environment: dict[str, str],
) -> None:
    far.signing_key = key

    said = jr2("runs", cwd=instance, env={**in_cluster, **environment})

    assert (said.code, said.stdout) == (1, "")
    assert said.stderr.splitlines()[1:] == [
        "error: what answers for service/jr2-orchestrator in namespace my-instance of kind-jr2 "
        "does not prove that it is the Instance's Orchestrator, so no token was sent — is it of an "
        "older jr2? Then run `jr2 up`"
    ]
    assert far.tokens == []
    assert "CANARY" not in said.stderr


def test_a_key_that_nobody_can_use_sends_no_token(
    jr2: Jr2, instance: Path, far: FarOrchestrator, in_cluster: dict[str, str]
) -> None:
    far.objects[SECRET]["data"][names.KEY_SIGNING_KEY] = "c2hvcnQ="

    said = jr2("runs", cwd=instance, env=in_cluster)

    assert said.code == 1
    assert "no token was sent" in said.stderr
    assert far.tokens == []
