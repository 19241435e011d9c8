"""A Custodian in a pod: what it mounts, and what the Harness beside it hears."""

from __future__ import annotations

from typing import Any

from jr2 import names
from jr2.custodian import Composed, compose
from jr2.held import BoundHost, HeldManifest, HeldSecret, LiteralSource, SecretSource

HOSTS = (BoundHost(host="api.example.com", port=443, leaf="0123456789abcdef"),)
HELD = HeldManifest(
    secrets=(
        HeldSecret(name="MODEL_KEY", source=LiteralSource(), hosts=HOSTS, headers=("x-api-key",)),
        HeldSecret(
            name="THEIR_KEY",
            source=SecretSource(secret="theirs", key="token"),
            hosts=HOSTS,
            headers=("authorization",),
        ),
    )
)


def composed(**changed: Any) -> Composed:
    given: dict[str, Any] = {
        "image": names.CUSTODIAN_IMAGE,
        "token": ("jr2-instance", "JR2_INSTANCE_HARNESS_TOKEN"),
        "held": HeldManifest(),
        "has_ca_bundle": False,
    }
    return compose(**{**given, **changed})


def volumes(found: Composed) -> dict[str, Any]:
    return {volume["name"]: volume for volume in found.volumes}


def env(found: Composed) -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in found.harness_env}


def test_without_a_held_secret_there_is_the_token_and_no_proxy() -> None:
    found = composed()
    assert set(volumes(found)) == {"custodian-values", "custodian-config"}
    assert env(found) == {
        "JR2_CUSTODIAN_URL": "http://127.0.0.1:8081",
        "JR2_SANDBOX_TOKEN": "jr2-held-JR2_SANDBOX_TOKEN",
    }
    assert found.harness_mounts == ()
    assert "env" not in found.container


def test_a_value_is_a_file_that_the_custodian_alone_mounts() -> None:
    found = composed(held=HELD)
    values = volumes(found)["custodian-values"]["projected"]
    assert values["defaultMode"] == 0o440
    assert [source["secret"] for source in values["sources"]] == [
        {
            "name": "jr2-instance",
            "items": [{"key": "JR2_INSTANCE_HARNESS_TOKEN", "path": "JR2_SANDBOX_TOKEN"}],
        },
        {"name": "jr2-held-secrets", "items": [{"key": "MODEL_KEY", "path": "MODEL_KEY"}]},
        {"name": "theirs", "items": [{"key": "token", "path": "THEIR_KEY"}]},
    ]
    own = {mount["name"]: mount["mountPath"] for mount in found.container["volumeMounts"]}
    assert own == {
        "custodian-values": "/etc/jr2/custodian/values",
        "custodian-config": "/etc/jr2/custodian/config",
        "custodian-tls": "/etc/jr2/custodian/tls",
        "custodian-trust": "/etc/jr2/ca",
    }
    assert all(mount["readOnly"] for mount in found.container["volumeMounts"])
    trust = volumes(found)["custodian-trust"]["configMap"]
    assert trust["items"] == [{"key": "upstream.crt", "path": "upstream.crt"}]
    assert {mount["name"] for mount in found.harness_mounts} == {"ca"}


def test_the_harness_hears_stand_ins_and_where_to_send_them() -> None:
    found = composed(held=HELD)
    heard = env(found)
    assert heard["MODEL_KEY"] == "jr2-held-MODEL_KEY"
    assert heard["THEIR_KEY"] == "jr2-held-THEIR_KEY"
    assert heard["HTTPS_PROXY"] == heard["https_proxy"] == "http://127.0.0.1:15001"
    assert heard["NO_PROXY"] == heard["no_proxy"] == "localhost,127.0.0.1,::1"
    assert "HTTP_PROXY" not in heard
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO"):
        assert heard[name] == "/etc/jr2/ca/bundle.crt"
    mounted = {mount["mountPath"]: mount["subPath"] for mount in found.harness_mounts}
    assert mounted == {
        "/etc/jr2/ca/extra.crt": "extra.crt",
        "/etc/jr2/ca/bundle.crt": "bundle.crt",
    }


def test_authorities_of_the_user_are_trusted_without_a_held_secret() -> None:
    found = composed(has_ca_bundle=True)
    assert env(found)["NODE_EXTRA_CA_CERTS"] == "/etc/jr2/ca/ca.crt"
    assert [mount["subPath"] for mount in found.harness_mounts] == ["ca.crt"]
    assert "HTTPS_PROXY" not in env(found)
    both = composed(has_ca_bundle=True, held=HELD)
    assert [mount["subPath"] for mount in both.harness_mounts] == [
        "ca.crt",
        "extra.crt",
        "bundle.crt",
    ]


def test_a_sandbox_is_named_to_its_custodian() -> None:
    found = composed(sandbox="sandbox-1")
    assert found.container["env"] == [{"name": "JR2_SANDBOX", "value": "sandbox-1"}]
    context = found.container["securityContext"]
    assert context["runAsUser"] not in (0, names.HARNESS_UID)
