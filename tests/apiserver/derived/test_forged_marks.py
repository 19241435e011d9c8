"""Labels and `managedFields` that somebody forged on an object of their own delete nothing.

Every foreign object here says in each way that it is jr2's: the labels of the Instance, and an
apply entry of the manager `jr2`. A converge and `down` go by the closed list of kinds and names, and
of those that come and go a converge deletes what its record says it made.

Source: design §5.2 (The cluster is the state), ADR-0154.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from jr2 import names
from jr2_infra import closed_list
from jr2_infra.closed_list import Kind
from jr2_infra.derived import is_applied
from jr2_infra.down import remove
from jr2_infra.git import GitWants
from jr2_infra.git.tokens import GitToken
from jr2_infra.made import Marks, keep
from jr2_infra.parts import PartsWanted
from jr2_infra.rules import Place
from tests.apiserver.derived.converged import Converged
from tests.apiserver.server import ApiServer
from tests.reporter import Reporter

OTHERS = "elsewhere"
POD = {
    "metadata": {"labels": {"app": "theirs"}},
    "spec": {"containers": [{"name": "theirs", "image": "theirs:1"}]},
}
WORKLOAD = {"selector": {"matchLabels": {"app": "theirs"}}, "replicas": 0, "template": POD}
TOKEN = GitToken(match="github.com/you/", use="clone", value="a-token")


def forged(
    kind: Kind, name: str, namespace: str | None, **body: Any
) -> tuple[Kind, dict[str, Any]]:
    labels = {names.LABEL_MANAGED_BY: names.MANAGED_BY}
    if namespace is not None:
        labels[names.LABEL_INSTANCE] = namespace
    metadata: dict[str, Any] = {"name": name, "labels": labels}
    if namespace is not None:
        metadata["namespace"] = namespace
    return kind, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **body}


def foreign(own: str) -> list[tuple[Kind, dict[str, Any]]]:
    """Return objects that are not on the closed list, and look as if they were."""
    rbac = "rbac.authorization.k8s.io"
    found = [
        # Other names, in the Instance's own namespace.
        forged(closed_list.CONFIG_MAP, "team-settings", own, data={"a": "b"}),
        forged(closed_list.SECRET, "team-secret", own, data={"a": "eA=="}),
        forged(closed_list.SERVICE_ACCOUNT, "team", own),
        forged(closed_list.ROLE, "jr2-orchestrator-2", own, rules=[]),
        forged(closed_list.DEPLOYMENT, "jr2-orchestrator-2", own, spec=WORKLOAD),
        forged(closed_list.NETWORK_POLICY, "jr2", own, spec={"podSelector": {}}),
        # A name of the list, and another kind.
        forged(closed_list.CONFIG_MAP, names.ORCHESTRATOR, own, data={"a": "b"}),
        forged(closed_list.SECRET, names.IMAGES_MAP, own, data={"a": "eA=="}),
        forged(closed_list.SERVICE, names.OPERATOR, own, spec={"ports": [{"port": 80}]}),
        # Name and kind of the list, in a namespace of somebody else.
        forged(closed_list.SECRET, names.INSTANCE_SECRET, OTHERS, data={"a": "eA=="}),
        forged(closed_list.DEPLOYMENT, names.ORCHESTRATOR, OTHERS, spec=WORKLOAD),
        forged(closed_list.DEPLOYMENT, names.OPERATOR, OTHERS, spec=WORKLOAD),
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
    for _, obj in found:
        obj["metadata"]["labels"][names.LABEL_INSTANCE] = own
    return found


def path_of(kind: Kind, obj: dict[str, Any]) -> str:
    return kind.path(obj["metadata"].get("namespace"), obj["metadata"]["name"])


def standing(converged: Converged) -> dict[str, str]:
    """Return uid and version of each foreign object; one that is gone is missing."""
    found: dict[str, str] = {}
    for kind, obj in foreign(converged.name):
        live = converged.api.get(path_of(kind, obj))
        if live is not None:
            metadata = live["metadata"]
            found[path_of(kind, obj)] = f"{metadata['uid']} {metadata['resourceVersion']}"
    return found


def templates_of(converged: Converged) -> dict[str, Any]:
    """Return the pod template of each Deployment, by its name."""
    return {
        key.name: obj["spec"]["template"]
        for key, obj in converged.look().live.items()
        if key.kind == "Deployment"
    }


@pytest.fixture(scope="module")
def server(own_server: ApiServer) -> ApiServer:
    own_server.add_namespace(OTHERS)
    return own_server


_numbers = itertools.count(1)


@pytest.fixture
def converged(server: ApiServer) -> Iterator[Converged]:
    """An Instance of the test's own, and what others made beside it."""
    with Converged(server, f"marked-{next(_numbers)}") as made:
        server.add_namespace(made.name, {names.LABEL_INSTANCE: made.name})
        made.apply(made.look())
        for kind, obj in foreign(made.name):
            made.api.apply(kind, obj)
        yield made


def test_a_converge_sees_none_of_them(converged: Converged) -> None:
    before = standing(converged)
    assert len(before) == len(foreign(converged.name))
    for kind, obj in foreign(converged.name):
        live = converged.api.get(path_of(kind, obj))
        assert live is not None
        assert is_applied(live), "the mark is as real as jr2's own"

    look = converged.look()
    assert look.verdict() == {}
    assert look.surplus == ()
    # An engine that has something to do leaves them, too.
    converged.server.remove(closed_list.CONFIG_MAP.path(converged.name, names.IMAGES_MAP))
    done = converged.heal(converged.look())

    assert [(step.resource, step.operation) for step in done.changed] == [
        (f"configmap-{names.IMAGES_MAP}", "create")
    ]
    assert standing(converged) == before


def test_of_a_listed_name_only_what_a_converge_made_and_nobody_owns_goes(
    converged: Converged,
) -> None:
    """The parts and the token come and go; what looks like them was made by somebody else."""
    api, world = converged.api, converged.world
    plain = world.wants
    world.wants = replace(plain, parts=PartsWanted(repo_cache=True), git=GitWants(tokens=(TOKEN,)))
    converged.heal(converged.look())
    made_ones = [
        closed_list.SECRET.path(converged.name, TOKEN.secret),
        closed_list.DAEMON_SET.path(converged.name, names.REPO_CACHE),
        closed_list.SERVICE_ACCOUNT.path(converged.name, names.REPO_CACHE),
        closed_list.ROLE_BINDING.path(converged.name, names.REPO_CACHE),
    ]
    assert all(api.get(path) for path in made_ones)
    # One of ours that another object owns by now.
    role = closed_list.ROLE.path(converged.name, names.REPO_CACHE)
    team = api.get(closed_list.SERVICE_ACCOUNT.path(converged.name, "team"))
    assert team is not None
    owner = {"apiVersion": "v1", "kind": "ServiceAccount", "name": "team"}
    owners = [{**owner, "uid": team["metadata"]["uid"]}]
    api.merge_patch(role, {"metadata": {"ownerReferences": owners}}, manager="team")
    # One of ours that is gone, and somebody else's in its place, with its labels and its mark.
    account = api.get(made_ones.pop(2))
    assert account is not None
    api.delete(
        closed_list.SERVICE_ACCOUNT.path(converged.name, names.REPO_CACHE),
        uid=account["metadata"]["uid"],
    )
    looks_like = [
        forged(closed_list.SERVICE_ACCOUNT, names.REPO_CACHE, converged.name),
        forged(
            closed_list.SECRET,
            f"{names.GIT_SECRET_PREFIX}0123abcd",
            converged.name,
            data={"a": "eA=="},
        ),
        forged(closed_list.STATEFUL_SET, names.INSTANCE_HARNESS, converged.name, spec=WORKLOAD),
        forged(closed_list.CONFIG_MAP, names.CA_MAP, converged.name, data={"ca.crt": "theirs"}),
    ]
    mark = account["metadata"]["annotations"][names.ANNOTATION_MARK]
    for kind, obj in looks_like:
        obj["metadata"]["annotations"] = {names.ANNOTATION_MARK: mark}
        api.apply(kind, obj)
        live = api.get(path_of(kind, obj))
        assert live is not None
        assert is_applied(live), "the mark is as real as jr2's own"
    before = {path_of(*one): api.get(path_of(*one)) for one in looks_like}

    world.wants = plain
    look = converged.look()
    done = converged.heal(look)

    assert {step.operation for step in done.changed} == {"delete"}
    assert [path for path in made_ones if api.get(path)] == []
    assert api.get(role) is not None
    assert {path: api.get(path) for path in before} == before
    said = [line for line in look.plan.lines if line.startswith("left alone: ")]
    assert sorted(line.split(" carries ")[0] for line in said) == [
        f"left alone: {obj['kind']} {obj['metadata']['name']}"
        for _, obj in sorted(looks_like, key=lambda one: one[1]["kind"])
    ]
    assert standing(converged).keys() == {
        path_of(kind, obj) for kind, obj in foreign(converged.name)
    }
    again = converged.look()
    assert again.verdict() == {}
    assert again.plan.making.is_settled


def test_a_killed_converge_leaks_nothing_and_takes_nothing_of_others(converged: Converged) -> None:
    api, world = converged.api, converged.world
    plain = world.wants
    secret = closed_list.SECRET.path(converged.name, TOKEN.secret)

    # Killed after it wrote down what it will make: somebody else makes one of that name.
    world.wants = replace(plain, git=GitWants(tokens=(TOKEN,)))
    making = converged.look().plan.making
    keep(api, converged.name, making.record, over=making.found)
    kind, theirs = forged(closed_list.SECRET, TOKEN.secret, converged.name, data={"a": "eA=="})
    digest = making.record.pending[f"Secret/{TOKEN.secret}"]
    theirs["metadata"]["annotations"] = {names.ANNOTATION_MARK: digest}
    made = api.apply(kind, theirs)
    world.wants, world.marks = plain, Marks()
    look = converged.look()
    assert look.surplus == ()
    converged.heal(look)
    assert (api.get(secret) or {})["metadata"]["uid"] == made["metadata"]["uid"]
    assert converged.look().plan.making.is_settled
    api.delete(secret, uid=made["metadata"]["uid"])

    # Killed after the object, before its uid was written down.
    world.wants = replace(plain, git=GitWants(tokens=(TOKEN,)))
    converged.heal(converged.look(), settles=False)
    assert not converged.look().plan.making.is_settled
    world.wants, world.marks = plain, Marks()
    converged.heal(converged.look())
    assert api.get(secret) is None
    assert converged.look().plan.making.is_settled


def test_an_instance_of_an_earlier_kit_is_written_down_before_anything_of_it_goes(
    converged: Converged,
) -> None:
    """There is no record, and no object carries a mark."""
    api, world = converged.api, converged.world
    plain = world.wants
    world.wants = replace(plain, git=GitWants(tokens=(TOKEN,)))
    converged.heal(converged.look())
    space = closed_list.NAMESPACE.path(name=converged.name)
    none = {"metadata": {"annotations": {names.ANNOTATION_MADE: None}}}
    api.merge_patch(space, none, manager="earlier")
    templates = templates_of(converged)

    # The token is not wanted any more: with nothing written down, it is named and left alone.
    world.wants, world.marks = plain, Marks()
    look = converged.look()
    assert look.surplus == ()
    assert any(f"Secret {TOKEN.secret} " in line for line in look.plan.lines)
    assert set(look.verdict().values()) == {"update"}
    assert look.plan.drift == ()
    converged.heal(look)
    assert converged.look().verdict() == {}
    # A mark starts no pod again: no template changed.
    assert templates_of(converged) == templates

    # Once a converge has applied it, it is known, and goes.
    world.wants = replace(plain, git=GitWants(tokens=(TOKEN,)))
    converged.heal(converged.look())
    world.wants = plain
    converged.heal(converged.look())
    assert api.get(closed_list.SECRET.path(converged.name, TOKEN.secret)) is None


def test_down_takes_its_own_namespace_and_what_is_shared_by_name(converged: Converged) -> None:
    before = standing(converged)
    place = Place(
        instance=converged.name, context=converged.server.context, namespace=converged.name
    )

    remove(converged.http, place, all_=True, yes=True, force=True, reporter=Reporter(warns=True))

    after = standing(converged)
    inside = f"/namespaces/{converged.name}/"
    assert after == {path: mark for path, mark in before.items() if inside not in path}
    for kind, name in closed_list.CLUSTER_OBJECTS:
        assert converged.api.get(kind.path(name=name)) is None, name
