"""What could make a pod do more than wanted: each of it is named and taken away."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jr2_infra.derived import healing, nothing_more

DATA = Path(__file__).parent / "data" / "derived"


def case(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    found = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return found["wanted"], found["live"]


def with_pod(live: dict[str, Any], added: Mapping[str, Any], fields: Mapping[str, Any]) -> Any:
    """The live object after another manager put something into its pod template."""
    changed = copy.deepcopy(live)
    changed["spec"]["template"]["spec"].update(added)
    changed["metadata"]["managedFields"].append(
        {
            "manager": "evil-tool",
            "operation": "Update",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:template": {"f:spec": fields}}},
        }
    )
    return changed


@pytest.mark.parametrize(
    ("added", "fields", "word"),
    [
        (
            {"hostAliases": [{"ip": "192.0.2.1", "hostnames": ["x"]}]},
            {"f:hostAliases": {'k:{"ip":"192.0.2.1"}': {".": {}, "f:ip": {}}}},
            'host alias "192.0.2.1"',
        ),
        (
            {"imagePullSecrets": [{"name": "evil"}]},
            {"f:imagePullSecrets": {'k:{"name":"evil"}': {}}},
            'image pull secret "evil"',
        ),
        (
            {"resourceClaims": [{"name": "gpu", "resourceClaimName": "x"}]},
            {"f:resourceClaims": {'k:{"name":"gpu"}': {".": {}}}},
            'resource claim "gpu"',
        ),
        (
            {"dnsConfig": {"nameservers": ["192.0.2.1"]}},
            {"f:dnsConfig": {"f:nameservers": {}}},
            "dnsConfig",
        ),
        ({"dnsPolicy": "Default"}, {"f:dnsPolicy": {}}, "dnsPolicy"),
        ({"tolerations": [{"operator": "Exists"}]}, {"f:tolerations": {}}, "toleration"),
        ({"runtimeClassName": "kata"}, {"f:runtimeClassName": {}}, "runtimeClassName"),
        ({"nodeName": "node-1"}, {"f:nodeName": {}}, "nodeName"),
        ({"priorityClassName": "system"}, {"f:priorityClassName": {}}, "priorityClassName"),
        ({"schedulerName": "evil"}, {"f:schedulerName": {}}, "schedulerName"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_field_of_the_pod_is_named_and_taken_away(
    added: dict[str, Any], fields: dict[str, Any], word: str
) -> None:
    wanted, live = case("unchanged-deployment")
    changed = with_pod(live, added, fields)

    (more,) = nothing_more(wanted, changed)

    assert str(more) == f'{word}, put there by "evil-tool"'
    pointer = healing(changed, [more])[1]["path"]
    assert pointer.startswith(f"/spec/template/spec/{next(iter(added))}")


def test_what_the_server_puts_there_is_no_more() -> None:
    wanted, live = case("unchanged-deployment")
    taints = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    live["spec"]["template"]["spec"] |= {
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for key in taints
        ],
    }

    assert nothing_more(wanted, live) == []


def test_a_port_of_the_node_is_taken_away_and_the_wanted_port_stays() -> None:
    wanted, live = case("unchanged-deployment")
    container = live["spec"]["template"]["spec"]["containers"][0]
    (port,) = container["ports"]
    number = port["containerPort"]
    added = {"containerPort": 99, "hostPort": 99, "protocol": "TCP"}
    containers = copy.deepcopy(live["spec"]["template"]["spec"]["containers"])
    containers[0]["ports"] = [{**port, "hostPort": number}, added]
    owned: dict[str, Any] = {
        f'k:{{"containerPort":{number},"protocol":"TCP"}}': {"f:hostPort": {}},
        'k:{"containerPort":99,"protocol":"TCP"}': {".": {}, "f:containerPort": {}},
    }
    name = json.dumps({"name": container["name"]}, separators=(",", ":"))
    changed = with_pod(
        live, {"containers": containers}, {"f:containers": {f"k:{name}": {"f:ports": owned}}}
    )

    more = nothing_more(wanted, changed)

    assert [item.what for item in more] == [
        f'hostPort of port {number}/TCP of container "{container["name"]}"',
        f'port 99/TCP of container "{container["name"]}"',
    ]
    assert {item.by for item in more} == {"evil-tool"}
    root = "/spec/template/spec/containers/0/ports"
    assert [step["path"] for step in healing(changed, more)[1:]] == [
        f"{root}/1",
        f"{root}/0/hostPort",
    ]


def test_a_pull_secret_of_an_account_is_taken_away() -> None:
    wanted, live = case("unchanged-serviceaccount")
    live["imagePullSecrets"] = [{"name": "evil"}]
    live["metadata"]["managedFields"].append(
        {
            "manager": "evil-tool",
            "operation": "Update",
            "fieldsV1": {"f:imagePullSecrets": {'k:{"name":"evil"}': {}}},
        }
    )

    (more,) = nothing_more(wanted, live)

    assert str(more) == 'image pull secret "evil", put there by "evil-tool"'
    assert healing(live, [more])[1] == {"op": "remove", "path": "/imagePullSecrets/0"}


@pytest.mark.parametrize(
    ("ports", "operations"),
    [
        # Another number, and another protocol: the wanted port goes where the foreign one stands.
        ([("http", 4077, "TCP")], [("replace", 0, "http")]),
        ([("http", 4000, "UDP")], [("replace", 0, "http")]),
        ([("other", 4077, "TCP")], [("replace", 0, "http")]),
        ([("http", 4077, "TCP"), ("metrics", 9090, "TCP")], [("replace", 0, "http")]),
        ([("http", 9090, "UDP"), ("metrics", 4077, "TCP")],
         [("replace", 1, "metrics"), ("replace", 0, "http")]),
        # What is beside the wanted ones goes.
        ([("http", 4000, "TCP"), ("more", 99, "TCP"), ("metrics", 9090, "TCP")],
         [("remove", 1, None)]),
        ([("more", 99, "TCP"), ("http", 4077, "TCP"), ("metrics", 9090, "TCP")],
         [("remove", 1, None), ("replace", 0, "http")]),
    ],
)  # fmt: skip
def test_a_service_has_a_port_at_all_times(
    ports: list[tuple[str, int, str]], operations: list[tuple[str, int, str | None]]
) -> None:
    """The API takes no Service without a port, and no two ports of one name."""
    both = (("http", 4000), ("metrics", 9090))
    wanted: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s", "namespace": "n"},
        "spec": {"ports": [{"name": name, "port": port} for name, port in both]},
    }
    found = [{"name": name, "port": port, "protocol": how} for name, port, how in ports]
    keys = [json.dumps({"port": port, "protocol": how}) for _, port, how in ports]
    live = {
        **wanted,
        "metadata": {
            **wanted["metadata"],
            "resourceVersion": "1",
            "managedFields": [
                {
                    "manager": "kubectl-edit",
                    "operation": "Update",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:spec": {"f:ports": {f"k:{key}": {".": {}} for key in keys}}},
                }
            ],
        },
        "spec": {"ports": found},
    }

    test, *done = healing(live, nothing_more(wanted, live))

    assert test["op"] == "test"
    assert [
        (one["op"], int(one["path"].rpartition("/")[2]), one.get("value", {}).get("name"))
        for one in done
    ] == operations
