"""Step 10: values that are there and can be used, and the Secrets that the config names."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from jr2.config import (
    Config,
    ConfigMapKeyRef,
    EnvFrom,
    EnvVar,
    Harness,
    Provider,
    Secret,
    SecretKeyRef,
)
from jr2.errors import StepFailed
from jr2_infra.secrets.decided import SecretWants, check_values
from jr2_infra.secrets.references import Named
from tests.unit.infra.secrets.conftest import effect, parts

CANARY = "canary-77c1"
NEITHER = (
    "error: secrets[0] needs exactly one of value or value_from — TOKEN has neither, which is what "
    "an unset .env variable reads as: set TOKEN in .env, or reference a Secret with "
    'value_from=SecretKeyRef(name="<name>", key="<key>") (ADR-0059)'
)
BOTH = "error: secrets[0] needs exactly one of value or value_from — not both (ADR-0059)"
EMPTY = "error: secrets[0].value is empty — set TOKEN in .env (ADR-0059)"
UNFIT = (
    "holds a character a header cannot carry (outside printable ASCII) or leading or trailing "
    "space — a pasted newline, most likely; the value itself is not shown (ADR-0059)"
)
UNFIT_VALUE = (
    "error: secrets[0].value holds a character a header cannot carry (outside printable ASCII) or "
    "leading or trailing space — a pasted newline, most likely; the value itself is not shown "
    "(ADR-0059)"
)
NO_SECRET = (
    'error: secrets[0].value_from names Secret "keys", which does not exist in the instance\'s '
    "namespace — create it first: kubectl create secret generic keys --from-literal=token=... "
    "(ADR-0019, ADR-0059)"
)
NO_KEY = (
    'error: secrets[0].value_from names key "token" of Secret "keys", which has no such key '
    "(ADR-0059)"
)
NO_ENV_FROM = (
    'error: harness.env_from references Secret "team", which does not exist in namespace "demo" — '
    "create it first: kubectl -n demo create secret generic team --from-literal=KEY=..."
)


def secret(name: str, **values: bytes) -> dict[str, Any]:
    data = {key: base64.b64encode(value).decode() for key, value in values.items()}
    return {"kind": "Secret", "metadata": {"name": name}, "data": data}


def config_map(name: str, **values: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "metadata": {"name": name}, "data": values}


def token(**given: Any) -> Secret:
    return Secret("TOKEN", hosts=["api.example.com"], **given)


def printed(
    *secrets: Secret, objects: list[dict[str, Any]] | None = None, carried: Any = None, **given: Any
) -> list[str]:
    config = Config(secrets=secrets, harness=Harness(**given))
    wants = SecretWants.of(config, [carried or parts()], None)
    found: dict[str, dict[str, Any]] = {"Secret": {}, "ConfigMap": {}}
    for obj in objects or []:
        found[obj["kind"]][obj["metadata"]["name"]] = obj
    named = Named(secrets=found["Secret"], config_maps=found["ConfigMap"])
    assert wants.named_secrets() >= set(found["Secret"])
    assert wants.named_config_maps() >= set(found["ConfigMap"])
    try:
        check_values(wants, named, "demo")
    except StepFailed as error:
        said = error.printed
    else:
        return []
    assert CANARY not in said
    return said.splitlines()


KEYS = SecretKeyRef(name="keys", key="token")


def test_values_that_can_be_used() -> None:
    assert printed(token(value="tok 1=~!")) == []
    assert printed(token(value_from=KEYS), objects=[secret("keys", token=b"tok")]) == []
    said = printed(
        env=[
            EnvVar("A", value=""),
            EnvVar("B", value="two\nlines"),
            EnvVar("C", value_from=ConfigMapKeyRef(name="settings", key="c")),
        ],
        env_from=[EnvFrom(secret="team"), EnvFrom(config_map="settings")],
        objects=[secret("team", HOST=b"x"), config_map("settings", c="1")],
    )
    assert said == []


def test_neither_value_nor_value_from() -> None:
    assert printed(token(value=None)) == [NEITHER]


def test_both_value_and_value_from() -> None:
    said = printed(token(value=CANARY, value_from=KEYS), objects=[secret("keys", token=b"t")])
    assert said == [BOTH]


def test_an_empty_value() -> None:
    assert printed(token(value="")) == [EMPTY]


@pytest.mark.parametrize(
    "value",
    [
        f"{CANARY}\ny",
        f"{CANARY}\n",
        "tok\r\n",
        "tok ",
        " tok",
        "\ttok",
        "été",
        "tok\x7f",
        "tok\udcff",
        " ",
    ],
)
def test_a_value_that_no_header_carries(value: str) -> None:
    assert printed(token(value=value)) == [UNFIT_VALUE]


def test_a_secret_that_does_not_exist() -> None:
    assert printed(token(value_from=KEYS)) == [NO_SECRET]


def test_a_key_that_does_not_exist() -> None:
    assert printed(token(value_from=KEYS), objects=[secret("keys", other=b"t")]) == [NO_KEY]


@pytest.mark.parametrize("value", [b"tok\n", b"tok\r\n", b"\xff\xfe", b"tok ", "é".encode()])
def test_a_value_of_a_secret_that_no_header_carries(value: bytes) -> None:
    said = printed(token(value_from=KEYS), objects=[secret("keys", token=value)])
    assert said == [f'error: secrets[0].value_from: key "token" of Secret "keys" {UNFIT}']


def test_an_empty_value_of_a_secret() -> None:
    said = printed(token(value_from=KEYS), objects=[secret("keys", token=b"")])
    assert said == [
        'error: secrets[0].value_from: key "token" of Secret "keys" is empty — give it a value '
        "(ADR-0059)"
    ]


def test_what_nothing_uses_needs_no_value() -> None:
    nobody = parts(agents=[], menu_only=False)
    assert printed(token(value=None), carried=nobody) == []
    assert printed(token(value=""), token(value_from=KEYS), carried=nobody) == []
    assert printed(Secret("HOOK", value=None)) == []


def test_an_effect_needs_a_value_without_a_harness() -> None:
    said = printed(
        Secret("TOKEN"), carried=parts(agents=[], menu_only=False, effects=[effect("TOKEN")])
    )
    assert said == [NEITHER]


def test_the_key_of_the_own_provider() -> None:
    def own(key: str) -> list[str]:
        return printed(
            provider=Provider(id="own", api="x", base_url="https://llm.lan", api_key=key)
        )

    assert own("key") == []
    assert own("") == [
        "error: harness.provider.api_key is empty — leave it out, or set its variable in .env "
        "(ADR-0059)"
    ]
    assert own(f"{CANARY}\n") == [f"error: harness.provider.api_key {UNFIT}"]


def test_env_from_names_a_secret_that_does_not_exist() -> None:
    assert printed(env_from=[EnvFrom(secret="team")]) == [NO_ENV_FROM]
    assert printed(env_from=[EnvFrom(config_map="settings")]) == [
        'error: harness.env_from references ConfigMap "settings", which does not exist in '
        'namespace "demo" — create it first: kubectl -n demo create configmap settings '
        "--from-literal=KEY=..."
    ]


def test_env_names_what_does_not_exist() -> None:
    env = [
        EnvVar("A", value_from=KEYS),
        EnvVar("B", value_from=ConfigMapKeyRef(name="settings", key="b")),
    ]
    assert printed(env=env) == [
        'error: harness.env[0].value_from names Secret "keys", which does not exist in the '
        "instance's namespace — create it first: kubectl create secret generic keys "
        "--from-literal=token=... (ADR-0019)",
        'error: harness.env[1].value_from names ConfigMap "settings", which does not exist in the '
        "instance's namespace — create it first: kubectl create configmap settings "
        "--from-literal=b=... (ADR-0019)",
    ]
    assert printed(env=env, objects=[secret("keys"), config_map("settings")]) == [
        'error: harness.env[0].value_from names key "token" of Secret "keys", which has no such key',
        'error: harness.env[1].value_from names key "b" of ConfigMap "settings", which has no such '
        "key",
    ]


def test_a_variable_without_a_value() -> None:
    said = printed(env=[EnvVar("LEVEL", value=None), EnvVar("NUL", value="a\0b")])
    assert said == [
        "error: harness.env[0] needs exactly one of value or value_from — LEVEL has neither, which "
        "is what an unset .env variable reads as: set LEVEL in .env (ADR-0059)",
        "error: harness.env[1].value holds a NUL character, which no variable can have (ADR-0059)",
    ]
    nobody = parts(agents=[], menu_only=False)
    assert printed(env=[EnvVar("LEVEL", value=None)], carried=nobody) == []


def test_a_model_key_that_comes_with_all_the_others() -> None:
    said = printed(
        env_from=[EnvFrom(secret="team")],
        objects=[secret("team", OPENAI_API_KEY=CANARY.encode(), OTHER=b"x")],
    )
    assert said == [
        'error: harness.env_from[0]: Secret "team" holds the model key OPENAI_API_KEY, and every '
        "Agent could read it there — take it out, and hold it: "
        'secrets=[…, Secret("OPENAI_API_KEY", value=os.environ.get("OPENAI_API_KEY"))] (ADR-0059)'
    ]


def test_a_held_value_that_reaches_the_harness_by_another_way() -> None:
    end = (
        " is the value that secrets[0] holds as TOKEN, and every Agent could read it there — "
        "remove it (ADR-0059)"
    )
    said = printed(
        token(value_from=KEYS),
        env=[
            EnvVar("A", value=CANARY),
            EnvVar("B", value_from=ConfigMapKeyRef(name="settings", key="b")),
            EnvVar("C", value_from=SecretKeyRef(name="others", key="c")),
            EnvVar("D", value="another"),
        ],
        env_from=[EnvFrom(secret="team"), EnvFrom(config_map="more")],
        objects=[
            secret("keys", token=CANARY.encode()),
            secret("others", c=CANARY.encode()),
            secret("team", e=CANARY.encode(), f=b"another"),
            config_map("settings", b=CANARY),
            config_map("more", g=CANARY),
        ],
    )
    assert said == [
        f"error: harness.env[0].value{end}",
        f"error: harness.env[1].value_from{end}",
        f"error: harness.env[2].value_from{end}",
        f'error: harness.env_from[0]: key "e" of Secret "team"{end}',
        f'error: harness.env_from[1]: key "g" of ConfigMap "more"{end}',
    ]


def test_all_that_is_wrong_is_said_at_once_and_in_the_order_of_the_steps() -> None:
    said = printed(
        token(value=None),
        Secret("OTHER", value_from=KEYS, hosts=["other.example"]),
        env_from=[EnvFrom(secret="team")],
    )
    assert said == [NO_ENV_FROM, NEITHER, NO_SECRET.replace("secrets[0]", "secrets[1]")]
