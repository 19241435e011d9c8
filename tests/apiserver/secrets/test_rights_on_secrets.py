"""Who may do what to the Secrets of an Instance, asked of a real API server.

Source: design §6.3.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from jr2 import names
from jr2.config import Config, Secret
from jr2_infra import closed_list
from jr2_infra.closed_list import SECRET, SERVICE_ACCOUNT
from jr2_infra.parts import PartsWanted
from jr2_infra.secrets.decided import SecretWants
from tests.apiserver.derived.conftest import apply_all, wanted_objects, world_of
from tests.apiserver.server import ApiServer
from tests.unit.infra.secrets.conftest import effect, parts

NAME = "rights-on-secrets"
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
ACCOUNTS = [
    *((NAME, name) for kind, name in closed_list.INSTANCE_OBJECTS if kind == SERVICE_ACCOUNT),
    *(
        (names.SYSTEM_NAMESPACE, name)
        for kind, name in closed_list.SYSTEM_OBJECTS
        if kind == SERVICE_ACCOUNT
    ),
    (NAME, "default"),
]
SECRETS = [
    *(name for kind, name in closed_list.INSTANCE_OBJECTS if kind == SECRET),
    "jr2-git-0123abcd",
    "jr2-git-ssh",
    "ws-1-token",
    "a-persons",
]
ALLOWED: set[tuple[str, str, str]] = set()
"""Account, verb and Secret that some service uses: none of this Kit reads or writes one by the API."""


def may(http: httpx2.Client, verb: str, namespace: str, secret: str | None) -> bool:
    """Ask as whoever the client is; the API server answers by the rules that it enforces."""
    attributes = {"verb": verb, "resource": "secrets", "namespace": namespace}
    if secret is not None:
        attributes["name"] = secret
    answer = http.post(
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        json={
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        },
    )
    assert answer.status_code == 201, answer.text
    return bool(answer.json()["status"]["allowed"])


@pytest.fixture(scope="module")
def server(api_server: ApiServer) -> ApiServer:
    """Every object of an Instance that holds secrets and has each part, as jr2 applies it."""
    world = world_of(api_server, NAME)
    config = Config(
        secrets=[
            Secret("TOKEN", value="value-of-token", hosts=["api.example.com"]),
            Secret("HOOK", value="value-of-hook"),
        ]
    )
    world.refs = replace(world.refs, harness="jr2.local/jr2-harness:0123456789ab")
    world.wants = world.wanting(
        place=world.place,
        refs=world.refs,
        secrets=SecretWants.of(config, [parts(effects=[effect("HOOK")])], None),
        parts=PartsWanted(repo_cache=True, instance_harness=True, instance_effector=True),
    )
    wanted = wanted_objects(world)
    apply_all(api_server, wanted)
    # Without this, a right that is too much would not be seen yet.
    api_server.wait_for_rights(wanted)
    return api_server


def as_account(server: ApiServer, namespace: str, account: str) -> Any:
    return server.kube_context(server.account_kubeconfig(namespace, account)).http()


@pytest.mark.parametrize(("namespace", "account"), ACCOUNTS)
def test_no_service_account_does_more_with_a_secret_than_its_service(
    server: ApiServer, namespace: str, account: str
) -> None:
    found = set()
    with as_account(server, namespace, account) as http:
        for verb, name in itertools.product(VERBS, [*SECRETS, None]):
            if may(http, verb, NAME, name):
                found.add((account, verb, name))
        for other in ("default", "kube-system", names.SYSTEM_NAMESPACE):
            assert not any(may(http, verb, other, None) for verb in VERBS)
    assert found == {item for item in ALLOWED if item[0] == account}


def test_a_reader_would_be_seen(server: ApiServer) -> None:
    """The same question about somebody with the right, so that a silent "no" is none."""
    with server.kube_context().http() as http:
        assert may(http, "get", NAME, names.HELD_CA)
