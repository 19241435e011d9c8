"""Where the key of an ssh url comes from: the person chooses, once for each Secret that is missing.

Nothing is written here. A key that was chosen is made or read at once, so that one which is of no
use is refused before anything is applied. With `--yes` it is a fresh deploy key; with nobody to ask
the converge ends.

Source: seed 003 (Let jr2 up make the key, Rules), spec/converge.md §9.5, ADR-0047, ADR-0148.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from jr2.errors import StepFailed

from ..report import Prompter, Reporter
from . import keys, local_keys
from .keys import DeployKey, KeyPair
from .needs import MissingKey

QUESTION: Final = "where should the git ssh key come from?"
_GENERATE: Final = (
    "generate a fresh in-cluster deploy keypair (recommended — one registration per repo)"
)
_TYPED: Final = "use another local key (type a path)"
_PASTED: Final = "paste a private key (input hidden)"
_ASK_PATH: Final = "path to the private key: "
_ASK_PASTE: Final = "paste the private key, up to its END line (input hidden):"
_REGISTERED: Final = "register this public key with your git host, then press enter to continue: "
_END: Final = re.compile(r"-----END [A-Z ]*PRIVATE KEY-----\s*")


def choose_keys(
    missing: Sequence[MissingKey],
    *,
    namespace: str,
    yes: bool,
    home: Path,
    prompter: Prompter,
    reporter: Reporter,
) -> tuple[DeployKey, ...]:
    """Return a key for each Secret that is missing.

    Args:
        missing: the Secrets.
        namespace: the Instance's namespace.
        yes: take the recommended source, and ask nothing.
        home: the person's home folder.
        prompter: asks.
        reporter: where the lines go.

    Raises:
        StepFailed: no source was picked, or a key is of no use.
    """
    return tuple(_choose(one, namespace, yes, home, prompter, reporter) for one in missing)


def unanswered(missing: MissingKey, namespace: str) -> StepFailed:
    """Return the error of a Secret that nobody picked a key for."""
    return StepFailed(
        f'{missing.listed} bind over ssh and need the "{missing.secret}" Secret — re-run and pick a '
        f"key source, create the Secret yourself (kubectl -n {namespace} create secret generic "
        f"{missing.secret} --from-file=identity=<path>), or bind the urls over https (+ a token in "
        "git.credentials)"
    )


def reminder(key: DeployKey) -> tuple[str, ...]:
    """Return what is said after `converged` of a key that no git host knows yet."""
    return (
        f'git ssh: a deploy key was generated into "{key.secret}" this converge and nothing has '
        "registered it yet:",
        f"  {key.pair.public}",
        f"  until it is registered, {', '.join(key.urls)} will not sync (the Orchestrator serves "
        "anyway)",
        "  the cache agent retries on its own — `jr2 status` reports each Repo's last error per "
        "node",
    )


def lost(key: DeployKey) -> str:
    """Return the warning of a fresh key whose converge ended before its Secret was made."""
    return (
        f"warning: git ssh: the deploy key {key.pair.fingerprint} was not kept — the converge ended "
        f'before it made the "{key.secret}" Secret; remove it at your git host if you registered '
        "it, the next run makes another"
    )


def _choose(
    missing: MissingKey,
    namespace: str,
    yes: bool,
    home: Path,
    prompter: Prompter,
    reporter: Reporter,
) -> DeployKey:
    if yes:
        return _generated(missing, reporter)
    reporter.line(_introduction(missing, namespace), code="git-ssh")
    found = local_keys.find_keys(home / ".ssh")
    sources: list[tuple[str, Callable[[], tuple[str, str]]]] = [
        *((f"use {path}", _file(path)) for path in found),
        (_TYPED, lambda: _file(local_keys.typed_path(prompter.ask(_ASK_PATH), home))()),
        (_PASTED, lambda: (prompter.ask_hidden(_ASK_PASTE, _END), "the pasted text")),
    ]
    picked = prompter.choose(QUESTION, (_GENERATE, *(text for text, _ in sources)))
    if picked is None:
        raise unanswered(missing, namespace)
    if picked == 0:
        key = _generated(missing, reporter)
        prompter.ask(_REGISTERED)
        return key
    text, where = sources[picked - 1][1]()
    pair = keys.read_key(text, where)
    reporter.line(
        f'git ssh: "{missing.secret}" takes the key {pair.fingerprint} from {where}', code="git-ssh"
    )
    return _key(missing, pair, generated=False)


def _file(path: Path) -> Callable[[], tuple[str, str]]:
    return lambda: (local_keys.read_file(path), str(path))


def _generated(missing: MissingKey, reporter: Reporter) -> DeployKey:
    pair = keys.generate()
    reporter.line(
        f"generated deploy key {pair.fingerprint} — register this PUBLIC key (read access):\n"
        f"  {pair.public}",
        code="git-ssh",
    )
    return _key(missing, pair, generated=True)


def _key(missing: MissingKey, pair: KeyPair, *, generated: bool) -> DeployKey:
    return DeployKey(secret=missing.secret, urls=missing.urls, pair=pair, generated=generated)


def _introduction(missing: MissingKey, namespace: str) -> str:
    return (
        f'{missing.listed} bind over ssh and the "{missing.secret}" Secret their git.credentials '
        "entry names does not exist.\n"
        f'  whichever key you pick lands in a Secret in namespace "{namespace}" — readable by '
        "anyone with\n"
        "  Secret read there, and at rest in etcd. A deploy key leaks read access to the repos you\n"
        "  register it on; a personal key leaks everything it can reach."
    )
