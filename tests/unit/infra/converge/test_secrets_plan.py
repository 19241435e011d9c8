"""What a plan writes for secrets, what it keeps, and what it takes away."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jr2 import names
from jr2.config import Config, EnvVar, Harness, Secret, SecretKeyRef
from jr2.errors import StepFailed
from jr2.held import leaf_stem
from jr2_infra import closed_list
from jr2_infra.parts import PartsWanted
from jr2_infra.resources import KubernetesResource
from jr2_infra.secrets.certificates import Certificates
from jr2_infra.secrets.decided import SecretWants
from tests.unit.infra.secrets.conftest import effect, parts

if TYPE_CHECKING:
    from jr2_infra.plan import ConvergePlan
    from tests.unit.infra.converge.conftest import World

CANARY = "canary-51ae"
HOSTS = ["api.example.com", "api.example.com:8443"]


def wants(*secrets: Secret, ca_bundle: str | None = None, **harness: Any) -> SecretWants:
    carried = parts(effects=[effect("HOOK")])
    return SecretWants.of(Config(secrets=secrets, harness=Harness(**harness)), [carried], ca_bundle)


def token(**given: Any) -> Secret:
    return Secret("TOKEN", **{"value": CANARY, "hosts": HOSTS, **given})


def objects(plan: ConvergePlan) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (item.object["kind"], item.object["metadata"]["name"]): dict(item.object)
        for item in plan.program.resources
        if isinstance(item, KubernetesResource)
    }


def values(obj: dict[str, Any]) -> dict[str, str]:
    return {key: base64.b64decode(text).decode() for key, text in obj.get("data", {}).items()}


def secrets_of(plan: ConvergePlan) -> dict[str, dict[str, str]]:
    return {name: values(obj) for (kind, name), obj in objects(plan).items() if kind == "Secret"}


def test_an_instance_that_holds_nothing(world: World) -> None:
    found = objects(world.plan())
    # The API server keeps no empty data: asked for, they would differ in each converge.
    assert "data" not in found["Secret", names.HARNESS_ENV_SECRET]
    optional = {(kind.kind, name) for kind, name in closed_list.OPTIONAL_OBJECTS}
    assert not optional & found.keys()
    assert (
        found["ConfigMap", names.HELD_MAP]["data"][names.HELD_KEY] == '{"secrets":[],"version":1}'
    )


def test_each_value_is_in_the_one_secret_of_its_reader(world: World) -> None:
    world.wants = world.wanting(
        secrets=wants(
            token(),
            Secret("KEPT", value_from=SecretKeyRef(name="keys", key="k"), hosts=["kept.example"]),
            Secret("HOOK", value="hook-value"),
            env=[EnvVar("LEVEL", value="info")],
        )
    )
    world.secrets = {"keys": {"kind": "Secret", "data": {"k": "dmFsdWU="}}}
    plan = world.plan()
    found = secrets_of(plan)

    assert found[names.HELD_SECRETS] == {"TOKEN": CANARY}
    assert found[names.EFFECT_SECRETS] == {"HOOK": "hook-value"}
    assert found[names.HARNESS_ENV_SECRET] == {"LEVEL": "info"}
    stems = [leaf_stem("api.example.com", port) for port in (443, 8443)]
    stems.append(leaf_stem("kept.example", 443))
    assert set(found[names.HELD_TLS]) == {f"{s}.{end}" for s in stems for end in ("crt", "key")}
    assert set(found[names.HELD_CA]) == {"ca.crt", "ca.key"}

    manifest = json.loads(objects(plan)["ConfigMap", names.HELD_MAP]["data"][names.HELD_KEY])
    assert manifest == {
        "version": 1,
        "secrets": [
            {
                "name": "KEPT",
                "source": {"kind": "secret", "secret": "keys", "key": "k"},
                "hosts": [{"host": "kept.example", "port": 443, "leaf": stems[2]}],
                "headers": ["authorization", "x-api-key", "x-goog-api-key", "api-key"],
            },
            {
                "name": "TOKEN",
                "source": {"kind": "literal"},
                "hosts": [
                    {"host": "api.example.com", "port": 443, "leaf": stems[0]},
                    {"host": "api.example.com", "port": 8443, "leaf": stems[1]},
                ],
                "headers": ["authorization", "x-api-key", "x-goog-api-key", "api-key"],
            },
        ],
    }


def test_a_value_is_in_no_other_object_and_in_no_text_of_the_plan(world: World) -> None:
    world.wants = world.wanting(secrets=wants(token(), env=[EnvVar("LEVEL", value="env-canary")]))
    plan = world.plan()
    for canary, home in ((CANARY, names.HELD_SECRETS), ("env-canary", names.HARNESS_ENV_SECRET)):
        plain, coded = canary, base64.b64encode(canary.encode()).decode()
        for (kind, name), obj in objects(plan).items():
            text = json.dumps(obj)
            assert plain not in text
            assert (coded in text) is ((kind, name) == ("Secret", home))
        assert plain not in repr(world.wants)
        assert canary not in repr(plan.differences)


def test_what_stands_is_proved_and_kept(world: World) -> None:
    world.wants = world.wanting(secrets=wants(token()))
    world.converge()
    world.certificates = Certificates()
    before = secrets_of(world.plan())
    assert world.plan().is_proved
    assert secrets_of(world.plan()) == before


def test_a_new_secret_is_no_drift(converged: World) -> None:
    converged.wants = converged.wanting(secrets=wants(token()))
    plan = converged.plan()
    assert plan.drift == ()
    created = {
        item.key.name for item in plan.differences if item.key and item.operation == "create"
    }
    assert created == {names.HELD_SECRETS, names.HELD_TLS, names.HELD_CA, names.CA_MAP}


def test_what_is_no_longer_held_is_taken_away(world: World) -> None:
    world.wants = world.wanting(secrets=wants(token(), Secret("HOOK", value="x")))
    world.converge()
    world.wants = world.wanting(secrets=wants())
    plan = world.plan()
    deleted = {
        item.key.name for item in plan.differences if item.key and item.operation == "delete"
    }
    assert deleted == {
        names.HELD_SECRETS,
        names.HELD_TLS,
        names.HELD_CA,
        names.CA_MAP,
        names.EFFECT_SECRETS,
    }
    assert plan.drift == ()


def test_another_bound_host_makes_the_authority_anew(world: World) -> None:
    world.wants = world.wanting(secrets=wants(token()))
    world.converge()
    before = secrets_of(world.plan())
    world.wants = world.wanting(secrets=wants(token(hosts=[*HOSTS, "new.example"])))
    after = secrets_of(world.plan())
    assert after[names.HELD_CA] != before[names.HELD_CA]
    assert after[names.HELD_SECRETS] == before[names.HELD_SECRETS]


def test_a_value_that_somebody_else_changed_is_set_back_and_not_shown(
    world: World, take_over: Any
) -> None:
    world.wants = world.wanting(secrets=wants(token()))
    world.converge()
    live = world.find("Secret", names.HELD_SECRETS)
    live["data"]["TOKEN"] = base64.b64encode(b"stolen-way").decode()
    take_over(live, "kubectl-edit", ("f:data", "f:TOKEN"))
    plan = world.plan()
    assert plan.drift == (
        f"drift: Secret {names.HELD_SECRETS} in demo: data.TOKEN was changed by kubectl-edit — "
        "set back",
    )


def test_a_value_that_is_missing_ends_the_plan(world: World) -> None:
    world.wants = world.wanting(secrets=wants(token(value=None)))
    with pytest.raises(StepFailed, match="has neither"):
        world.plan()


def test_the_bundle_alone_makes_the_map(world: World) -> None:
    own = Certificates().authority("corp", ["corp.example"]).certificate
    world.wants = world.wanting(secrets=wants(ca_bundle=own))
    found = objects(world.plan())
    assert found["ConfigMap", names.CA_MAP]["data"] == {"ca.crt": own}
    assert ("Secret", names.HELD_CA) not in found


def test_what_a_custodian_reads_starts_its_pod_once(world: World) -> None:
    parts_wanted = PartsWanted(instance_harness=True, instance_effector=True, literal=("HOOK",))
    refs = replace(world.refs, harness="jr2.local/jr2-harness:0123456789ab")

    def templates(*secrets: Secret, **harness: Any) -> dict[str, dict[str, str]]:
        world.wants = world.wanting(
            refs=refs,
            parts=parts_wanted,
            secrets=wants(*secrets, Secret("HOOK", value=hook), **harness),
        )
        found = objects(world.plan())
        return {
            name: found[kind, name]["spec"]["template"]["metadata"]["annotations"]
            for kind, name in (
                ("StatefulSet", names.INSTANCE_HARNESS),
                ("Deployment", names.INSTANCE_EFFECTOR),
            )
        }

    hook = "hook-1"
    first = templates(token())
    assert templates(token()) == first
    for changed in (
        templates(token(value="another")),
        templates(token(), env=[EnvVar("LEVEL", value="info")]),
        templates(token(headers=["x-token"])),
    ):
        assert changed[names.INSTANCE_HARNESS] != first[names.INSTANCE_HARNESS]
        assert changed[names.INSTANCE_EFFECTOR] == first[names.INSTANCE_EFFECTOR]
    world.certificates = Certificates()
    assert templates(token())[names.INSTANCE_HARNESS] != first[names.INSTANCE_HARNESS]
    hook = "hook-2"
    again = templates(token())
    assert again[names.INSTANCE_EFFECTOR] != first[names.INSTANCE_EFFECTOR]
    assert CANARY not in json.dumps(again)
