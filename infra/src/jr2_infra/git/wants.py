"""What an Instance wants of git, decided from its folder and its environment alone.

Source: design §5.1, spec/converge.md §9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from jr2.config import GitCredential

from ..components import base
from ..facts.instance import InstanceFacts
from ..resources import KubernetesResource
from . import needs, tokens
from .keys import DeployKey, key_secret
from .needs import KeyUse, MissingKey, Secrets, SshUrl
from .tokens import GitToken

TOKENS: Final = "git"
KEYS: Final = "git-keys"
"""The parts of the program that hold the Secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitWants:
    """What an Instance wants of git.

    Args:
        tokens: the tokens that the cluster gets.
        urls: the urls that are bound over ssh.
        uses: the keys that pushes need.
        keys: the deploy keys that this run was given.
    """

    tokens: tuple[GitToken, ...] = ()
    urls: tuple[SshUrl, ...] = ()
    uses: tuple[KeyUse, ...] = ()
    keys: tuple[DeployKey, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """What is said of the Secrets in each run."""
        return tuple(token.line for token in self.tokens)

    def missing(self, live: Secrets) -> tuple[MissingKey, ...]:
        """Return the key Secrets that neither exist nor are made by this run."""
        given = {key.secret for key in self.keys}
        found = needs.missing_keys(self.urls, live)
        return tuple(one for one in found if one.secret not in given)

    def warnings(self, live: Secrets, *, namespace: str) -> tuple[str, ...]:
        """Return what will fail later, each as a whole line."""
        return needs.warnings(self.urls, self.uses, live, namespace=namespace)

    def still(self, live: Secrets) -> GitWants:
        """Return the same without the keys of Secrets that exist by now: none is overwritten."""
        return replace(self, keys=tuple(key for key in self.keys if key.secret not in live))

    def resources(
        self, instance: str, namespace: str
    ) -> tuple[tuple[KubernetesResource, ...], tuple[KubernetesResource, ...]]:
        """Return the Secrets of tokens, and those of the keys that this run was given."""
        return (
            tuple(
                base.resource(TOKENS, tokens.token_secret(instance, namespace, token))
                for token in self.tokens
            ),
            tuple(
                base.resource(KEYS, key_secret(namespace, key), retain=True) for key in self.keys
            ),
        )


def git_wants(instance: InstanceFacts, environ: Mapping[str, str]) -> GitWants:
    """Return what an Instance wants of git.

    Args:
        instance: what the folder says.
        environ: the variables that `.env` has filled.

    Raises:
        StepFailed: a token is one that no git host can be sent.
    """
    credentials = instance.config.git.credentials
    pushes = any(
        effect.kind == "push"
        for workflow in instance.workflows
        for effect in workflow.parts.effects
    )
    return GitWants(
        tokens=tokens.read_tokens(
            credentials, environ, clones=instance.composes_sandbox, pushes=pushes
        ),
        urls=needs.ssh_urls(instance.workflows, credentials),
        uses=needs.key_uses(instance.workflows, credentials),
    )


def named_secrets(credentials: Sequence[GitCredential]) -> frozenset[str]:
    """Return the Secrets that `git.credentials` names and a person keeps."""
    return frozenset(secret for _, secret in secret_fields(credentials))


def secret_fields(credentials: Sequence[GitCredential]) -> tuple[tuple[str, str], ...]:
    """Return each Secret that `git.credentials` names, after the field that names it."""
    found: list[tuple[str, str]] = []
    for index, entry in enumerate(credentials):
        fields: dict[str, Any] = {
            "ssh_key": entry.ssh_key,
            "push.ssh_key": None if entry.push is None else entry.push.ssh_key,
            "sign.ssh_key": None if entry.sign is None else entry.sign.ssh_key,
            "sign.gpg_key": None if entry.sign is None else entry.sign.gpg_key,
        }
        found += [
            (f"git.credentials[{index}].{path}", name)
            for path, name in fields.items()
            if name is not None
        ]
    return tuple(found)
