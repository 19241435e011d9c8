"""Hundreds of random edits by kubectl and by other managers: the proof and the engine agree.

Proved equal exactly when the engine says `same` for every object and nothing is more; and one
converge brings everything back, through the product's own plan, engine and providers.

Source: design §5.2 (Prove first).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from jr2 import names
from jr2_infra.derived import key_of
from jr2_infra.derived.fields import live_path
from jr2_infra.resources import KubernetesResource
from tests.apiserver.derived.converged import Converged, Look
from tests.apiserver.derived.edits import (
    FIXED,
    IDENTITY,
    added,
    is_below,
    leaves,
    other_values,
    path_of,
    pointer,
    samples,
    schema_places,
    value_at,
)
from tests.apiserver.server import ApiServer

MANAGERS = ("some-other-tool", "kubectl-edit", "helm", "jr2", "kube-controller-manager")
DEFINITIONS = {
    "Deployment": "io.k8s.api.apps.v1.Deployment",
    "Service": "io.k8s.api.core.v1.Service",
    "NetworkPolicy": "io.k8s.api.networking.v1.NetworkPolicy",
    "PriorityClass": "io.k8s.api.scheduling.v1.PriorityClass",
    "ServiceAccount": "io.k8s.api.core.v1.ServiceAccount",
    "ConfigMap": "io.k8s.api.core.v1.ConfigMap",
}
ROUNDS = 3
EDITS = 40
Wanted = dict[str, Any]


class Hands:
    """Somebody who changes objects, each time by another way."""

    def __init__(self, converged: Converged, chance: random.Random) -> None:
        self._converged = converged
        self._chance = chance
        self._definitions = converged.server.get("/openapi/v2")["definitions"]
        self.done: list[str] = []

    def edit(self, wanted: Wanted) -> None:
        """Do one edit of an object; what the server refuses is no edit."""
        ways: list[Callable[[Wanted, Any], str | None]] = [
            self._change,
            self._change,
            self._remove,
            self._add,
            self._add,
            self._delete,
            self._apply_too,
            self._forget,
            self._kubectl,
            self._kubectl,
            self._kubectl,
        ]
        live = self._converged.api.get(path_of(wanted))
        if live is None:
            return
        said = self._chance.choice(ways)(wanted, live)
        if said:
            self.done.append(f"{wanted['kind']} {wanted['metadata']['name']}: {said}")

    def _leaf(self, wanted: Wanted, live: Any) -> Any:
        fixed = (*IDENTITY, *FIXED.get(wanted["kind"], ()))
        places = [path for path in leaves(wanted) if not is_below(path, fixed)]
        # Secrets of which a value is lost are refused, and a schema is one value.
        places = [path for path in places if path[:1] != ("data",) or wanted["kind"] != "Secret"]
        places = [path for path in places if "schema" not in path]
        return live_path(live, wanted, self._chance.choice(places)) if places else None

    def _change(self, wanted: Wanted, live: Any) -> str | None:
        there = self._leaf(wanted, live)
        if there is None:
            return None
        try:
            values = list(other_values(value_at(live, there)))
        except (KeyError, IndexError):
            return None
        for value in values:
            body = [{"op": "replace", "path": pointer(there), "value": value}]
            if self._patch(wanted, body):
                return f"{there} is {value!r}"
        return None

    def _remove(self, wanted: Wanted, live: Any) -> str | None:
        there = self._leaf(wanted, live)
        if there and self._patch(wanted, [{"op": "remove", "path": pointer(there)}]):
            return f"{there} is removed"
        return None

    def _add(self, wanted: Wanted, live: Any) -> str | None:
        """Set a field that the server knows and that nobody wants."""
        definition = DEFINITIONS.get(wanted["kind"])
        if definition is None:
            return None
        try:
            places = list(schema_places(self._definitions, definition, wanted, live, ()))
        except (KeyError, ValueError):
            # An edit before this one took away what the places lead through.
            return None
        at, field, schema = self._chance.choice(places)
        if field in ("status", "metadata") or at[:1] == ("metadata",):
            return None
        sample = self._chance.choice(samples(field, schema))
        if self._patch(wanted, added(at, field, sample)):
            return f"{(*at, field)} is added"
        return None

    def _delete(self, wanted: Wanted, live: Any) -> str | None:
        if wanted["kind"] in ("Namespace", "PersistentVolumeClaim", "CustomResourceDefinition"):
            return None
        if self._chance.random() < 0.5:
            return None
        self._converged.server.remove(path_of(wanted))
        return "deleted"

    def _apply_too(self, wanted: Wanted, live: Any) -> str | None:
        """Apply the same values as another manager: nothing differs, and they have two owners."""
        answer = self._converged.http.patch(
            path_of(wanted),
            params={"fieldManager": "co-owner", "force": "true"},
            content=json.dumps(wanted),
            headers={"Content-Type": "application/apply-patch+yaml"},
        )
        return "applied by co-owner too" if answer.is_success else None

    def _forget(self, wanted: Wanted, live: Any) -> str | None:
        """Empty `managedFields`: no manager is said to own anything."""
        if self._chance.random() < 0.7:
            return None
        body = [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]
        return "managedFields emptied" if self._patch(wanted, body) else None

    def _patch(self, wanted: Wanted, body: Any) -> bool:
        answer = self._converged.http.patch(
            path_of(wanted),
            params={"fieldManager": self._chance.choice(MANAGERS)},
            content=json.dumps(body),
            headers={"Content-Type": "application/json-patch+json"},
        )
        assert answer.is_success or answer.status_code in (400, 409, 422), answer.text
        return answer.is_success

    def _kubectl(self, wanted: Wanted, live: Any) -> str | None:
        kind, metadata = wanted["kind"], wanted["metadata"]
        space = ["-n", metadata["namespace"]] if "namespace" in metadata else []
        named = f"{kind.lower()}/{metadata['name']}"
        ways: list[list[str]] = [
            ["label", named, f"by-hand=x{self._chance.randint(1, 9)}", "--overwrite"],
            ["label", named, f"{names.LABEL_MANAGED_BY}=somebody", "--overwrite"],
            ["annotate", named, "pulumi.com/skipAwait-"],
            ["annotate", named, "by-hand=x", "--overwrite"],
        ]
        if kind == "Deployment":
            container = wanted["spec"]["template"]["spec"]["containers"][0]["name"]
            ways += [
                ["scale", named, f"--replicas={self._chance.randint(0, 3)}"],
                ["set", "image", named, f"{container}=evil:1"],
                ["set", "env", named, "EVIL=x"],
                ["set", "resources", named, "--limits=memory=77Mi"],
                ["set", "serviceaccount", named, "default"],
                ["rollout", "restart", named],
                ["rollout", "pause", named],
            ]
        elif kind in ("Role", "ClusterRole"):
            rule = '{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}'
            ways += [["patch", named, "--type=merge", "-p", rule]] * 4
        elif kind in ("RoleBinding", "ClusterRoleBinding"):
            ways += [["set", "subject", named, "--serviceaccount=default:default"]] * 4
        elif kind == "ConfigMap":
            ways += [["patch", named, "-p", '{"data":{"evil":"x"}}']] * 4
        elif kind == "Service":
            ways += [["patch", named, "-p", '{"spec":{"selector":{"app":"evil"}}}']] * 4
            ways += [["set", "selector", named, "app=evil"]]
        way = self._chance.choice(ways)
        refusal = self._converged.server.kubectl_refusal(*space, *way)
        assert refusal is None or "is invalid" in refusal, refusal
        return None if refusal else "kubectl " + " ".join(way)


@pytest.fixture(scope="module")
def converged(own_server: ApiServer) -> Iterator[Converged]:
    with Converged(own_server, "edited") as made:
        made.server.add_namespace(made.name, {names.LABEL_INSTANCE: made.name})
        made.apply(made.look())
        yield made


def objects_of(look: Look) -> list[Wanted]:
    return [
        dict(one.object) for one in look.program.resources if isinstance(one, KubernetesResource)
    ]


def test_a_converged_cluster_is_proved_and_the_engine_agrees(converged: Converged) -> None:
    look = converged.look()

    assert look.verdict() == {}
    assert converged.preview(look) == {}


@pytest.mark.parametrize("seed", range(2))
def test_proved_exactly_when_the_engine_says_same_and_one_converge_heals_it_all(
    converged: Converged, seed: int
) -> None:
    chance = random.Random(seed)
    wanted = objects_of(converged.look())
    hands = Hands(converged, chance)
    for round_ in range(ROUNDS):
        before = len(hands.done)
        for obj in chance.sample(wanted * 2, EDITS):
            hands.edit(obj)
        done = "\n".join(hands.done[before:])

        look = converged.look()
        said = converged.preview(look)

        assert said == look.verdict(), f"round {round_}:\n{done}"
        converged.heal(look)
        after = converged.look()
        assert after.verdict() == {}, f"round {round_}:\n{done}\n{after.found}\n{after.plan.drift}"
    assert len(hands.done) > ROUNDS * EDITS / 2


def test_an_edit_of_nothing_that_jr2_governs_is_no_difference(converged: Converged) -> None:
    look = converged.look()
    named: dict[str | None, list[str]] = {}
    for obj in objects_of(look):
        key = key_of(obj)
        named.setdefault(key.namespace, []).append(f"{key.kind.lower()}/{key.name}")
    for namespace, each in named.items():
        space = ["-n", namespace] if namespace else []
        converged.server.run_kubectl(*space, "label", *each, "team=a", "--overwrite")
        converged.server.run_kubectl(*space, "annotate", *each, "note=b", "--overwrite")

    after = converged.look()

    assert after.verdict() == {}
    assert converged.preview(after) == {}
    for obj in objects_of(after):
        kept: Mapping[str, Any] = converged.api.get(path_of(obj)) or {}
        assert kept["metadata"]["labels"]["team"] == "a"
