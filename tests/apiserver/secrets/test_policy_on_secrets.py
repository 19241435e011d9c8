"""What an Orchestrator may write of Secrets when its Role would let it write each of them.

Source: design §6.3, ADR-0147.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jr2 import names
from jr2_infra import closed_list
from jr2_infra.api import Api, ApiError
from jr2_infra.closed_list import ADMISSION_BINDING, ADMISSION_POLICY, SECRET
from jr2_infra.components import admission
from tests.apiserver.derived.conftest import apply_all
from tests.apiserver.derived.test_every_field import found_in
from tests.apiserver.server import ApiServer
from tests.waiting import wait_for

NAME = "policy"


@pytest.fixture(scope="module")
def server(api_server: ApiServer) -> ApiServer:
    """The policy, and a namespace with an Orchestrator's account."""
    objects = list(admission.secrets_policy())
    api_server.add_namespace(NAME)
    account = {"apiVersion": "v1", "kind": "ServiceAccount"}
    api_server.post(
        f"/api/v1/namespaces/{NAME}/serviceaccounts",
        {**account, "metadata": {"name": names.ORCHESTRATOR}},
    )
    apply_all(api_server, objects)
    return api_server


@pytest.fixture(scope="module")
def orchestrator(server: ApiServer) -> Iterator[Api]:
    """The Orchestrator's account with a Role that lets it write every Secret."""
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAME}"
    server.post(
        f"{rbac}/roles",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "too-much"},
            "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]}],
        },
    )
    subject = {"kind": "ServiceAccount", "name": names.ORCHESTRATOR, "namespace": NAME}
    server.post(
        f"{rbac}/rolebindings",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "too-much"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "Role",
                "name": "too-much",
            },
            "subjects": [subject],
        },
    )
    context = server.kube_context(server.account_kubeconfig(NAME, names.ORCHESTRATOR))
    with context.http() as http:
        wait_for_the_policy(Api(http))
        yield Api(http)
    server.remove(f"{rbac}/rolebindings/too-much")
    server.remove(f"{rbac}/roles/too-much")


def secret(name: str, *, of_type: str = "Opaque", labelled: bool = True) -> dict[str, Any]:
    labels = {names.LABEL_SANDBOX: name} if labelled else {}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": NAME, "labels": labels},
        "type": of_type,
        "data": {},
    }


def wait_for_the_policy(orchestrator: Api) -> None:
    """Wait until the API server has loaded the policy, which it does a moment after it is stored."""

    def is_loaded() -> bool:
        try:
            orchestrator.dry_run_create(SECRET, secret("not-loaded-yet"))
        except ApiError as error:
            return "an Orchestrator writes only" in error.message
        return False

    wait_for("the policy is loaded", is_loaded)


def refused(call: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(ApiError) as raised:
        call(*arguments, **named)
    assert raised.value.status == 403
    return raised.value.message


def test_the_policy_lets_an_orchestrator_make_the_token_of_a_sandbox(
    server: ApiServer, orchestrator: Api
) -> None:
    orchestrator.apply(SECRET, secret("ws-made-token"))
    changed = secret("ws-made-token")
    changed["data"] = {"JR2_SANDBOX_TOKEN": "dG9rZW4="}
    orchestrator.apply(SECRET, changed)

    uid = server.get(SECRET.path(NAME, "ws-made-token"))["metadata"]["uid"]
    said = refused(orchestrator.delete, SECRET.path(NAME, "ws-made-token"), uid=uid)
    assert "an Orchestrator deletes no Secret" in said
    server.remove(SECRET.path(NAME, "ws-made-token"))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (secret("mine"), "an Orchestrator writes only Secrets named ws-<Sandbox>-token"),
        (secret("x-ws-1-token"), "an Orchestrator writes only Secrets named ws-<Sandbox>-token"),
        (secret("ws--token-x"), "an Orchestrator writes only Secrets named ws-<Sandbox>-token"),
        (secret(names.HELD_CA), "an Orchestrator writes only Secrets named ws-<Sandbox>-token"),
        (secret(names.ORCHESTRATOR), "an Orchestrator writes only Secrets named"),
        (
            secret("ws-1-token", of_type="example.com/any"),
            "an Orchestrator writes only Secrets of the type Opaque",
        ),
        (
            secret("ws-1-token", labelled=False),
            "a Secret that an Orchestrator writes carries the label jr2.dev/sandbox",
        ),
    ],
)
def test_the_policy_refuses_every_other_write(
    orchestrator: Api, given: dict[str, Any], why: str
) -> None:
    assert why in refused(orchestrator.apply, SECRET, given)


def test_no_token_of_another_account_is_made(orchestrator: Api) -> None:
    """A Secret of this type would make the API server write a token of that account into it."""
    token = secret("ws-1-token", of_type="kubernetes.io/service-account-token")
    token["metadata"]["annotations"] = {
        "kubernetes.io/service-account.name": names.INSTANCE_HARNESS
    }
    assert "of the type Opaque" in refused(orchestrator.apply, SECRET, token)


def test_a_persons_secret_of_such_a_name_is_not_taken(server: ApiServer, orchestrator: Api) -> None:
    path = SECRET.path(NAME)
    server.post(path, secret("ws-persons-token", labelled=False))
    said = refused(orchestrator.apply, SECRET, secret("ws-persons-token"))
    assert "changes only a Secret that carries the label" in said
    server.remove(f"{path}/ws-persons-token")


def test_the_policy_is_about_orchestrators_alone(server: ApiServer, orchestrator: Api) -> None:
    server.post(SECRET.path(NAME), secret("persons", labelled=False))
    server.remove(SECRET.path(NAME, "persons"))


@pytest.mark.parametrize(
    ("kind", "at", "value"),
    [
        (ADMISSION_POLICY, "/spec/validations/1/expression", "true"),
        (ADMISSION_POLICY, "/spec/validations/0/message", "another"),
        (ADMISSION_POLICY, "/spec/validations", [{"expression": "true"}]),
        (ADMISSION_POLICY, "/spec/failurePolicy", "Ignore"),
        (ADMISSION_POLICY, "/spec/matchConditions/0/expression", "false"),
        (ADMISSION_POLICY, "/spec/matchConditions/-", {"name": "never", "expression": "false"}),
        (ADMISSION_POLICY, "/spec/matchConstraints/resourceRules/0/operations", ["DELETE"]),
        (ADMISSION_POLICY, "/spec/matchConstraints/resourceRules/0/resources", ["pods"]),
        (ADMISSION_POLICY, "/spec/matchConstraints/resourceRules/0/resourceNames", ["one"]),
        (ADMISSION_POLICY, "/spec/matchConstraints/namespaceSelector/matchLabels", {"a": "b"}),
        (ADMISSION_BINDING, "/spec/validationActions", ["Warn"]),
        (ADMISSION_BINDING, "/spec/policyName", "another"),
        (
            ADMISSION_BINDING,
            "/spec/matchResources",
            {"objectSelector": {"matchLabels": {"a": "b"}}},
        ),
    ],
)
def test_a_policy_that_somebody_weakened_is_found(
    server: ApiServer, kind: closed_list.Kind, at: str, value: Any
) -> None:
    wanted = next(obj for obj in admission.secrets_policy() if obj["kind"] == kind.kind)
    path = kind.path(name=names.SECRETS_POLICY)
    assert found_in(wanted, server.get(path)) == []
    with server.client() as http:
        answer = http.patch(
            path,
            params={"fieldManager": "somebody", "dryRun": "All"},
            json=[{"op": "add", "path": at, "value": value}],
            headers={"Content-Type": "application/json-patch+json"},
        )
    assert answer.is_success, answer.text
    assert found_in(wanted, answer.json()) != []
