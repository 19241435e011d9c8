"""`Config(…)`: every field, the path and words of the first wrong one, and no secret in sight."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from jr2 import (
    AllowFrom,
    Config,
    ConfigInvalid,
    ConfigMapKeyRef,
    EnvFrom,
    EnvVar,
    FieldRef,
    Gateway,
    Git,
    GitCommitter,
    GitCredential,
    GitPush,
    GitSign,
    Harness,
    ModelLimits,
    Network,
    Operator,
    PriorityClasses,
    Provider,
    Sandbox,
    Secret,
    SecretKeyRef,
    Size,
    Toleration,
)
from jr2.config import name_problem

CANARY = "CANARY-5f3a"
ENTRY = (
    " — an entry is { match, token?, ssh_key?, push?: { ssh_key } | { token }, "
    "sign?: { ssh_key | gpg_key, name, email }, committer?: { name, email } } (ADR-0051)"
)


def full() -> Config:
    return Config(
        name="my-instance",
        registry="registry.example/me",
        kit_registry="mirror.example",
        platforms=["linux/amd64"],
        git=Git(
            credentials=[
                GitCredential(match="github.com/acme/", token="GITHUB_TOKEN", ssh_key="key"),
                GitCredential(
                    match="*",
                    push=GitPush(token="PUSH_TOKEN"),
                    sign=GitSign(gpg_key="gpg", name="Sam", email="sam@example.com"),
                    committer=GitCommitter(name="Sam", email="sam@example.com"),
                ),
            ]
        ),
        secrets=[
            Secret("ANTHROPIC_API_KEY", value=CANARY, hosts=["api.anthropic.com"]),
            Secret(
                name="HOOK",
                value_from=SecretKeyRef(name="hook", key="token"),
                headers=["x-hook"],
                paths=["/in"],
            ),
        ],
        harness=Harness(
            provider=Provider(
                id="local",
                api="openai-completions",
                base_url="",
                api_key=CANARY,
                context_window=32_768,
                max_tokens=2_048,
                models={"qwen": ModelLimits(context_window=65_536, max_tokens=4_096)},
            ),
            catalog={"anthropic": Gateway(base_url="https://gateway.example")},
            env=[
                EnvVar("PLAIN", value=CANARY),
                EnvVar("FROM_SECRET", value_from=SecretKeyRef(name="s", key="k")),
                EnvVar("FROM_MAP", value_from=ConfigMapKeyRef(name="m", key="k")),
                EnvVar("FROM_POD", value_from=FieldRef(field_path="metadata.namespace")),
            ],
            env_from=[EnvFrom(secret="keys"), EnvFrom(config_map="settings")],
            ca_bundle="ca.crt",
        ),
        sandbox=Sandbox(
            node_selector={"pool": "sandboxes"},
            tolerations=[
                Toleration(key="pool", operator="Equal", value="sandboxes", effect="NoExecute")
            ],
            resources=Size(memory="2Gi", cpu=1.5),
        ),
        priority_classes=PriorityClasses(control="high"),
        operator=Operator(manage=False),
        network=Network(allow_from=[AllowFrom(namespace="hooks", pods={"app": "x"})]),
    )


def test_a_full_config_comes_back_whole_from_the_pipe() -> None:
    config = full()

    again = Config.model_validate(config.revealed())

    assert again == config
    assert again.secrets[0].value == SecretStr(CANARY)
    assert again.harness.env[2].value_from == ConfigMapKeyRef(name="m", key="k")


def test_what_is_not_said_has_a_default() -> None:
    config = Config()

    assert config.name is None
    assert config.registry is None
    assert config.platforms is None
    assert config.git.credentials == ()
    assert config.secrets == ()
    assert config.harness.env == ()
    assert config.sandbox.resources is None
    assert config.operator.manage is True


def test_a_variable_that_is_not_set_is_legal() -> None:
    config = Config(registry=None, kit_registry="", secrets=[Secret("KEY", value=None)])

    assert config.kit_registry is None
    assert config.secrets[0].value is None


def test_a_part_is_taken_as_a_dict_too() -> None:
    config = Config.model_validate({"git": {"credentials": [{"match": "*"}]}})

    assert config.git.credentials == (GitCredential(match="*"),)


def test_no_text_of_a_config_holds_a_value() -> None:
    config = full()

    shown = f"{config!r} {config} {config.secrets[0]!r} {config.model_dump()} "
    shown += config.model_dump_json()

    assert CANARY not in shown
    assert CANARY in str(config.revealed())


def test_a_config_does_not_change() -> None:
    config = full()

    with pytest.raises(ValidationError, match="frozen_instance"):
        config.name = "other"  # type: ignore[misc]


def test_a_wrong_part_is_silent_until_a_config_takes_it_up() -> None:
    wrong = Secret("key", value=CANARY)

    assert repr(wrong) == "Secret(…)"
    with pytest.raises(ConfigInvalid) as raised:
        Config(secrets=[wrong])
    assert str(raised.value) == "secrets[0].name: must match ^[A-Z_][A-Z0-9_]*$"
    assert raised.value.__suppress_context__


WRONG: list[tuple[Callable[[], Config], str]] = [
    (
        lambda: Config(nmae="x"),  # type: ignore[call-arg]
        "nmae: is no field of Config (its fields: name, registry, kit_registry, platforms, git, "
        "secrets, harness, sandbox, priority_classes, operator, network)",
    ),
    (
        lambda: Config(git=Git(credentials=[GitCredential(match="a"), GitCredential(match="")])),
        "git.credentials[1].match: must not be empty" + ENTRY,
    ),
    (
        lambda: Config(git=Git(credentials=[GitCredential(match="a", sshKey="k")])),  # type: ignore[call-arg]
        "git.credentials[0].sshKey: is no field of GitCredential (its fields: match, token, "
        "ssh_key, push, sign, committer)" + ENTRY,
    ),
    (
        lambda: Config(git=Git(credentials=[GitCredential(match="a", ssh_key=3)])),
        "git.credentials[0].ssh_key: must be a string" + ENTRY,
    ),
    (
        lambda: Config(git=Git(credentials=[GitCredential(match="a", push=GitPush())])),
        "git.credentials[0].push: needs exactly one of ssh_key or token" + ENTRY,
    ),
    (
        lambda: Config(
            git=Git(credentials=[GitCredential(match="a", push=GitPush(token="A", ssh_key="b"))])
        ),
        "git.credentials[0].push: needs exactly one of ssh_key or token, not both" + ENTRY,
    ),
    (
        lambda: Config(
            git=Git(
                credentials=[GitCredential(match="a", sign=GitSign(gpg_key="k", name="Sam"))]  # type: ignore[call-arg]
            )
        ),
        "git.credentials[0].sign.email: is required" + ENTRY,
    ),
    (
        lambda: Config(git=Git(credentials=GitCredential(match="a"))),
        "git.credentials: must be a list",
    ),
    (lambda: Config(git=GitPush(token="A")), "git: must be a Git(…)"),
    (lambda: Config(secrets=[Secret()]), "secrets[0].name: is required"),  # type: ignore[call-arg]
    (
        lambda: Config(secrets=[Secret("A", value=3)]),  # type: ignore[arg-type]
        "secrets[0].value: must be a string",
    ),
    (
        lambda: Config(secrets=[Secret("A", value_from=SecretKeyRef(name="s"))]),  # type: ignore[call-arg]
        "secrets[0].value_from.key: is required",
    ),
    (
        lambda: Config(secrets=[Secret("A", valueFrom=CANARY)]),  # type: ignore[call-arg]
        "secrets[0].valueFrom: is no field of Secret (its fields: name, value, value_from, hosts, "
        "headers, paths)",
    ),
    (
        lambda: Config(secrets=[Secret("A", hosts="api.example.com")]),
        "secrets[0].hosts: must be a list, not a string",
    ),
    (
        lambda: Config(harness=Harness(provider=Provider(id="a", api="b"))),  # type: ignore[call-arg]
        "harness.provider.base_url: is required",
    ),
    (
        lambda: Config(
            harness=Harness(
                provider=Provider(
                    id="a", api="b", base_url="", models={"q/2.5": ModelLimits(max_tokens=0)}
                )
            )
        ),
        'harness.provider.models["q/2.5"].max_tokens: must be at least 1',
    ),
    (
        lambda: Config(harness=Harness(catalog={"anthropic": "https://x"})),
        "harness.catalog.anthropic: must be a Gateway(…)",
    ),
    (
        lambda: Config(harness=Harness(env=[EnvVar("A", value_from="x")])),  # type: ignore[arg-type]
        "harness.env[0].value_from: must be a SecretKeyRef, a ConfigMapKeyRef or a FieldRef",
    ),
    (
        lambda: Config(harness=Harness(env=[EnvVar("A", value_from=ConfigMapKeyRef(name="m"))])),  # type: ignore[call-arg]
        "harness.env[0].value_from.key: is required",
    ),
    (
        lambda: Config(harness=Harness(env_from=[EnvFrom()])),
        "harness.env_from[0]: needs exactly one of secret or config_map",
    ),
    (
        lambda: Config(sandbox=Sandbox(resources=Size(memory="1GB"))),
        'sandbox.resources.memory: "1GB" is not a Kubernetes quantity — write "1G" or "1Gi"',
    ),
    (
        lambda: Config(sandbox=Sandbox(resources=Size(requests="1Gi"))),  # type: ignore[call-arg]
        "sandbox.resources.requests: is no field of Size: every request equals its limit",
    ),
    (
        lambda: Config(sandbox=Sandbox(tolerations=[Toleration(operator="In")])),
        "sandbox.tolerations[0].operator: must be 'Exists' or 'Equal'",
    ),
    (lambda: Config(operator=Operator(manage=1)), "operator.manage: must be True or False"),
    (
        lambda: Config(network=Network(allow_from=[AllowFrom(cidr="10.0.0.1/8")])),
        'network.allow_from[0].cidr: "10.0.0.1/8" is no range of addresses — write one such as '
        '"10.0.0.0/8"',
    ),
    (
        lambda: Config(network=Network(allow_from=[AllowFrom(namespace="A")])),
        'network.allow_from[0].namespace: "A" cannot name a namespace: it holds "A", and only a-z, '
        '0-9 and "-" are legal',
    ),
    (
        lambda: Config(network=Network(allow_from=[AllowFrom()])),
        "network.allow_from[0]: needs pods (namespace, pods or both) or cidr",
    ),
    (
        lambda: Config(network=Network(allow_from=[AllowFrom(namespace="a", cidr="10.0.0.0/8")])),
        "network.allow_from[0]: needs pods (namespace, pods or both) or cidr, not both",
    ),
    (
        lambda: Config(name="Feature/X"),
        'name: "Feature/X" cannot name an Instance: it holds "F", and only a-z, 0-9 and "-" are '
        "legal",
    ),
]


@pytest.mark.parametrize("field", ["registry", "kit_registry"])
@pytest.mark.parametrize(
    "value",
    [
        "https://ann:CANARY@registry.example", "ann:CANARY@registry.example", "registry.example/CANARY",
        "a.example/canary:1", "/", " registry.example", "registry.example/a//b",
    ],
)  # fmt: skip
def test_a_registry_that_is_none_is_said_without_its_value(field: str, value: str) -> None:
    with pytest.raises(ConfigInvalid) as raised:
        Config(**{field: value})

    assert str(raised.value) == (
        f"{field}: is no registry with a path, such as registry.example/team — no scheme, no user "
        "and no tag, in lower case"
    )


@pytest.mark.parametrize(
    "value",
    ["registry.example", "localhost:5000", "[::1]:5000/a", "ghcr.io/snapwich/", "a.example/b_c/d--e.f"],
)  # fmt: skip
def test_a_registry_is_kept_as_it_was_written(value: str) -> None:
    assert Config(registry=value).registry == value


@pytest.mark.parametrize(
    "token", ["A=B", "ghp_CANARYCANARYCANARY1234", "glpat-CANARY", "A B", "github_pat_CANARY12345678901", "é"]
)  # fmt: skip
def test_a_token_in_the_place_of_its_variable_is_not_shown(token: str) -> None:
    for entry in (
        GitCredential(match="*", token=token),
        GitCredential(match="*", push=GitPush(token=token)),
    ):
        with pytest.raises(ConfigInvalid) as raised:
            Config(git=Git(credentials=[entry]))

        assert "token: must be the name of a variable, such as GITHUB_TOKEN" in str(raised.value)
        assert token not in str(raised.value)


OBJECT = (
    ' can name no object of Kubernetes: a-z, 0-9, "-" and "." alone, with a letter or a digit at '
    "each end and beside each dot"
)
KEY = ' can be no key of a Secret or a ConfigMap: letters, digits, "-", "_" and "." alone'
LABEL = " can be no key of a label or a taint: such as disktype or example.com/gpu"
VALUE = (
    ' can be no value of a label or a taint: at most 63 letters, digits, "-", "_" and ".", with a '
    "letter or a digit at each end"
)
REFUSED_BY_KUBERNETES: list[tuple[Callable[[], Config], str]] = [
    *(
        (
            lambda name=name: Config(harness=Harness(env_from=[EnvFrom(secret=name)])),
            f"harness.env_from[0].secret: {json.dumps(name, ensure_ascii=False)}{OBJECT}",
        )
        for name in ("Bad Name", "a..b", "a.-b", "-a", "a.", "../x", "\u00e4", "a\n", "x" * 254)
    ),
    (
        lambda: Config(harness=Harness(env_from=[EnvFrom(config_map="A")])),
        f'harness.env_from[0].config_map: "A"{OBJECT}',
    ),
    (
        lambda: Config(secrets=[Secret("A", value_from=SecretKeyRef(name="B", key="k"))]),
        f'secrets[0].value_from.name: "B"{OBJECT}',
    ),
    (
        lambda: Config(secrets=[Secret("A", value_from=SecretKeyRef(name="b", key="k/"))]),
        f'secrets[0].value_from.key: "k/"{KEY}',
    ),
    (
        lambda: Config(secrets=[Secret("A", value_from=SecretKeyRef(name="b", key="..k"))]),
        f'secrets[0].value_from.key: "..k"{KEY}',
    ),
    (
        lambda: Config(
            harness=Harness(env=[EnvVar("A", value_from=ConfigMapKeyRef(name="x/y", key="k"))])
        ),
        f'harness.env[0].value_from.name: "x/y"{OBJECT}',
    ),
    (
        lambda: Config(
            harness=Harness(env=[EnvVar("A", value_from=FieldRef(field_path="spec.x"))])
        ),
        'harness.env[0].value_from.field_path: "spec.x" is no field of a pod that a variable can '
        "hold: metadata.name, metadata.namespace, metadata.uid, spec.nodeName, "
        "spec.serviceAccountName, status.hostIP, status.hostIPs, status.podIP, status.podIPs, "
        "metadata.labels['<key>'] or metadata.annotations['<key>']",
    ),
    (
        lambda: Config(priority_classes=PriorityClasses(sandbox="A")),
        f'priority_classes.sandbox: "A"{OBJECT}',
    ),
    (
        lambda: Config(sandbox=Sandbox(node_selector={"a b": "c"})),
        f'sandbox.node_selector: "a b"{LABEL}',
    ),
    (
        lambda: Config(sandbox=Sandbox(node_selector={"a/b/c": "c"})),
        f'sandbox.node_selector: "a/b/c"{LABEL}',
    ),
    (
        lambda: Config(sandbox=Sandbox(node_selector={"a": "c d"})),
        f'sandbox.node_selector: "c d"{VALUE}',
    ),
    (
        lambda: Config(network=Network(allow_from=[AllowFrom(pods={"a": "x" * 64})])),
        f'network.allow_from[0].pods: "{"x" * 64}"{VALUE}',
    ),
    (
        lambda: Config(sandbox=Sandbox(tolerations=[Toleration(key="a b", operator="Exists")])),
        f'sandbox.tolerations[0]: "a b"{LABEL}',
    ),
    (
        lambda: Config(sandbox=Sandbox(tolerations=[Toleration(key="a", value="b c")])),
        f'sandbox.tolerations[0]: "b c"{VALUE}',
    ),
    (
        lambda: Config(
            sandbox=Sandbox(tolerations=[Toleration(key="a", operator="Exists", value="x")])
        ),
        'sandbox.tolerations[0]: has no value with operator="Exists"',
    ),
    (
        lambda: Config(sandbox=Sandbox(tolerations=[Toleration(value="x")])),
        'sandbox.tolerations[0]: needs operator="Exists" when it names no key',
    ),
    (
        lambda: Config(
            sandbox=Sandbox(
                tolerations=[Toleration(key="a", toleration_seconds=3, effect="NoSchedule")]
            )
        ),
        'sandbox.tolerations[0]: has toleration_seconds with effect="NoExecute" alone',
    ),
]


@pytest.mark.parametrize(("make", "text"), REFUSED_BY_KUBERNETES)
def test_what_kubernetes_refuses_is_refused_before_a_cluster(
    make: Callable[[], Config], text: str
) -> None:
    with pytest.raises(ConfigInvalid) as raised:
        make()

    assert str(raised.value) == text


def test_what_kubernetes_takes_is_kept() -> None:
    labels = {"kubernetes.io/os": "linux", "a": "", "example.com/A_b.c": "A-b_c.1"}
    config = Config(
        harness=Harness(
            env=[
                EnvVar("A", value_from=FieldRef(field_path="metadata.labels['example.com/x']")),
                EnvVar("B", value_from=SecretKeyRef(name="a.b-c.0", key="._-A.crt")),
            ],
        ),
        sandbox=Sandbox(
            node_selector=labels,
            tolerations=[
                Toleration(operator="Exists"),
                Toleration(key="a.b/c", value="d", effect="NoExecute", toleration_seconds=0),
            ],
        ),
    )

    assert dict(config.sandbox.node_selector) == labels
    assert Config.model_validate(config.revealed()) == config


@pytest.mark.parametrize(("make", "text"), WRONG, ids=[text[:40] for _, text in WRONG])
def test_the_first_wrong_field_is_named(make: Callable[[], Config], text: str) -> None:
    with pytest.raises(ConfigInvalid) as raised:
        make()

    assert str(raised.value) == text


def test_only_the_name_of_a_secret_may_be_given_by_position() -> None:
    secret: Any = Secret
    git: Any = Git

    with pytest.raises(TypeError, match=r"Secret\(\) takes 1 positional argument\(s\)"):
        secret("A", CANARY)
    with pytest.raises(TypeError, match=r"Git\(\) takes no positional argument\(s\)"):
        git([])


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("café", 'it holds "é", and only a-z, 0-9 and "-" are legal'),
        ("a_b", 'it holds "_", and only a-z, 0-9 and "-" are legal'),
        ("x.", 'it holds ".", and only a-z, 0-9 and "-" are legal'),
        ("-a", "it starts with a hyphen"),
        ("a-", "it ends with a hyphen"),
        ("", "it is empty"),
        ("a" * 64, "it has 64 characters, and a label has at most 63"),
    ],
)
def test_a_name_is_a_label_or_refused_with_its_rule(name: str, rule: str) -> None:
    assert name_problem(name) == f'"{name}" cannot name an Instance: {rule}'


@pytest.mark.parametrize("name", ["a", "0", "my-instance", "a" * 63])
def test_a_label_is_a_name(name: str) -> None:
    assert name_problem(name) is None
    assert Config(name=name).name == name


def test_two_long_names_never_meet() -> None:
    names = ["n" * 69 + "a", "n" * 69 + "b"]

    assert all(name_problem(name) for name in names)


@pytest.mark.parametrize("size", [Size(cpu=1), Size(cpu="1e0"), Size(cpu=1.0), Size(cpu="1000m")])
def test_a_size_is_kept_as_it_was_written(size: Size) -> None:
    kept = Config(sandbox=Sandbox(resources=size)).sandbox.resources

    assert kept is not None
    assert kept.cpu in ("1", "1e0", "1000m")
