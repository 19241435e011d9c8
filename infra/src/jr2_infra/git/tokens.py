"""The tokens of `git.credentials`: one Secret for each entry whose variable is set.

The name of a Secret follows from the entry's `match`, so a token that is renewed replaces the one
that was there, and the Secret of an entry that is gone goes with it. Without a Machine that makes a
Sandbox there is no Repo cache to read a token, so none is written. A variable that is not set gives
no Secret: the cluster clones with no credential, and the Repo shows the error of its git host.

Source: seed 003 (Use a token over https), spec/converge.md §5.4 and §9.2, ADR-0051, ADR-0149.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from jr2 import names
from jr2.config import GitCredential
from jr2.git_credentials import clone_secret, push_secret

from .. import headers
from ..closed_list import SECRET
from ..components.base import encoded, instance_labels, wanted

Use = Literal["clone", "push"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GitToken:
    """The token of one entry.

    Args:
        match: the entry's `match`.
        use: what the cluster spends it on.
        value: the token; never shown.
    """

    match: str
    use: Use
    value: str = field(repr=False)

    @property
    def secret(self) -> str:
        """The name of its Secret."""
        return (clone_secret if self.use == "clone" else push_secret)(self.match)

    @property
    def line(self) -> str:
        """What is said of it in each run."""
        return f'git.credentials "{self.match}": {self.use} Secret {self.secret}'


def read_tokens(
    credentials: Sequence[GitCredential],
    environ: Mapping[str, str],
    *,
    clones: bool,
    pushes: bool,
) -> tuple[GitToken, ...]:
    """Return the tokens that the cluster gets, in the order of the config.

    Of two entries with one `match` only the first ever matches, so only its token is read.

    Args:
        credentials: the config's `git.credentials`.
        environ: the variables that `.env` has filled.
        clones: some registered Machine makes a Sandbox.
        pushes: some Workflow pushes.

    Raises:
        StepFailed: a token is one that no git host can be sent; its value is not shown.
    """
    found: list[GitToken] = []
    seen: set[str] = set()
    for index, entry in enumerate(credentials):
        if entry.match in seen:
            continue
        seen.add(entry.match)
        uses: list[tuple[Use, str, str]] = []
        if clones and entry.token is not None:
            uses.append(("clone", "token", entry.token))
        if pushes and entry.push is not None and entry.push.token is not None:
            uses.append(("push", "push.token", entry.push.token))
        for use, path, variable in uses:
            value = environ.get(variable)
            if not value:
                continue
            _check(f"git.credentials[{index}].{path}", variable, value)
            found.append(GitToken(match=entry.match, use=use, value=value))
    return tuple(found)


def token_secret(instance: str, namespace: str, token: GitToken) -> dict[str, Any]:
    """Return the wanted Secret of a token."""
    return wanted(
        SECRET,
        token.secret,
        namespace=namespace,
        labels=instance_labels(instance),
        type="Opaque",
        data=encoded(
            {names.KEY_GIT_USERNAME: names.GIT_USERNAME, names.KEY_GIT_PASSWORD: token.value}
        ),
    )


def _check(path: str, variable: str, value: str) -> None:
    if not headers.can_carry(value):
        raise headers.uncarried(f"{path}: {variable}", f" — correct {variable} in .env (ADR-0051)")
