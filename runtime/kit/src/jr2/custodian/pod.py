"""A Custodian in a pod: its container, its volumes, and what the Harness beside it is told.

The values lie in one projected volume that the Custodian alone mounts, each file under the name of
its secret. What the Harness gets is public: where the Custodian is, and Stand-ins.

Source: spec/converge.md §5.10, spec/runtime.md §3.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .. import names
from ..held import HeldManifest, HeldSecret, SecretSource, stand_in

_FOLDER: Final = "/etc/jr2/custodian"
_VALUES: Final = "custodian-values"
_CONFIG: Final = "custodian-config"
_TLS: Final = "custodian-tls"
_TRUST: Final = "custodian-trust"
_CA: Final = "ca"
_CA_PATH: Final = "/etc/jr2/ca"
_READABLE: Final = 0o440
"""Files of values are for the group of the pod, which each of its containers has."""
_ARGUMENTS: Final = (
    *("-c", f"{_FOLDER}/config/{names.HELD_BOOTSTRAP_KEY}"),
    *("--concurrency", "1"),
    "--disable-hot-restart",
    *("--file-flush-interval-msec", "500"),
    *("--log-level", "warning"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """What a pod gets with its Custodian.

    Args:
        container: the Custodian.
        volumes: of the pod, those of the Harness too.
        harness_mounts: what the Harness container mounts.
        harness_env: variables of the Harness container; they come after the user's own.
    """

    container: Mapping[str, Any]
    volumes: tuple[Mapping[str, Any], ...]
    harness_mounts: tuple[Mapping[str, Any], ...]
    harness_env: tuple[Mapping[str, Any], ...]


def compose(
    *,
    image: str,
    token: tuple[str, str],
    held: HeldManifest,
    has_ca_bundle: bool,
    sandbox: str | None = None,
) -> Composed:
    """Compose a Custodian.

    Args:
        image: the Pinned image.
        token: the Secret and the key with the token of this pod.
        held: the secrets that the pod holds.
        has_ca_bundle: the config names certificate authorities of the user's own.
        sandbox: the Sandbox; `None` for the Instance Harness, which asks for no fetch.
    """
    is_held = bool(held.secrets)
    has_trust = is_held or has_ca_bundle
    volumes = [_values_volume(token, held.secrets), _map_volume(_CONFIG, names.HELD_MAP)]
    mounts = [
        _mount(_VALUES, f"{_FOLDER}/values"),
        _mount(_CONFIG, f"{_FOLDER}/config"),
    ]
    if is_held:
        volumes.append(
            {"name": _TLS, "secret": {"secretName": names.HELD_TLS, "defaultMode": _READABLE}}
        )
        volumes.append(_map_volume(_TRUST, names.CA_MAP, (names.KEY_CA_UPSTREAM,)))
        mounts += [_mount(_TLS, f"{_FOLDER}/tls"), _mount(_TRUST, _CA_PATH)]
    if has_trust:
        volumes.append(_map_volume(_CA, names.CA_MAP))
    return Composed(
        container=_container(image, mounts, sandbox),
        volumes=tuple(volumes),
        harness_mounts=tuple(
            # A file of its own each: the trust of a running pod stays as it was at its start.
            {**_mount(_CA, f"{_CA_PATH}/{key}"), "subPath": key}
            for key in _trusted(is_held=is_held, has_ca_bundle=has_ca_bundle)
        ),
        harness_env=tuple(
            {"name": name, "value": value}
            for name, value in _harness_env(held.secrets, has_ca_bundle=has_ca_bundle).items()
        ),
    )


def _container(
    image: str, mounts: Sequence[Mapping[str, Any]], sandbox: str | None
) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": names.CONTAINER_CUSTODIAN,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": list(_ARGUMENTS),
        "ports": [
            {
                "name": "custodian",
                "containerPort": names.CUSTODIAN_HEALTH_PORT,
                "protocol": "TCP",
            }
        ],
        "readinessProbe": {
            "httpGet": {"path": "/healthz", "port": names.CUSTODIAN_HEALTH_PORT},
            "initialDelaySeconds": 1,
            "periodSeconds": 2,
            "failureThreshold": 15,
        },
        "resources": {
            "requests": {"cpu": "50m", "memory": "64Mi"},
            "limits": {"memory": "64Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": names.CUSTODIAN_UID,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": list(mounts),
    }
    if sandbox is not None:
        container["env"] = [{"name": names.ENV_SANDBOX, "value": sandbox}]
    return container


def _values_volume(token: tuple[str, str], secrets: Sequence[HeldSecret]) -> dict[str, Any]:
    secret, key = token
    sources = [_source(secret, [(key, names.ENV_SANDBOX_TOKEN)])]
    literal = [one.name for one in secrets if not isinstance(one.source, SecretSource)]
    if literal:
        sources.append(_source(names.HELD_SECRETS, [(name, name) for name in literal]))
    sources += [
        _source(one.source.secret, [(one.source.key, one.name)])
        for one in secrets
        if isinstance(one.source, SecretSource)
    ]
    return {"name": _VALUES, "projected": {"defaultMode": _READABLE, "sources": sources}}


def _source(secret: str, items: Sequence[tuple[str, str]]) -> dict[str, Any]:
    return {
        "secret": {"name": secret, "items": [{"key": key, "path": path} for key, path in items]}
    }


def _map_volume(name: str, config_map: str, keys: Sequence[str] = ()) -> dict[str, Any]:
    source: dict[str, Any] = {"name": config_map}
    if keys:
        source["items"] = [{"key": key, "path": key} for key in keys]
    return {"name": name, "configMap": source}


def _mount(volume: str, path: str) -> dict[str, Any]:
    return {"name": volume, "mountPath": path, "readOnly": True}


def _trusted(*, is_held: bool, has_ca_bundle: bool) -> tuple[str, ...]:
    """Return the files of the map `jr2-ca` that a Harness reads."""
    bundle = (names.KEY_CA_CERTIFICATE,) if has_ca_bundle else ()
    return (*bundle, names.KEY_CA_EXTRA, names.KEY_CA_BUNDLE) if is_held else bundle


def _harness_env(secrets: Sequence[HeldSecret], *, has_ca_bundle: bool) -> dict[str, str]:
    found = {
        names.ENV_CUSTODIAN_URL: f"http://127.0.0.1:{names.CUSTODIAN_CONTROL_PORT}",
        names.ENV_SANDBOX_TOKEN: stand_in(names.ENV_SANDBOX_TOKEN),
    }
    if secrets:
        proxy = f"http://127.0.0.1:{names.CUSTODIAN_EGRESS_PORT}"
        local = "localhost,127.0.0.1,::1"
        bundle = f"{_CA_PATH}/{names.KEY_CA_BUNDLE}"
        found |= {one.name: stand_in(one.name) for one in secrets}
        found |= {"HTTPS_PROXY": proxy, "https_proxy": proxy, "NO_PROXY": local, "no_proxy": local}
        found |= dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO"), bundle)
        # Programs of Node.js in an Agent's image: they add to their own roots.
        found |= {
            "NODE_USE_ENV_PROXY": "1",
            "NODE_EXTRA_CA_CERTS": f"{_CA_PATH}/{names.KEY_CA_EXTRA}",
        }
    elif has_ca_bundle:
        found["NODE_EXTRA_CA_CERTS"] = f"{_CA_PATH}/{names.KEY_CA_CERTIFICATE}"
    return found
