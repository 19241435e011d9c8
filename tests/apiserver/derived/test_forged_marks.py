"""Labels and `managedFields` that somebody forged on an object of their own delete nothing.

Every foreign object here says in each way that it is jr2's: the labels of the Instance, and an
apply entry of the manager `jr2`. A converge and `down` go by the closed list of kinds and names.

Source: design §5.2 (The cluster is the state).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jr2 import names
from jr2_infra import closed_list
from jr2_infra.closed_list import Kind
from jr2_infra.derived import is_applied
from jr2_infra.down import remove
from jr2_infra.rules import Place
from tests.apiserver.derived.converged import Converged
from tests.apiserver.engine.conftest import Reporter
from tests.apiserver.server import LIGHT_CONTROLLERS, ApiServer

NAME = "marked"
OTHERS = "elsewhere"
LABELS = {names.LABEL_INSTANCE: NAME, names.LABEL_MANAGED_BY: names.MANAGED_BY}
POD = {
    "metadata": {"labels": {"app": "theirs"}},
    "spec": {"containers": [{"name": "theirs", "image": "theirs:1"}]},
}


def forged(
    kind: Kind, name: str, namespace: str | None, **body: Any
) -> tuple[Kind, dict[str, Any]]:
    metadata: dict[str, Any] = {"name": name, "labels": dict(LABELS)}
    if namespace is not None:
        metadata["namespace"] = namespace
    return kind, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **body}


def foreign() -> list[tuple[Kind, dict[str, Any]]]:
    """Return objects that are not on the closed list, and look as if they were."""
    workload = {
        "selector": {"matchLabels": {"app": "theirs"}},
        "replicas": 0,
        "template": POD,
    }
    rbac = "rbac.authorization.k8s.io"
    return [
        # Other names, in the Instance's own namespace.
        forged(closed_list.CONFIG_MAP, "team-settings", NAME, data={"a": "b"}),
        forged(closed_list.SECRET, "team-secret", NAME, data={"a": "eA=="}),
        forged(closed_list.SERVICE_ACCOUNT, "team", NAME),
        forged(closed_list.ROLE, "jr2-orchestrator-2", NAME, rules=[]),
        forged(closed_list.DEPLOYMENT, "jr2-orchestrator-2", NAME, spec=workload),
        forged(closed_list.NETWORK_POLICY, "jr2", NAME, spec={"podSelector": {}}),
        # A name of the list, and another kind.
        forged(closed_list.CONFIG_MAP, names.ORCHESTRATOR, NAME, data={"a": "b"}),
        forged(closed_list.SECRET, names.IMAGES_MAP, NAME, data={"a": "eA=="}),
        forged(closed_list.SERVICE, names.OPERATOR, NAME, spec={"ports": [{"port": 80}]}),
        # Name and kind of the list, in a namespace of somebody else.
        forged(closed_list.SECRET, names.INSTANCE_SECRET, OTHERS, data={"a": "eA=="}),
        forged(closed_list.DEPLOYMENT, names.ORCHESTRATOR, OTHERS, spec=workload),
        forged(closed_list.DEPLOYMENT, names.OPERATOR, OTHERS, spec=workload),
        # Objects of the cluster.
        forged(closed_list.CLUSTER_ROLE, "jr2-theirs", None, rules=[]),
        forged(
            closed_list.CLUSTER_ROLE_BINDING,
            "jr2-theirs",
            None,
            roleRef={"apiGroup": rbac, "kind": "ClusterRole", "name": "jr2-theirs"},
        ),
        forged(closed_list.PRIORITY_CLASS, "jr2-theirs", None, value=1),
    ]


def path_of(kind: Kind, obj: dict[str, Any]) -> str:
    return kind.path(obj["metadata"].get("namespace"), obj["metadata"]["name"])


def standing(converged: Converged) -> dict[str, str]:
    """Return uid and version of each foreign object; one that is gone is missing."""
    found: dict[str, str] = {}
    for kind, obj in foreign():
        live = converged.api.get(path_of(kind, obj))
        if live is not None:
            metadata = live["metadata"]
            found[path_of(kind, obj)] = f"{metadata['uid']} {metadata['resourceVersion']}"
    return found


@pytest.fixture
def converged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Converged]:
    server = ApiServer(
        tmp_path_factory.mktemp("marked"),
        # With it a claim of a namespace that goes is let go.
        controllers=(*LIGHT_CONTROLLERS, "persistentvolumeclaim-protection-controller"),
    )
    try:
        server.start()
        with Converged(server, NAME) as made:
            server.add_namespace(NAME, {names.LABEL_INSTANCE: NAME})
            server.add_namespace(OTHERS)
            made.heal(made.look())
            for kind, obj in foreign():
                made.api.apply(kind, obj)
            yield made
    finally:
        server.stop()


def test_a_converge_sees_none_of_them(converged: Converged) -> None:
    before = standing(converged)
    assert len(before) == len(foreign())
    for kind, obj in foreign():
        live = converged.api.get(path_of(kind, obj))
        assert live is not None
        assert is_applied(live), "the mark is as real as jr2's own"

    look = converged.look()
    assert look.verdict() == {}
    assert look.surplus == ()
    # An engine that has something to do leaves them, too.
    converged.server.remove(closed_list.CONFIG_MAP.path(NAME, names.IMAGES_MAP))
    done = converged.heal(converged.look())

    assert [(step.resource, step.operation) for step in done.changed] == [
        (f"configmap-{names.IMAGES_MAP}", "create")
    ]
    assert standing(converged) == before


def test_of_a_listed_name_only_what_jr2_applied_and_nobody_owns_goes(converged: Converged) -> None:
    """The names are those of parts that this Instance does not want."""
    api = converged.api
    team = api.get(closed_list.SERVICE_ACCOUNT.path(NAME, "team"))
    assert team is not None
    owner = {"apiVersion": "v1", "kind": "ServiceAccount", "name": "team"}
    clone = f"{names.GIT_SECRET_PREFIX}0123abcd"
    ours, labelled, owned = (
        forged(closed_list.SERVICE_ACCOUNT, names.REPO_CACHE, NAME),
        forged(closed_list.SECRET, clone, NAME, data={"a": "eA=="}),
        forged(closed_list.ROLE, names.REPO_CACHE, NAME, rules=[]),
    )
    owned[1]["metadata"]["ownerReferences"] = [{**owner, "uid": team["metadata"]["uid"]}]
    for kind, obj in (ours, owned):
        api.apply(kind, obj)
    converged.server.post(closed_list.SECRET.path(NAME), labelled[1])

    look = converged.look()

    said = [(item.operation, item.key) for item in look.found]
    assert [(what, key.name) for what, key in said if key] == [("delete", names.REPO_CACHE)]
    done = converged.heal(look)
    assert [step.operation for step in done.changed] == ["delete"]
    assert api.get(path_of(*ours)) is None
    assert api.get(path_of(*labelled)) is not None
    assert api.get(path_of(*owned)) is not None
    assert standing(converged).keys() == {path_of(kind, obj) for kind, obj in foreign()}


def test_down_takes_its_own_namespace_and_what_is_shared_by_name(converged: Converged) -> None:
    before = standing(converged)
    place = Place(instance=NAME, context=converged.server.context, namespace=NAME)

    remove(converged.http, place, all_=True, yes=True, force=True, reporter=Reporter())

    after = standing(converged)
    inside = f"/namespaces/{NAME}/"
    assert after == {path: mark for path, mark in before.items() if inside not in path}
    for kind, name in closed_list.CLUSTER_OBJECTS:
        assert converged.api.get(kind.path(name=name)) is None, name
