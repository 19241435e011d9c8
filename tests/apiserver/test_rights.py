"""A right that is missing is named before the first write; the Roles of the page leave none out.

The cluster is the module's own: what the Instances share is not there yet, so it must be made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from jr2.errors import Refusal
from jr2.rbac import Rule
from jr2_infra import access
from jr2_infra.access import Grant
from jr2_infra.access.review import Right, check_rights, rights_of
from jr2_infra.api import Api
from jr2_infra.rules import NOTHING_APPLIED, Place
from tests.apiserver.conftest import NewInstance
from tests.apiserver.server import ApiServer
from tests.waiting import LIMIT

SPACE = "people"
ALL = access.converge(SPACE, shared=True, makes_namespace=True)
RIGHTS = rights_of(ALL, namespace=SPACE)
SOME = [
    Right(verb="patch", group="", resource="secrets", namespace=SPACE),
    Right(verb="create", group="apps", resource="deployments", namespace=SPACE),
    Right(verb="delete", group="rbac.authorization.k8s.io", resource="roles", namespace=SPACE),
    Right(verb="create", group="", resource="pods", subresource="portforward", namespace=SPACE),
    Right(verb="update", group="coordination.k8s.io", resource="leases", namespace="jr2-system"),
    Right(verb="list", group="", resource="nodes"),
    Right(verb="patch", group="", resource="namespaces", name=SPACE),
    Right(
        verb="update",
        group="apiextensions.k8s.io",
        resource="customresourcedefinitions",
        name="repos.core.jr2.dev",
    ),
]
FIRST = (
    "refusing: you lack {} right(s) on tests that this converge needs — docs/rights.md has the "
    "Roles. Nothing was applied."
)
Grantee = Callable[[str, Sequence[Right]], Path]


@pytest.fixture(scope="module")
def granted(own_server: ApiServer) -> Iterator[Grantee]:
    """Make a user with some of the rights, each a rule of its own; return the kubeconfig."""
    for name in (SPACE, "jr2-system"):
        if own_server.get(f"/api/v1/namespaces/{name}") is None:
            own_server.add_namespace(name)
    made: list[str] = []

    def grant(user: str, rights: Sequence[Right]) -> Path:
        grants = [
            Grant(
                place="cluster"
                if right.namespace is None
                else ("instance" if right.namespace == SPACE else "system"),
                rules=(
                    Rule(
                        groups=(right.group,),
                        resources=("/".join(filter(None, (right.resource, right.subresource))),),
                        verbs=(right.verb,),
                        resource_names=(right.name,) if right.name else (),
                    ),
                ),
            )
            for right in rights
        ]
        subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
        for one in access.manifests(user, grants, namespace=SPACE, subject=subject):
            space = one["metadata"].get("namespace")
            where = f"namespaces/{space}/" if space else ""
            path = f"/apis/{one['apiVersion']}/{where}{one['kind'].lower()}s"
            own_server.post(path, one)
            made.append(f"{path}/{user}")
        return own_server.user_kubeconfig(user)

    yield grant
    for path in made:
        own_server.remove(path)


def missing(own_server: ApiServer, kubeconfig: Path) -> str:
    """Return what the check says of a user; nothing when it lets the converge go on."""
    place = Place(instance=SPACE, context="tests", namespace=SPACE)
    with own_server.kube_context(kubeconfig).http() as http:
        try:
            check_rights(Api(http), place, ALL, done=NOTHING_APPLIED)
        except Refusal as refusal:
            return refusal.printed
    return ""


def until(own_server: ApiServer, kubeconfig: Path, wanted: str) -> str:
    """Ask until the API server knows the grants that were just made."""
    deadline = time.monotonic() + LIMIT
    while (said := missing(own_server, kubeconfig)) != wanted and time.monotonic() < deadline:
        time.sleep(0.05)
    return said


def test_with_all_rights_a_converge_goes_on(own_server: ApiServer, granted: Grantee) -> None:
    assert until(own_server, granted("has-all", RIGHTS), "") == ""


@pytest.mark.parametrize("number", range(len(SOME)))
def test_each_right_that_is_missing_is_named(
    own_server: ApiServer, granted: Grantee, number: int
) -> None:
    lacking = SOME[number]
    assert lacking in RIGHTS
    kubeconfig = granted(f"lacks-{number}", [right for right in RIGHTS if right != lacking])
    wanted = f"{FIRST.format(1)}\n  {lacking}"
    assert until(own_server, kubeconfig, wanted) == wanted


def held(own_server: ApiServer) -> list[tuple[str, str]]:
    """Return what there is of an Instance, and which version each thing has."""
    found = [own_server.get(f"/api/v1/namespaces/{SPACE}")]
    for path in (
        "api/v1/namespaces/{}/secrets",
        "apis/coordination.k8s.io/v1/namespaces/{}/leases",
    ):
        for space in (SPACE, "jr2-system"):
            found += own_server.get("/" + path.format(space))["items"]
    found += own_server.get("/apis/scheduling.k8s.io/v1/priorityclasses")["items"]
    return [(one["metadata"]["name"], one["metadata"]["resourceVersion"]) for one in found]


def test_nothing_is_written_when_a_right_is_missing(
    own_server: ApiServer, granted: Grantee, new_instance: NewInstance
) -> None:
    lacking = {
        Right(verb="create", group="apps", resource="statefulsets", namespace=SPACE),
        Right(
            verb="patch", group="scheduling.k8s.io", resource="priorityclasses", name="jr2-control"
        ),
    }
    user = granted("lacks-two", [right for right in RIGHTS if right not in lacking])
    wanted = [f"  {right}" for right in RIGHTS if right in lacking]
    until(own_server, user, "\n".join([FIRST.format(2), *wanted]))
    instance = new_instance(SPACE)
    before = held(own_server)
    printed = instance.up(own_server, code=1, kubeconfig=user)
    assert printed.splitlines()[-3:] == [FIRST.format(2), *wanted]
    assert wanted == [
        '  create statefulsets.apps in namespace "people"',
        '  patch priorityclasses.scheduling.k8s.io "jr2-control"',
    ]
    assert held(own_server) == before
