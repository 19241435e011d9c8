"""The three maps: image refs, held secrets and the model provider, as canonical JSON.

The text of a map is its identity: the Orchestrator reports the digest of what it reads, and a
publish waits until that digest is the one that was just written.

Source: spec/converge.md §5.3, design §5.5.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic.alias_generators import to_camel

from jr2 import custodian, names
from jr2.config import Harness

from ..closed_list import CONFIG_MAP
from .base import instance_labels, wanted


def canonical(value: Any) -> str:
    """Return JSON text that is the same for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def text_digest(text: str) -> str:
    """Return the SHA-256 of a map's text, hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def images_json(refs: Mapping[str, str]) -> str:
    """Return `images.json`.

    Args:
        refs: the refs that the runtime asks for by name: `custodian`, `operator` and, where a
            Harness image exists, `harness`.
    """
    return canonical({**refs, "sandbox": {}, "sandboxUser": {}})


def harness_json(harness: Harness) -> str:
    """Return `harness.json`: where models are, and never a key.

    Args:
        harness: the part of the config.
    """
    found: dict[str, Any] = {}
    if harness.provider is not None:
        provider = harness.provider.model_dump(exclude={"api_key"}, exclude_none=True)
        models = {
            model: _camel(limits) for model, limits in sorted((provider.pop("models")).items())
        }
        found["provider"] = {**_camel(provider), "models": models}
    if harness.catalog:
        found["catalog"] = {
            name: {"baseUrl": gateway.base_url} for name, gateway in harness.catalog.items()
        }
    return canonical(found)


def custodian_files(namespace: str) -> dict[str, str]:
    """Return what a Custodian reads beside its values: its config and its script.

    Args:
        namespace: of the Instance, in which its Orchestrator is.
    """
    return {
        names.HELD_BOOTSTRAP_KEY: custodian.bootstrap(f"{names.ORCHESTRATOR}.{namespace}.svc"),
        names.HELD_SCRIPT_KEY: custodian.script(),
    }


def custodian_ref(kit_registry: str | None) -> str:
    """Return the ref of the Custodian's image, which a mirror of the Kit holds too."""
    if kit_registry is None:
        return names.CUSTODIAN_IMAGE
    return f"{kit_registry.rstrip('/')}/{names.CUSTODIAN_IMAGE.rpartition('/')[2]}"


def _camel(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {to_camel(name): value for name, value in fields.items()}


def maps(
    instance: str, namespace: str, *, images: str, held: str, harness: str
) -> tuple[dict[str, Any], ...]:
    """Return the wanted ConfigMaps."""
    return tuple(
        wanted(
            CONFIG_MAP,
            name,
            namespace=namespace,
            labels=instance_labels(instance),
            data=data,
        )
        for name, data in (
            (names.IMAGES_MAP, {names.IMAGES_KEY: images}),
            (names.HELD_MAP, {names.HELD_KEY: held, **custodian_files(namespace)}),
            (names.HARNESS_MAP, {names.HARNESS_KEY: harness}),
        )
    )
