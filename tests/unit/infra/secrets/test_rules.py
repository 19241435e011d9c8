"""What the config says of secrets and must not: each text, with its place and never a value."""

from __future__ import annotations

from pathlib import Path

import pytest

from jr2.config import (
    Config,
    EnvFrom,
    EnvVar,
    FieldRef,
    Gateway,
    Harness,
    Provider,
    Secret,
    SecretKeyRef,
)
from jr2.model_keys import MODEL_KEYS
from jr2_infra.secrets import rules
from jr2_infra.secrets.entries import entries
from jr2_infra.secrets.targets import Target
from tests.unit.infra.secrets.conftest import agent, effect, parts

ROOT = Path("/home/you/inst")
CANARY = "canary-3f9a"


def lines(config: Config, *carried: object) -> list[str]:
    """Return what is refused, without the file."""
    found = rules.refusal(config, [parts()] if not carried else list(carried), ROOT)  # type: ignore[arg-type]
    if found is None:
        return []
    assert CANARY not in found.printed
    start = f"error: {ROOT}/jr2_config.py at "
    said = found.printed.splitlines()
    assert all(line.startswith(start) and line.endswith(" (ADR-0059)") for line in said)
    return [line.removeprefix(start).removesuffix(" (ADR-0059)") for line in said]


def held(name: str = "TOKEN", **given: object) -> Secret:
    return Secret(name, value=CANARY, **{"hosts": ["api.example.com"], **given})  # type: ignore[arg-type]


def config(*secrets: Secret, **harness: object) -> Config:
    return Config(secrets=secrets, harness=Harness(**harness))


def env(name: str, **given: object) -> EnvVar:
    return EnvVar(name, **{"value": CANARY, **given})  # type: ignore[arg-type]


def test_a_config_that_says_all_of_it_right() -> None:
    right = config(
        Secret("ANTHROPIC_API_KEY", value=None),
        Secret("OPENAI_API_KEY", value_from=SecretKeyRef(name="keys", key="openai")),
        held("A", headers=["x-a"], paths=["/v1", "/v2/models"]),
        held("B", headers=["x-b"]),
        Secret("HOOK", value=CANARY),
        provider=Provider(
            id="own", api="openai-completions", base_url="https://llm.lan:8443/v1", api_key=CANARY
        ),
        catalog={"groq": Gateway(base_url="https://gateway.corp/groq")},
        env=[
            env("LOG_LEVEL"),
            EnvVar("NODE", value_from=FieldRef(field_path="spec.nodeName")),
            EnvVar("OTHER", value_from=SecretKeyRef(name="keys", key="other")),
        ],
        env_from=[EnvFrom(secret="team"), EnvFrom(config_map="settings")],
    )
    carried = parts(effects=[effect("HOOK")])
    assert lines(right, carried) == []
    assert rules.warnings(right, [carried]) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param(
            config(held("JR2_TOKEN")),
            "secrets[0].name: JR2_TOKEN starts with JR2_, as jr2's own variables do",
            id="ours",
        ),
        pytest.param(
            config(held("HTTPS_PROXY")),
            "secrets[0].name: HTTPS_PROXY says how a Harness reaches the network, and is no secret",
            id="network",
        ),
        pytest.param(
            config(held("PATH")),
            "secrets[0].name: PATH is a variable that every program of the container reads",
            id="container",
        ),
        pytest.param(
            config(held("A", headers=["x-a"]), held("A", headers=["x-b"])),
            "secrets[1].name: A is held already, by secrets[0]",
            id="twice",
        ),
        pytest.param(
            config(held("A"), env=[env("A")]),
            "secrets[0].name: A is in harness.env too, where every Agent reads it — remove one",
            id="env-too",
        ),
        pytest.param(
            config(held(hosts=[])),
            "secrets[0].hosts: is empty — name the hosts, or leave it out",
            id="no-hosts",
        ),
        pytest.param(
            config(held(hosts=["a.example", "*.example"])),
            'secrets[0].hosts[1]: "*.example" has a wildcard — name each host that the secret is '
            "sent to",
            id="wildcard",
        ),
        pytest.param(
            config(Secret("AZURE_OPENAI_API_KEY", value=CANARY)),
            'secrets[0]: AZURE_OPENAI_API_KEY has no hosts, and "azure-openai-responses" has no '
            'single one — add hosts=["…"]',
            id="no-single-host",
        ),
        pytest.param(
            config(held(headers=["Authorization"])),
            'secrets[0].headers[0]: "Authorization" is no header name in lower case',
            id="header",
        ),
        pytest.param(
            config(held(headers=["x-a", "content-length"])),
            'secrets[0].headers[1]: "content-length" frames the request or is read on its way: it '
            "carries no secret",
            id="framing",
        ),
        pytest.param(
            config(held(headers=["proxy-authorization"])),
            'secrets[0].headers[0]: "proxy-authorization" frames the request or is read on its '
            "way: it carries no secret",
            id="proxy-header",
        ),
        pytest.param(
            config(held(headers=["x_a"])),
            'secrets[0].headers[0]: "x_a" is no header name in lower case',
            id="underscore",
        ),
        pytest.param(
            config(held(headers=["x-a", "x-a"])),
            'secrets[0].headers[1]: "x-a" stands there twice',
            id="header-twice",
        ),
        pytest.param(
            config(held(headers=[])),
            "secrets[0].headers: is empty — name one, or leave it out",
            id="no-headers",
        ),
        pytest.param(
            config(held(paths=["v1"])),
            'secrets[0].paths[0]: "v1" does not start with "/"',
            id="path",
        ),
        pytest.param(
            config(held(paths=["/v1/%2E%2e/admin"])),
            'secrets[0].paths[0]: "/v1/%2E%2e/admin" holds "%2e", which a server may read as '
            "another path",
            id="encoded",
        ),
        pytest.param(
            config(held(paths=["/v1 "])),
            "secrets[0].paths[0]: holds a character that a path does not have; encode it",
            id="path-space",
        ),
        pytest.param(
            config(held("A"), held("B")),
            'secrets[1]: B and A (secrets[0]) are both bound to "api.example.com" and may both be '
            'in the header "authorization" — give each its own headers',
            id="shared",
        ),
        pytest.param(
            config(
                provider=Provider(
                    id="own", api="x", base_url="http://llm.lan:8000/v1", api_key=CANARY
                )
            ),
            'harness.provider.base_url: "http://llm.lan:8000/v1" is no https URL, and a secret is '
            "sent over https alone (api_key is set)",
            id="provider",
        ),
        pytest.param(
            config(catalog={"groq": Gateway(base_url="http://gateway.corp")}),
            'harness.catalog["groq"].base_url: "http://gateway.corp" is no https URL, and a secret '
            "is sent over https alone",
            id="gateway",
        ),
        pytest.param(
            config(catalog={"grok": Gateway(base_url="https://gateway.corp")}),
            'harness.catalog["grok"]: is no provider of the catalog; one of your own is '
            "harness.provider",
            id="unknown-provider",
        ),
        pytest.param(
            config(
                provider=Provider(id="groq", api="x", base_url="http://llm.lan"),
                catalog={"groq": Gateway(base_url="https://gateway.corp")},
            ),
            'harness.catalog["groq"]: is the id of harness.provider, which has its own base_url',
            id="own-provider",
        ),
        pytest.param(
            config(Secret("ANTHROPIC_API_KEY", value=CANARY, hosts=["gateway.corp"])),
            'secrets[0].hosts: leaves out "api.anthropic.com", where the model of Agent "writer" '
            "is called with ANTHROPIC_API_KEY",
            id="missed-host",
        ),
        pytest.param(
            config(
                Secret("ANTHROPIC_API_KEY", value=CANARY, hosts=["api.anthropic.com"]),
                catalog={"anthropic": Gateway(base_url="https://gateway.corp:8443/a")},
            ),
            'secrets[0].hosts: leaves out "gateway.corp:8443", where the model of Agent "writer" '
            "is called with ANTHROPIC_API_KEY",
            id="missed-gateway",
        ),
        pytest.param(
            config(env=[env("OPENAI_API_KEY")]),
            "harness.env[0]: OPENAI_API_KEY is a model key, and every Agent could read it there — "
            'hold it instead: secrets=[…, Secret("OPENAI_API_KEY", '
            'value=os.environ.get("OPENAI_API_KEY"))]',
            id="model-key",
        ),
        pytest.param(
            config(held(), env=[env("https_proxy")]),
            "harness.env[0]: https_proxy would lead a Harness past the Custodian that holds TOKEN "
            "(secrets[0])",
            id="proxy",
        ),
        pytest.param(
            config(env=[env("JR2_URL")]),
            "harness.env[0].name: JR2_URL starts with JR2_, as jr2's own variables do",
            id="env-ours",
        ),
        pytest.param(
            config(env=[env("A B")]),
            'harness.env[0].name: "A B" is no name of a variable',
            id="env-name",
        ),
        pytest.param(
            config(env=[env("A"), env("A")]),
            "harness.env[1].name: A stands in harness.env already",
            id="env-twice",
        ),
        pytest.param(
            config(env=[env("A", value_from=FieldRef(field_path="spec.nodeName"))]),
            "harness.env[0]: A needs exactly one of value or value_from, not both",
            id="env-both",
        ),
        pytest.param(
            config(env_from=[EnvFrom(secret="jr2-instance")]),
            'harness.env_from[0]: names Secret "jr2-instance", which jr2 makes and keeps for itself',
            id="own-secret",
        ),
        pytest.param(
            config(
                Secret("A", value_from=SecretKeyRef(name="keys", key="a"), hosts=["a.example"]),
                env_from=[EnvFrom(secret="keys")],
            ),
            'harness.env_from[0]: gives the Harness every key of Secret "keys", and secrets[0] '
            'holds "a" of it — keep the held value in a Secret of its own',
            id="leak-from",
        ),
        pytest.param(
            config(
                Secret("A", value_from=SecretKeyRef(name="keys", key="a"), hosts=["a.example"]),
                env=[EnvVar("B", value_from=SecretKeyRef(name="keys", key="a"))],
            ),
            'harness.env[0].value_from: gives the Harness key "a" of Secret "keys", which '
            "secrets[0] holds — every Agent could read it there",
            id="leak-env",
        ),
    ],
)
def test_each_rule(given: Config, said: str) -> None:
    assert lines(given) == [said]


@pytest.mark.parametrize(
    "name",
    ["jr2-orchestrator", "jr2-held-ca", "jr2-held-tls", "jr2-git-0123abcd", "ws-1-token"],
)
def test_no_secret_of_jr2_is_sent_anywhere(name: str) -> None:
    ref = SecretKeyRef(name=name, key="k")
    given = config(
        Secret("A", value_from=ref, hosts=["a.example"]), env=[EnvVar("B", value_from=ref)]
    )
    text = f'names Secret "{name}", which jr2 makes and keeps for itself'
    assert lines(given) == [f"secrets[0].value_from: {text}", f"harness.env[0].value_from: {text}"]


def test_all_that_is_wrong_is_said_at_once() -> None:
    given = config(held("JR2_A", hosts=["*"]), env=[env("OPENAI_API_KEY")])
    assert [line.partition(":")[0] for line in lines(given)] == [
        "secrets[0].name",
        "secrets[0].hosts[0]",
        "harness.env[0]",
    ]


def test_a_key_of_a_moved_provider_is_bound_to_its_gateway() -> None:
    given = config(
        Secret("AZURE_OPENAI_API_KEY", value=CANARY),
        catalog={"azure-openai-responses": Gateway(base_url="https://azure.corp:8443/openai")},
    )
    assert lines(given) == []
    [entry] = entries(given, [parts()])
    assert entry.targets == (Target("azure.corp", 8443),)


def test_a_key_of_two_providers_is_bound_to_both_of_their_hosts() -> None:
    given = config(
        Secret("OPENCODE_API_KEY", value=CANARY),
        catalog={"opencode-go": Gateway(base_url="https://go.corp")},
    )
    [entry] = entries(given, [parts()])
    assert entry.targets == (Target("go.corp"), Target("opencode.ai"))


def test_an_entry_is_used_by_pods_with_a_harness_and_by_effects() -> None:
    given = config(Secret("ANTHROPIC_API_KEY"), Secret("HOOK"), Secret("OTHER"))
    alone = parts(agents=[], menu_only=False, effects=[effect("HOOK", "sandbox-effector")])

    assert [entry.is_used for entry in entries(given, [alone])] == [False, True, False]
    assert [entry.held for entry in entries(given, [parts()])] == [True, False, False]
    assert entries(given, [alone])[1].effectors == {"sandbox-effector"}


def test_what_nothing_uses_and_what_cannot_be_held_is_warned_about() -> None:
    given = config(
        Secret("STRIPE", value=CANARY), env=[env("AWS_SECRET_ACCESS_KEY"), env("LOG_LEVEL")]
    )
    said = rules.warnings(given, [parts()])
    assert said == [
        "harness.env[0]: AWS_SECRET_ACCESS_KEY signs requests, and a Custodian cannot sign: every "
        "Agent can read it — call the service through a gateway that signs (ADR-0059)",
        "secrets[0]: STRIPE names no hosts, so no pod holds it, and no Effect names it (ADR-0059)",
    ]
    assert lines(given) == []


def test_the_key_of_the_own_provider_is_held_for_its_host() -> None:
    given = config(
        provider=Provider(id="own", api="x", base_url="https://llm.lan:8443/v1", api_key=CANARY)
    )
    [entry] = entries(given, [parts(agents=[agent("own/qwen")])])
    assert (entry.where, entry.name) == ("harness.provider.api_key", "JR2_PROVIDER_API_KEY")
    assert entry.targets == (Target("llm.lan", 8443),)
    assert CANARY not in repr(entry)


def test_every_known_key_has_a_host_or_says_that_it_needs_one() -> None:
    for name, key in MODEL_KEYS.items():
        said = lines(config(Secret(name, value=CANARY)))
        assert (said == []) is (key.host is not None), name
