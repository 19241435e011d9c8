"""Secrets of an Instance on a real API server: judged, applied by the real engine, kept, removed.

Source: seed 003 (Rules, `secrets`), spec/converge.md §5.4 and §9, ADR-0145.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from jr2 import names
from jr2.config import Config, EnvFrom, EnvVar, Harness, Secret, SecretKeyRef
from jr2.errors import StepFailed
from jr2_infra.closed_list import CONFIG_MAP, SECRET
from jr2_infra.secrets.certificates import Certificates
from jr2_infra.secrets.decided import SecretWants
from tests.apiserver.derived.conftest import versions
from tests.apiserver.derived.converged import Converged
from tests.apiserver.server import ApiServer
from tests.unit.infra.secrets.conftest import effect, parts

NAME = "holding"
CANARY = "canary-9d2e"
HELD = {names.HELD_SECRETS, names.HELD_TLS, names.HELD_CA}


@pytest.fixture(scope="module")
def converged(api_server: ApiServer) -> Iterator[Converged]:
    api_server.add_namespace(NAME, {names.LABEL_INSTANCE: NAME})
    with Converged(api_server, NAME) as made:
        yield made


def want(converged: Converged, *secrets: Secret, **harness: Any) -> None:
    world = converged.world
    config = Config(secrets=secrets, harness=Harness(**harness))
    carried = parts(effects=[effect("HOOK")])
    world.wants = world.wanting(place=world.place, secrets=SecretWants.of(config, [carried], None))


def token(**given: Any) -> Secret:
    return Secret("TOKEN", **{"value": CANARY, "hosts": ["api.example.com"], **given})


def persons(converged: Converged, name: str, **values: bytes) -> None:
    data = {key: base64.b64encode(value).decode() for key, value in values.items()}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}
    converged.server.post(SECRET.path(NAME), body)


def stored(converged: Converged) -> dict[str, dict[str, str]]:
    """Return the data of each Secret of the namespace."""
    return {
        obj["metadata"]["name"]: {
            key: base64.b64decode(text).decode() for key, text in (obj.get("data") or {}).items()
        }
        for obj in converged.api.objects(SECRET, NAME)
    }


def test_what_the_config_names_must_be_there_and_nothing_is_written(converged: Converged) -> None:
    want(
        converged,
        Secret("TOKEN", value_from=SecretKeyRef(name="keys", key="token"), hosts=["a.example"]),
        env_from=[EnvFrom(secret="team")],
    )
    before = versions(converged.server, NAME)

    def refused() -> list[str]:
        with pytest.raises(StepFailed) as raised:
            converged.look()
        assert CANARY not in raised.value.printed
        return raised.value.printed.splitlines()

    no_team = (
        f'error: harness.env_from references Secret "team", which does not exist in namespace '
        f'"{NAME}" — create it first: kubectl -n {NAME} create secret generic team '
        "--from-literal=KEY=..."
    )
    no_secret = (
        'error: secrets[0].value_from names Secret "keys", which does not exist in the '
        "instance's namespace — create it first: kubectl create secret generic keys "
        "--from-literal=token=... (ADR-0019, ADR-0059)"
    )
    assert refused() == [no_team, no_secret]
    persons(converged, "team", OTHER=CANARY.encode())
    persons(converged, "keys", another=b"x")
    assert refused() == [
        'error: secrets[0].value_from names key "token" of Secret "keys", which has no such key '
        "(ADR-0059)"
    ]
    path = SECRET.path(NAME, "keys")
    for value, why in (
        (f"{CANARY}\n".encode(), "holds a character a header cannot carry"),
        (b"", "is empty — give it a value"),
        (b"\xff", "holds a character a header cannot carry"),
    ):
        text = base64.b64encode(value).decode()
        converged.server.patch(path, {"data": {"token": text}})
        [line] = refused()
        assert f'secrets[0].value_from: key "token" of Secret "keys" {why}' in line
    converged.server.patch(path, {"data": {"token": base64.b64encode(CANARY.encode()).decode()}})
    [line] = refused()
    assert 'key "OTHER" of Secret "team" is the value that secrets[0] holds as TOKEN' in line
    converged.server.remove(SECRET.path(NAME, "team"))
    converged.server.remove(path)
    assert versions(converged.server, NAME) == before


def test_applied_kept_changed_and_taken_away(converged: Converged) -> None:
    want(converged, token(), Secret("HOOK", value="hook-1"), env=[EnvVar("LEVEL", value="info")])
    converged.heal(converged.look())
    first = stored(converged)
    assert first.keys() >= HELD | {names.EFFECT_SECRETS, names.HARNESS_ENV_SECRET}
    assert first[names.HELD_SECRETS] == {"TOKEN": CANARY}
    assert first[names.EFFECT_SECRETS] == {"HOOK": "hook-1"}
    assert first[names.HARNESS_ENV_SECRET] == {"LEVEL": "info"}
    trust = converged.api.get(CONFIG_MAP.path(NAME, names.CA_MAP))
    assert trust is not None
    assert first[names.HELD_CA]["ca.crt"] in trust["data"][names.KEY_CA_BUNDLE]
    assert first[names.HELD_CA]["ca.crt"] not in trust["data"][names.KEY_CA_UPSTREAM]

    # Another run, another day: everything stands, in the proof and for the engine.
    converged.world.certificates = Certificates()
    look = converged.look()
    assert (look.verdict(), converged.preview(look)) == ({}, {})

    # A key that is deleted is made anew, a value that somebody changed is set back.
    converged.server.patch(
        SECRET.path(NAME, names.HELD_SECRETS), {"data": {"TOKEN": "c3RvbGVu", "MORE": "eA=="}}
    )
    converged.server.remove(SECRET.path(NAME, names.HELD_CA))
    look = converged.look()
    assert CANARY not in "\n".join(look.plan.drift)
    assert "stolen" not in "\n".join(look.plan.drift)
    converged.heal(look)
    healed = stored(converged)
    assert healed[names.HELD_SECRETS] == {"TOKEN": CANARY}
    assert healed[names.HELD_CA] != first[names.HELD_CA]
    assert converged.look().verdict() == {}

    # Another host makes authority and certificates anew, and nothing else.
    want(
        converged,
        token(hosts=["api.example.com", "10.1.2.3:8443"]),
        Secret("HOOK", value="hook-1"),
        env=[EnvVar("LEVEL", value="info")],
    )
    converged.heal(converged.look())
    bound = stored(converged)
    assert bound[names.HELD_CA] != healed[names.HELD_CA]
    assert len(bound[names.HELD_TLS]) == 4
    same = {names.HELD_SECRETS, names.EFFECT_SECRETS, names.HARNESS_ENV_SECRET}
    assert {name: bound[name] for name in same} == {name: healed[name] for name in same}
    assert converged.look().verdict() == {}

    # What nothing holds any more goes, and values of the Instance itself stay.
    want(converged)
    converged.heal(converged.look())
    left = stored(converged)
    assert not left.keys() & (HELD | {names.EFFECT_SECRETS})
    assert left[names.HARNESS_ENV_SECRET] == {}
    assert left[names.INSTANCE_SECRET] == first[names.INSTANCE_SECRET]
    assert converged.api.get(CONFIG_MAP.path(NAME, names.CA_MAP)) is None
    look = converged.look()
    assert (look.verdict(), converged.preview(look)) == ({}, {})


def test_generated_values_are_kept_and_what_is_deleted_is_made_anew(converged: Converged) -> None:
    want(converged)
    converged.apply(converged.look())
    path = SECRET.path(NAME, names.INSTANCE_SECRET)
    mine = base64.b64encode(b"a-token-of-mine").decode()
    converged.server.patch(path, {"data": {names.KEY_INSTANCE_TOKEN: mine}})
    converged.apply(converged.look())
    kept = stored(converged)[names.INSTANCE_SECRET]
    assert kept[names.KEY_INSTANCE_TOKEN] == "a-token-of-mine"

    converged.server.patch(path, {"data": {names.KEY_INSTANCE_TOKEN: None}})
    converged.apply(converged.look())
    anew = stored(converged)[names.INSTANCE_SECRET]
    assert anew[names.KEY_INSTANCE_TOKEN] not in ("", "a-token-of-mine")
    assert anew[names.KEY_SIGNING_KEY] == kept[names.KEY_SIGNING_KEY]
    assert converged.look().verdict() == {}


def test_no_value_is_outside_the_data_of_its_secret(converged: Converged) -> None:
    """Not in an annotation, a managedFields entry, a map, an event or the object that names it."""
    want(converged, token(), env=[EnvVar("LEVEL", value=f"{CANARY}-env")])
    converged.heal(converged.look())
    coded = base64.b64encode(CANARY.encode()).decode()
    found = []
    for line in converged.server.run_kubectl(
        "get", "secrets,configmaps,deployments,events,leases,serviceaccounts,roles",
        "-n", NAME, "-o", "json", "--show-managed-fields",
    ).splitlines():  # fmt: skip
        if CANARY in line or coded[:12] in line:
            found.append(line.strip())
    assert found == [f'"LEVEL": "{base64.b64encode(f"{CANARY}-env".encode()).decode()}"',
                     f'"TOKEN": "{coded}"']  # fmt: skip
