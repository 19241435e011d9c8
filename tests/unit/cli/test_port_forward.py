"""The way to an Orchestrator in a cluster: Secret, kubectl port-forward, reconnection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jr2 import errors
from jr2_cli import follow, output, target
from jr2_cli.port_forward import ForwardFailed, PortForward
from jr2_infra.kube import KubeContext, load_context
from tests.unit.cli.conftest import RUN, SECRET, TOKEN, run_status

if TYPE_CHECKING:
    from tests.unit.cli.conftest import FarKubectl, FarOrchestrator


def forward(kubectl: FarKubectl, within: float = 30.0) -> PortForward:
    return PortForward(
        kubectl.path, context="kind-jr2", namespace="my-instance", ready_within=within
    )


def test_the_announced_port_is_the_address_and_kubectl_ends_with_it(kubectl: FarKubectl) -> None:
    kubectl.does(
        'print("a word before", flush=True)\n'
        'print("Forwarding from 127.0.0.1:40331 -> 4000", flush=True)\n'
        'print("Forwarding from [::1]:40331 -> 4000", flush=True)\n'
        "time.sleep(60)\n"
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
    kubectl.does('print("waiting", file=sys.stderr, flush=True)\ntime.sleep(60)\n')

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
    assert cluster.token() == TOKEN
    assert far.asked == [("GET", SECRET, None)]


def test_an_instance_that_is_not_there_is_not_a_cluster_that_does_not_answer(
    cluster: target.ClusterTarget, far: FarOrchestrator
) -> None:
    del far.objects[SECRET]
    with pytest.raises(target.NotDeployed) as missing:
        cluster.token()
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
        target.ClusterTarget(context=gone, namespace="my-instance").token()
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
