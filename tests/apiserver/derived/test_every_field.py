"""Each kind and each field that jr2 applies, changed by another manager on a real API server.

Edits are dry runs: the server answers the object that it would store, with its `managedFields`, and
stores nothing, so each edit meets the converged object.

Source: design §5.2 (Derived state, Nothing more).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2
import pytest

from jr2_infra.api import Api
from jr2_infra.derived import differences, key_of, live_objects, nothing_more
from jr2_infra.derived.fields import Path, live_path
from jr2_infra.derived.more.server_defaults import KINDS
from jr2_infra.resources import Component, KubernetesResource, Program
from tests.apiserver.derived.conftest import apply_all, wanted_objects, world_of
from tests.apiserver.derived.edits import (
    FIXED,
    IDENTITY,
    ONE_OF,
    added,
    is_below,
    leaves,
    other_values,
    path_of,
    pointer,
    samples,
    schema_places,
    struct_at,
    value_at,
)
from tests.apiserver.server import ApiServer

OTHER = "some-other-tool"
NAME = "fields"


class Applied:
    """The objects of an Instance on a server, each as it is wanted and as it lives."""

    def __init__(self, server: ApiServer, http: httpx2.Client) -> None:
        self.server = server
        self._http = http
        self.wanted = {key_of(obj): obj for obj in wanted_objects(world_of(server, NAME))}
        apply_all(server, list(self.wanted.values()))
        api = Api(http)
        self.live = {key: api.get(path_of(obj)) for key, obj in self.wanted.items()}

    def edited(self, obj: Mapping[str, Any], body: Any, how: str) -> dict[str, Any] | None:
        """Return what the server would store; `None` when it refuses the edit."""
        answer = self._http.patch(
            path_of(obj),
            params={"fieldManager": OTHER, "dryRun": "All"},
            content=json.dumps(body),
            headers={"Content-Type": f"application/{how}+json"},
        )
        if answer.is_success:
            found: dict[str, Any] = answer.json()
            return found
        assert answer.status_code in (400, 409, 422), answer.text
        return None


@pytest.fixture(scope="module")
def applied(api_server: ApiServer) -> Iterator[Applied]:
    with api_server.kube_context().http() as http:
        yield Applied(api_server, http)


def found_in(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> list[str]:
    """Return the paths that the proof names and the things that are more."""
    program = Program(
        project="jr2",
        stack="demo.0123456789ab",
        components=(Component(name="part", type="Part"),),
        resources=(KubernetesResource(name="it", object=wanted, component="part"),),
    )
    paths = [
        change.path or difference.operation
        for difference in differences(program, live_objects([live]))
        for change in difference.fields
    ]
    return paths + [str(more) for more in nothing_more(wanted, live)]


BOUND = re.compile(
    # Mounts name a volume, and the selector names labels: neither changes alone.
    r"volumes\.\d+\.name$|volumeMounts\.\d+\.name$|template\.metadata\.labels\.[^.]+$"
    # What an expression may be, and of what; `secrets/test_policy_on_secrets.py` writes others.
    r"|ValidatingAdmissionPolicy(Binding)? .*: spec\."
    # Versions that are stored, and schemas, have rules of their own.
    r"|CustomResourceDefinition .*: spec\.(names\.kind|versions\.\d+\.(name|storage|schema\.))"
)
"""Fields of which no edit that stands alone is taken."""


def test_what_was_applied_is_proved(applied: Applied) -> None:
    assert len(applied.wanted) > 20
    for key, wanted in applied.wanted.items():
        live = applied.live[key]
        assert live is not None
        assert found_in(wanted, live) == [], key


def test_each_kind_that_is_applied_is_compared(applied: Applied) -> None:
    theirs = {"Namespace", "PersistentVolumeClaim"}

    assert {key.kind for key in applied.wanted} <= KINDS.keys() | theirs
    assert not theirs & KINDS.keys()


def test_each_field_that_another_manager_changes_or_removes_is_named(applied: Applied) -> None:
    """Whatever the server stores differently is found; what it refuses cannot happen."""
    missed: list[str] = []
    refused: list[str] = []
    edits = 0
    for key, wanted in applied.wanted.items():
        live = applied.live[key]
        assert live is not None
        for path in leaves(wanted):
            if is_below(path, (*IDENTITY, *FIXED.get(key.kind, ()))):
                continue
            there = live_path(live, wanted, path)
            done = list(_edits(applied, wanted, live, there))
            edits += len(done)
            if not done:
                refused.append(f"{key.kind} {key.name}: {_text(path)}")
            missed += [
                f"{key.kind} {key.name}: {_text(path)} {what}"
                for what, answer in done
                if _said(answer) != _said(live) and not found_in(wanted, answer)
            ]

    assert missed == []
    assert edits > 300
    assert [one for one in refused if not BOUND.search(one)] == []


BY_OWNER = {"ipFamilyPolicy", "matchExpressions", "matchLabels"}
"""Fields that the cluster may set itself, and parts of what is owned as a whole: of these only the
owner says that somebody wrote them."""


CANNOT: Mapping[str, str] = {
    "activeDeadlineSeconds": "of jobs only",
    "claims": "names a claim of the pod",
    "fieldRef": "one source for a variable",
    "localhostProfile": "of another type only",
    "managedFields": "kept by the server",
    "procMount": "needs a user namespace",
    "recursiveReadOnly": "needs a read-only mount",
    "restartPolicy": "always, in a template",
    "restartPolicyRules": "needs another restart policy",
    "schedulingGroup": "behind a gate that is off",
    "schedulingGates": "never part of a template",
    "serviceAccount": "follows serviceAccountName",
    "subPathExpr": "beside another path",
    "successThreshold": "one, of a liveness probe",
    "volumeDevices": "needs a claim of blocks",
    "apiVersion": "one version",
    "ephemeralContainers": "never part of a template",
    "fileKeyRef": "needs a variable without a value",
    "hostIP": "the pod is not on the host's network",
    "healthCheckNodePort": "of a load balancer only",
    "allocateLoadBalancerNodePorts": "of a load balancer only",
    "externalTrafficPolicy": "of a load balancer or node port only",
    "loadBalancerSourceRanges": "of a load balancer only",
    "loadBalancerClass": "of a load balancer only",
    "sessionAffinityConfig": "with another affinity only",
    "secrets": "theirs: no pod gets one by it",
    "stringData": "written and never stored",
    "preserveUnknownFields": "of an older version of the API",
    "deletionTimestamp": "of an object that is deleted only",
    "clusterIP": "fixed once it is given",
    "clusterIPs": "fixed once it is given",
    "ipFamilies": "fixed once it is given",
}


@pytest.mark.parametrize(
    ("kind", "definition", "least"),
    [
        ("Deployment", "io.k8s.api.apps.v1.Deployment", 150),
        ("Service", "io.k8s.api.core.v1.Service", 8),
        ("NetworkPolicy", "io.k8s.api.networking.v1.NetworkPolicy", 1),
        ("PriorityClass", "io.k8s.api.scheduling.v1.PriorityClass", 1),
        ("ServiceAccount", "io.k8s.api.core.v1.ServiceAccount", 1),
        ("ConfigMap", "io.k8s.api.core.v1.ConfigMap", 2),
        ("Secret", "io.k8s.api.core.v1.Secret", 1),
        (
            "CustomResourceDefinition",
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
            3,
        ),
    ],
)
def test_each_field_of_the_server_that_nobody_wants_is_named_when_somebody_sets_it(
    applied: Applied, kind: str, definition: str, least: int
) -> None:
    """The fields come from the server's own document, so that none is forgotten."""
    definitions = applied.server.get("/openapi/v2")["definitions"]
    missed: list[str] = []
    unowned: list[str] = []
    refused: set[str] = set()
    taken: set[str] = set()
    named = 0
    for key, wanted in applied.wanted.items():
        live = applied.live[key]
        assert live is not None
        if key.kind != kind:
            continue
        for at, field, schema in schema_places(definitions, definition, wanted, live, ()):
            if at[:1] == ("metadata",) or field == "status" or (not at and field == "metadata"):
                continue
            if is_below(at, FIXED.get(kind, ())):
                continue
            if field in ONE_OF.get(struct_at(at), ()):
                continue
            text = f"{key.name}: {_text((*at, field))}"
            answers = [
                answer
                for sample in samples(field, schema)
                if (answer := applied.edited(wanted, added(at, field, sample), "json-patch"))
                and _said(answer) != _said(live)
            ]
            (taken if answers or field in CANNOT else refused).add(field)
            for answer in answers:
                named += 1
                if not found_in(wanted, answer):
                    missed.append(text)
                metadata = {
                    **answer["metadata"],
                    "managedFields": live["metadata"]["managedFields"],
                }
                forgotten = {**answer, "metadata": metadata}
                if field not in BY_OWNER and not found_in(wanted, forgotten):
                    unowned.append(text)

    assert missed == []
    assert unowned == [], "what somebody wrote is more, also when nobody is said to own it"
    assert refused - taken == set()
    assert named >= least


def _edits(
    applied: Applied, wanted: Mapping[str, Any], live: Mapping[str, Any], there: Path
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give what the server would store after a change and after a removal of one field."""
    value = value_at(live, there)
    for other in other_values(value):
        changed = applied.edited(
            wanted, [{"op": "replace", "path": pointer(there), "value": other}], "json-patch"
        )
        if changed is not None:
            yield f"changed to {other!r}", changed
            break
    removed = applied.edited(wanted, [{"op": "remove", "path": pointer(there)}], "json-patch")
    if removed is not None:
        yield "removed", removed


def _said(obj: Mapping[str, Any]) -> Any:
    """Return what an object says, without what each write moves."""
    moved = ("managedFields", "resourceVersion", "generation")
    metadata = {name: value for name, value in obj["metadata"].items() if name not in moved}
    return {
        **{name: value for name, value in obj.items() if name != "status"},
        "metadata": metadata,
    }


def _text(path: Path) -> str:
    return ".".join(map(str, path))
