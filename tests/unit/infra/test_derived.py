"""Derived state beyond single objects: the checkpoint, its sealed values, and the whole proof."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from jr2_infra.derived import Sealer, checkpoint, differences, live_objects, settled
from jr2_infra.derived.fields import same_json
from jr2_infra.derived.live import ObjectKey
from jr2_infra.derived.proof import surplus_name
from jr2_infra.derived.urns import Urns, provider_constant
from jr2_infra.resources import Component, DynamicResource, KubernetesResource, Program

DATA = Path(__file__).parent / "data" / "derived"


def case(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    loaded = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return loaded["wanted"], loaded["live"]


def resource(obj: Mapping[str, Any]) -> KubernetesResource:
    name = f"{obj['kind'].lower()}-{obj['metadata']['name']}"
    return KubernetesResource(name=name, object=obj, component="part")


def program_of(*resources: KubernetesResource | DynamicResource) -> Program:
    return Program(
        project="jr2",
        stack="demo.0123456789ab",
        components=(Component(name="part", type="Part"), Component(name="more", type="More")),
        resources=resources,
    )


def step(derived: dict[str, str] | None) -> DynamicResource:
    return DynamicResource(
        name="assembly",
        kind="AssemblyPublish",
        inputs={"hash": "b", "name": "demo"},
        derived=derived,
        component="more",
    )


@pytest.fixture(scope="module")
def sealer() -> Sealer:
    return Sealer()


def entries(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    listed = found["checkpoint"]["latest"]["resources"]
    by_urn = {entry["urn"]: entry for entry in listed}
    assert len(by_urn) == len(listed)
    known: set[str] = set()
    for entry in listed:
        # The engine reads a checkpoint in order: what an entry names must stand before it.
        assert {entry.get("parent"), (entry.get("provider") or "").rpartition("::")[0]} <= {
            None,
            "",
            *known,
        }
        known.add(entry["urn"])
    return by_urn


def opened(sealer: Sealer, sealed: Mapping[str, str]) -> Any:
    """Open a sealed value as the engine does, from the passphrase and the settings alone."""
    assert sealed["4dabf18193072939515e22adb298388d"] == "1b47061264138c4ac30d75fd1eb44270"
    version, nonce, text = sealed["ciphertext"].split(":")
    salt = base64.b64decode(sealer.salt.split(":")[1])
    key = hashlib.pbkdf2_hmac("sha256", sealer.passphrase.encode(), salt, 1_000_000, 32)
    assert version == "v1"
    plain = AESGCM(key).decrypt(base64.b64decode(nonce), base64.b64decode(text), None)
    return json.loads(plain)


def test_an_entry_is_what_was_applied_under_the_programs_names(sealer: Sealer) -> None:
    wanted, live = case("unchanged-deployment")
    program = program_of(resource(wanted))
    urns = Urns(program)

    found = entries(checkpoint(program, live_objects([live]), sealer))

    entry = found[
        "urn:pulumi:demo.0123456789ab::jr2::"
        "jr2:infra:Part$kubernetes:apps/v1:Deployment::deployment-d"
    ]
    assert entry["id"] == "f-trial/d"
    assert entry["type"] == "kubernetes:apps/v1:Deployment"
    assert entry["inputs"] == wanted
    assert entry["outputs"]["__inputs"] == wanted
    assert entry["outputs"]["__fieldManager"] == "jr2"
    assert entry["outputs"]["__initialApiVersion"] == "apps/v1"
    limits = entry["outputs"]["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"cpu": "100e-3", "memory": "512Mi"}
    assert entry["parent"] == urns.component("part")
    provider = found[entry["provider"].rpartition("::")[0]]
    assert provider["inputs"] == provider["outputs"] == {"version": "4.34.2"}
    assert provider["id"] == entry["provider"].rpartition("::")[2]
    assert {urn for urn, other in found.items() if not other["custom"]} == {
        urns.stack,
        urns.component("part"),
        urns.component("more"),
    }


def test_data_of_a_secret_stands_in_it_only_sealed(sealer: Sealer) -> None:
    wanted, live = case("secret-key-added")
    program = program_of(resource(wanted))

    found = checkpoint(program, live_objects([live]), sealer)

    entry = entries(found)[Urns(program).resource(program.resources[0])]
    for holder in (entry["inputs"], entry["outputs"], entry["outputs"]["__inputs"]):
        assert opened(sealer, holder["data"]) == wanted["data"]
    text = json.dumps(found)
    for value in {*live["data"].values(), "CANARY", sealer.passphrase}:
        assert value not in text
    assert found["checkpoint"]["latest"]["secrets_providers"] == {
        "type": "passphrase",
        "state": {"salt": sealer.salt},
    }


def test_no_two_runs_share_a_passphrase(sealer: Sealer) -> None:
    other = Sealer()

    assert other.passphrase != sealer.passphrase
    assert other.passphrase not in repr(other)
    assert sealer.seal("x") != sealer.seal("x")


def test_the_check_value_opens(sealer: Sealer) -> None:
    """The engine opens it before anything else, and refuses the passphrase when it does not."""
    assert sealer.salt.startswith("v1:")
    version, _, check = sealer.salt.split(":", 2)
    nonce, text = check.split(":")[1:]
    salt = base64.b64decode(sealer.salt.split(":")[1])
    key = hashlib.pbkdf2_hmac("sha256", sealer.passphrase.encode(), salt, 1_000_000, 32)
    plain = AESGCM(key).decrypt(base64.b64decode(nonce), base64.b64decode(text), None)
    assert (version, plain) == ("v1", b"pulumi")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda live: live["metadata"].update(managedFields=[]),
        lambda live: live["metadata"]["managedFields"][0].update(manager="other"),
        lambda live: live["metadata"]["managedFields"][0].update(operation="Update"),
        lambda live: live["metadata"]["managedFields"][0].update(subresource="status"),
        lambda live: live["metadata"].update(ownerReferences=[{"kind": "Sandbox", "name": "x"}]),
    ],
)
def test_what_jr2_did_not_apply_or_does_not_own_has_no_entry(sealer: Sealer, spoil: Any) -> None:
    wanted, live = case("unchanged-configmap")
    program = program_of(resource(wanted))
    spoil(live)

    found = entries(checkpoint(program, live_objects([live]), sealer, surplus=[live]))

    assert [urn for urn in found if "ConfigMap" in urn] == []
    assert [(d.resource, d.operation) for d in differences(program, live_objects([live]))] == [
        ("configmap-cm", "create")
    ]


def test_an_object_that_is_gone_is_created(sealer: Sealer) -> None:
    wanted, _ = case("unchanged-secret")

    (difference,) = differences(program_of(resource(wanted)), {})

    assert (difference.operation, difference.key) == (
        "create",
        ObjectKey("v1", "Secret", "f-trial", "sec"),
    )


def test_an_object_that_is_no_longer_wanted_is_deleted_and_sealed(sealer: Sealer) -> None:
    _, secret = case("unchanged-secret")
    program = program_of()

    found = entries(checkpoint(program, live_objects([secret]), sealer, surplus=[secret]))
    (difference,) = differences(program, live_objects([secret]), surplus=[secret])

    (entry,) = [entry for urn, entry in found.items() if "v1:Secret" in urn]
    assert entry["urn"].endswith(f"kubernetes:core/v1:Secret::{difference.resource}")
    assert entry["id"] == "f-trial/sec"
    assert opened(sealer, entry["inputs"]["data"]) == secret["data"]
    assert difference.operation == "delete"


def replaced_by_jr2() -> tuple[dict[str, Any], dict[str, Any]]:
    """A CRD after the engine's plugin changed a label: with a PUT, the owner is an Update."""
    wanted, live = case("unchanged-customresourcedefinition")
    (entry,) = live["metadata"]["managedFields"]
    labels = entry["fieldsV1"]["f:metadata"].pop("f:labels")
    live["metadata"]["managedFields"].append(
        {**entry, "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": labels}}}
    )
    return wanted, live


def test_a_crd_that_the_plugin_replaced_is_ours() -> None:
    """Else each later run would find it changed by `jr2` and replace it again."""
    wanted, live = replaced_by_jr2()

    assert differences(program_of(resource(wanted)), live_objects([live])) == []

    wanted = {**wanted, "metadata": {**wanted["metadata"], "labels": {}}}
    (difference,) = differences(program_of(resource(wanted)), live_objects([live]))
    assert [(change.path, change.by) for change in difference.fields] == [
        ('metadata.labels["app.kubernetes.io/managed-by"]', ())
    ]


def test_a_crd_that_another_replaced_is_not() -> None:
    wanted, live = replaced_by_jr2()
    live["metadata"]["managedFields"][1]["manager"] = "other"
    live["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "other"

    (difference,) = differences(program_of(resource(wanted)), live_objects([live]))

    assert [(change.path, change.by) for change in difference.fields] == [
        ('metadata.labels["app.kubernetes.io/managed-by"]', ("other",))
    ]


@pytest.mark.parametrize("name", ["unchanged-namespace", "unchanged-persistentvolumeclaim"])
def test_a_namespace_and_a_claim_are_never_deleted(sealer: Sealer, name: str) -> None:
    _, live = case(name)
    program = program_of()

    assert differences(program, {}, surplus=[live]) == []
    found = entries(checkpoint(program, {}, sealer, surplus=[live]))
    assert [entry for entry in found.values() if entry["custom"]] == []


def test_no_resource_of_a_program_has_the_name_of_a_surplus_one() -> None:
    assert ":" in surplus_name(ObjectKey("v1", "Secret", "demo", "x"))


def test_a_step_stands_when_its_facts_are_its_inputs(sealer: Sealer) -> None:
    def operations(derived: dict[str, str] | None) -> list[tuple[str, str, tuple[str, ...]]]:
        return [
            (d.resource, d.operation, tuple(change.path for change in d.fields))
            for d in differences(program_of(step(derived)), {})
        ]

    assert operations({"hash": "b", "name": "demo"}) == []
    assert operations({"hash": "a", "name": "demo"}) == [("assembly", "update", ("hash",))]
    assert operations(None) == [("assembly", "create", ())]


def test_a_step_that_was_done_has_an_entry_with_our_constant(sealer: Sealer) -> None:
    done = program_of(step({"hash": "a", "name": "demo"}))

    found = entries(checkpoint(done, {}, sealer))

    entry = found[Urns(done).resource(done.resources[0])]
    assert entry["type"] == "pulumi-python:dynamic/jr2:AssemblyPublish"
    assert entry["inputs"] == entry["outputs"]
    assert entry["inputs"] == {
        "__provider": provider_constant("AssemblyPublish"),
        "hash": "a",
        "name": "demo",
    }
    assert found[entry["provider"].rpartition("::")[0]]["type"] == "pulumi:providers:pulumi-python"
    never = program_of(step(None))
    assert Urns(never).resource(never.resources[0]) not in entries(checkpoint(never, {}, sealer))


def test_replicas_that_an_autoscaler_set_are_not_declared() -> None:
    wanted, live = case("deployment-autoscaled")
    declared = settled(program_of(resource(wanted)), live_objects([live])).resources[0]
    assert isinstance(declared, KubernetesResource)
    assert "replicas" not in declared.object["spec"]
    assert wanted["spec"]["replicas"] == 1

    wanted, live = case("deployment-scaled-by-hand")
    declared = settled(program_of(resource(wanted)), live_objects([live])).resources[0]
    assert isinstance(declared, KubernetesResource)
    assert declared.object["spec"]["replicas"] == 1


def test_a_projection_without_the_wanted_shape_would_replace_a_statefulset(
    sealer: Sealer,
) -> None:
    """Defaults inside atomic values look like ours; claim templates may not be changed."""
    wanted, live = case("unchanged-statefulset")
    template = live["spec"]["volumeClaimTemplates"][0]
    assert template["spec"]["volumeMode"] == "Filesystem"
    program = program_of(resource(wanted))

    entry = entries(checkpoint(program, live_objects([live]), sealer))[
        Urns(program).resource(program.resources[0])
    ]

    assert entry["outputs"]["spec"]["volumeClaimTemplates"] == [
        {
            "metadata": {"name": "data2"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "512Mi"}},
            },
        }
    ]


def test_two_ports_of_one_number_are_two_ports() -> None:
    wanted, live = case("unchanged-service")
    live = copy.deepcopy(live)
    live["spec"]["ports"].reverse()

    (difference,) = differences(program_of(resource(wanted)), live_objects([live]))

    assert {change.path for change in difference.fields} == {
        f"spec.ports[{name}].{field}" for name in ("t", "u") for field in ("name", "targetPort")
    } | {"spec.ports[u].protocol"}


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (True, 1, False),
        (False, 0, False),
        (1, 1.0, True),
        ("1", 1, False),
        ([1, True], [1, 1], False),
        ({"a": [False]}, {"a": [False]}, True),
        ({"a": 1}, {"a": 1, "b": None}, False),
    ],
)
def test_values_are_equal_as_json_is(first: object, second: object, same: bool) -> None:
    assert same_json(first, second) is same
