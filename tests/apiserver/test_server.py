"""The API server that the other tests here stand on."""

from __future__ import annotations

import subprocess

from jr2_infra.api import Api
from jr2_infra.facts import cluster
from tests.apiserver.server import ApiServer


def test_what_it_makes_is_there_for_the_converge_and_for_kubectl(api_server: ApiServer) -> None:
    api_server.add_namespace("seen")
    with api_server.kube_context().http() as http:
        contact = cluster.read_contact(Api(http), "tests", "seen", with_nodes=True)
    assert contact.version.startswith("v1.")
    assert contact.cluster_uid
    assert contact.namespace is not None
    assert "seen" in api_server.run_kubectl("get", "namespaces")


def test_a_node_is_as_its_kubelet_would_report_it(api_server: ApiServer) -> None:
    api_server.add_node(
        "arm",
        architecture="arm64",
        memory="2Gi",
        taints=[{"key": "k", "effect": "NoSchedule"}],
        unschedulable=True,
        images=["r.example/app:1"],
    )
    try:
        node = api_server.get("/api/v1/nodes/arm")
        assert node["status"]["nodeInfo"]["architecture"] == "arm64"
        assert node["status"]["allocatable"]["memory"] == "2Gi"
        assert node["spec"]["unschedulable"] is True
        assert {"key": "k", "effect": "NoSchedule"} in node["spec"]["taints"]
        assert node["status"]["images"][0]["names"] == ["r.example/app:1"]
    finally:
        api_server.remove("/api/v1/nodes/arm")


def test_rights_hold_for_users_and_for_service_accounts(api_server: ApiServer) -> None:
    api_server.add_namespace("readers")
    for kubeconfig in (
        api_server.user_kubeconfig("somebody", "readers"),
        api_server.account_kubeconfig("readers", "default"),
    ):
        done = subprocess.run(
            [str(api_server.kubectl), "--kubeconfig", str(kubeconfig), "get", "secrets",
             "-n", "readers"],
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 1
        assert "Forbidden" in done.stderr


def test_servers_stand_side_by_side_with_data_and_gates_of_their_own(
    api_server: ApiServer, api_server_without_pod_resources: ApiServer
) -> None:
    other = api_server_without_pod_resources
    other.add_namespace("only-here")
    assert api_server.get("/api/v1/namespaces/only-here") is None
    api_server.add_namespace("probed")
    for server, namespace, kept in ((api_server, "probed", True), (other, "only-here", False)):
        with server.kube_context().http() as http:
            assert cluster.keeps_pod_resources(Api(http), namespace) is kept


def test_a_namespace_goes_when_its_controller_runs(api_server: ApiServer) -> None:
    api_server.add_namespace("goes")
    api_server.run_kubectl("delete", "namespace", "goes", "--timeout=200s")
    assert api_server.get("/api/v1/namespaces/goes") is None
