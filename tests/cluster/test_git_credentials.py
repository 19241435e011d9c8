"""Git credentials against a real cluster: the menu on a real terminal, and what lands where.

The tests stand in the order in which a person meets them, on one Instance.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jr2 import git_credentials, names
from jr2_infra.git import keys
from tests.waiting import wait_for

from .conftest import BIN, CONTEXT, Instance
from .terminal import TerminalSession

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

HERE = Path(__file__).parent
KEYS = HERE.parent / "cases" / "ssh_keys"
NAME = "git-creds"
TOKEN = "CANARY-token-0123456789"
CONFIG = """\
import os

from jr2 import Config, Git, GitCredential, GitSign

config = Config(
    name="git-creds",
    git=Git(
        credentials=[
            GitCredential(
                match="git.example/you/",
                token="GIT_TOKEN",
                ssh_key="deploy",
                sign=GitSign(ssh_key="signing", name="jr2", email="jr2@git.example"),
            ),
            GitCredential(match="*"),
        ],
    ),
)
"""
URL, OTHER = "git@git.example:you/docs.git", "ssh://git.example/tools/all"
MENU = f"""\
{URL} bind over ssh and the "deploy" Secret their git.credentials entry names does not exist.
  whichever key you pick lands in a Secret in namespace "{NAME}" — readable by anyone with
  Secret read there, and at rest in etcd. A deploy key leaks read access to the repos you
  register it on; a personal key leaks everything it can reach.
where should the git ssh key come from?
❯ generate a fresh in-cluster deploy keypair (recommended — one registration per repo)
  use %(home)s/.ssh/id_locked
  use %(home)s/.ssh/id_plain
  use another local key (type a path)
  paste a private key (input hidden)
  (↑/↓ move · enter selects · esc cancels)
"""
UNPICKED = (
    f'error: {URL} bind over ssh and need the "deploy" Secret — re-run and pick a key source, '
    f"create the Secret yourself (kubectl -n {NAME} create secret generic deploy "
    "--from-file=identity=<path>), or bind the urls over https (+ a token in git.credentials)"
)
NO_KEY = (
    f"{OTHER} is an ssh url and no git.credentials entry names a key for it — its cache clone will "
    "fail unless the host allows anonymous ssh"
)
UNSIGNED = (
    f'warning: git.credentials "git.example/you/": the Secret "signing" does not exist in namespace '
    f"{NAME} — a push that needs it is refused at provision until it exists and jr2 up runs again "
    "(ADR-0051)"
)
CLONE = git_credentials.clone_secret("git.example/you/")
CLONE_LINE = f'git.credentials "git.example/you/": clone Secret {CLONE}'
CONVERGED = "converged — `jr2 run <workflow>` when ready"


@pytest.fixture(scope="module")
def instance(
    new_instance: Callable[[str], Instance], depart: Callable[[Instance], None]
) -> Iterator[Instance]:
    made = new_instance(NAME)
    (made.folder / "workflows" / "ping.py").unlink()
    made.write("workflows/pusher.py", (HERE / "workflows" / "pusher.py").read_text())
    made.write("jr2_config.py", CONFIG)
    made.write(".env", f"GIT_TOKEN={TOKEN}\n")
    made.kubectl("create", "namespace", NAME)
    made.kubectl("label", "namespace", NAME, f"{names.LABEL_INSTANCE}={NAME}")
    yield made
    depart(made)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home folder of a person with two keys; their tools and kubeconfig are elsewhere."""
    folder = tmp_path_factory.mktemp("home")
    (folder / ".ssh").mkdir()
    (folder / ".ssh" / "id_plain").write_bytes((KEYS / "rsa").read_bytes())
    (folder / ".ssh" / "id_locked").write_bytes((KEYS / "ed_pw").read_bytes())
    (folder / ".ssh" / "id_plain.pub").write_text("ssh-rsa AAAA you\n")
    return folder


def on_terminal(instance: Instance, home: Path, *arguments: str) -> TerminalSession:
    real = Path(os.environ.get("HOME", "/root"))
    environment = instance.environment()
    environment.setdefault("XDG_CACHE_HOME", str(real / ".cache"))
    environment.setdefault("KUBECONFIG", str(real / ".kube" / "config"))
    environment["HOME"] = str(home)
    return TerminalSession(
        [str(BIN / "jr2"), "up", "--context", CONTEXT, *arguments],
        cwd=instance.folder,
        env=environment,
    )


def secrets_of(instance: Instance) -> dict[str, dict[str, str]]:
    """Return the Secrets of the namespace, decoded."""
    return {
        item["metadata"]["name"]: {
            key: base64.b64decode(value).decode() for key, value in item.get("data", {}).items()
        }
        for item in instance.get("secrets")["items"]
    }


def test_with_no_terminal_nothing_is_picked_and_nothing_written(instance: Instance) -> None:
    done = instance.jr2("up", "--context", CONTEXT, code=1)

    assert done.stderr.splitlines()[-6:] == [
        *MENU.splitlines()[:4],
        "where should the git ssh key come from? — not a tty; pass --yes to take the recommended "
        "option non-interactively",
        UNPICKED,
    ]
    assert NO_KEY in done.stderr.splitlines()
    assert UNSIGNED in done.stderr.splitlines()
    assert secrets_of(instance) == {}


def test_escape_picks_none(instance: Instance, home: Path) -> None:
    terminal = on_terminal(instance, home)
    terminal.wait_for("esc cancels)\n")
    assert MENU % {"home": home} in terminal.plain()
    terminal.type("\x1b")

    assert terminal.ended() == 1
    assert terminal.plain().splitlines()[-1] == UNPICKED
    assert secrets_of(instance) == {}


def test_an_interrupt_in_the_menu_applies_nothing(instance: Instance, home: Path) -> None:
    terminal = on_terminal(instance, home)
    terminal.wait_for("esc cancels)\n")
    os.killpg(terminal.pid, 2)

    assert terminal.ended() == 130
    assert terminal.plain().splitlines()[-1] == "interrupted — nothing was applied"
    assert secrets_of(instance) == {}


def test_a_key_with_a_passphrase_is_refused(instance: Instance, home: Path) -> None:
    terminal = on_terminal(instance, home)
    terminal.wait_for("esc cancels)\n")
    terminal.type("\x1b[B\r")

    assert terminal.ended() == 1
    assert terminal.plain().splitlines()[-1] == (
        f"error: refusing the key from {home}/.ssh/id_locked: it is passphrase-protected. The "
        "in-cluster clone runs unattended and cannot answer a passphrase, and jr2 will not store a "
        "decrypted copy — use an unencrypted key, or let jr2 generate a deploy key"
    )
    assert secrets_of(instance) == {}


def test_generate_waits_makes_the_secret_and_reminds(instance: Instance, home: Path) -> None:
    terminal = on_terminal(instance, home)
    terminal.wait_for("esc cancels)\n")
    terminal.type("\r")
    terminal.wait_for("then press enter to continue: ")
    # It waits, and nobody else has to: no Lease is held and nothing is written.
    assert secrets_of(instance) == {}
    assert instance.get("leases")["items"] == []
    terminal.type("\r")

    assert terminal.ended() == 0, terminal.plain()
    lines = terminal.plain().splitlines()
    secrets = secrets_of(instance)
    pair = keys.read_key(secrets["deploy"]["identity"], "the cluster")
    public = pair.public
    assert secrets["deploy"] == {"identity": pair.private, "identity.pub": f"{public}\n"}
    at = lines.index(
        f"generated deploy key {pair.fingerprint} — register this PUBLIC key (read access):"
    )
    assert lines[at + 1] == f"  {public}"
    assert lines[-5:] == [
        CONVERGED,
        'git ssh: a deploy key was generated into "deploy" this converge and nothing has registered '
        "it yet:",
        f"  {public}",
        f"  until it is registered, {URL} will not sync (the Orchestrator serves anyway)",
        "  the cache agent retries on its own — `jr2 status` reports each Repo's last error per node",
    ]
    assert lines.index(CLONE_LINE) < next(
        i for i, line in enumerate(lines) if line.startswith("orchestrator: applying")
    )
    assert secrets[CLONE] == {"username": "x-access-token", "password": TOKEN}
    assert TOKEN not in terminal.plain()
    assert pair.private.splitlines()[1] not in terminal.plain()


def test_again_asks_nothing_and_is_proved(
    instance: Instance, home: Path, pulumi_must_not_run: dict[str, str]
) -> None:
    done = instance.jr2("up", "--context", CONTEXT, environment=pulumi_must_not_run)

    lines = done.stderr.splitlines()
    assert lines[-1] == CONVERGED
    assert CLONE_LINE in lines
    assert NO_KEY in lines
    assert "drift" not in done.stderr
    assert "ssh key come from" not in done.stderr


def test_the_person_owns_the_key_from_then_on(
    instance: Instance, pulumi_must_not_run: dict[str, str]
) -> None:
    theirs = base64.b64encode(b"theirs\n").decode()
    instance.kubectl(
        "-n", NAME, "patch", "secret", "deploy", "--type", "merge",
        "-p", json.dumps({"data": {"identity": theirs, "known_hosts": theirs}}),
    )  # fmt: skip
    said = instance.jr2("up", "--context", CONTEXT, environment=pulumi_must_not_run).stderr

    assert said.splitlines()[-1] == CONVERGED
    assert secrets_of(instance)["deploy"]["identity"] == "theirs\n"


def test_a_token_is_renewed_and_goes_and_stands_nowhere_else(instance: Instance) -> None:
    instance.write(".env", "GIT_TOKEN=CANARY-renewed\n")
    said = instance.up()
    assert secrets_of(instance)[CLONE]["password"] == "CANARY-renewed"
    assert "CANARY" not in said

    everything = instance.kubectl(
        "-n", NAME, "get", "all,configmaps,events,leases,roles,serviceaccounts", "-o", "yaml",
        "--show-managed-fields",
    )  # fmt: skip
    plain = b"CANARY-renewed"
    for text in (plain.decode(), base64.b64encode(plain).decode()):
        assert text not in everything
    for item in instance.get("secrets", "--show-managed-fields")["items"]:
        item.pop("data", None)
        assert "CANARY" not in json.dumps(item)

    # A push to a bound url needs its token; without the push the Secret just goes.
    instance.write(".env", "")
    assert (
        'the push of Repo Slot "app" (https://git.example/you/app.git): git.credentials entry '
        '"git.example/you/" cannot push — its token\'s variable GIT_TOKEN is not set — set it in '
        ".env (ADR-0051)"
    ) in instance.up(code=1)
    workflow = (HERE / "workflows" / "pusher.py").read_text()
    instance.write(
        "workflows/pusher.py", workflow.replace('"https://git.example', '"https://other')
    )
    instance.write("jr2_config.py", CONFIG.replace('match="*"', 'match="*", token="OTHER_TOKEN"'))
    instance.write(".env", "OTHER_TOKEN=CANARY-other\n")
    said = instance.up()
    assert CLONE not in secrets_of(instance)
    star = git_credentials.clone_secret("*")
    assert secrets_of(instance)[star]["password"] == "CANARY-other"
    assert "is gone" not in said


def test_yes_takes_a_fresh_key_and_a_local_key_is_copied(instance: Instance, home: Path) -> None:
    instance.kubectl("-n", NAME, "delete", "secret", "deploy")
    terminal = on_terminal(instance, home)
    terminal.wait_for("esc cancels)\n")
    terminal.type("jj\r")
    assert terminal.ended() == 0, terminal.plain()
    rsa = (KEYS / "rsa").read_text()
    pair = keys.read_key(rsa, "there")
    assert secrets_of(instance)["deploy"]["identity"] == rsa
    lines = terminal.plain().splitlines()
    assert f'git ssh: "deploy" takes the key {pair.fingerprint} from {home}/.ssh/id_plain' in lines
    # Whoever gave the key has registered it: nothing is left to say.
    assert lines[-1] == CONVERGED

    instance.kubectl("-n", NAME, "delete", "secret", "deploy")
    said = instance.up().splitlines()
    assert said[-5] == CONVERGED
    fresh = secrets_of(instance)["deploy"]
    assert f"  {fresh['identity.pub'].rstrip()}" in said
    assert "ssh key come from" not in "\n".join(said)


def test_a_pasted_key_is_shown_to_nobody(instance: Instance, home: Path) -> None:
    instance.kubectl("-n", NAME, "delete", "secret", "deploy")
    terminal = on_terminal(instance, home)
    terminal.wait_for("esc cancels)\n")
    terminal.type("5\r")
    terminal.wait_for("(input hidden):")
    text = (KEYS / "ed").read_text()
    terminal.type(text.replace("\n", "\r"))
    assert terminal.ended() == 0, terminal.plain()

    assert secrets_of(instance)["deploy"]["identity"] == text
    assert text.splitlines()[1] not in terminal.plain()


def test_ssh_takes_what_lands_in_the_secret(instance: Instance, tmp_path: Path) -> None:
    identity = tmp_path / "identity"
    identity.write_text(secrets_of(instance)["deploy"]["identity"])
    identity.chmod(0o600)
    done = subprocess.run(
        ["ssh-keygen", "-y", "-P", "", "-f", str(identity)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    public = secrets_of(instance)["deploy"]["identity.pub"]
    assert done.stdout.split()[:2] == public.split()[:2]


def test_a_fresh_key_that_was_not_kept_is_named(instance: Instance) -> None:
    instance.kubectl("-n", NAME, "delete", "secret", "deploy")
    held = len(secrets_of(instance))
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few"},
        "spec": {"hard": {"count/secrets": str(held)}},
    }
    instance.kubectl("-n", NAME, "apply", "-f", "-", stdin=json.dumps(quota))
    wait_for(
        "the quota is counted",
        lambda: instance.get("resourcequota", "few").get("status", {}).get("used"),
    )
    try:
        lines = instance.up(code=1).splitlines()
    finally:
        instance.kubectl("-n", NAME, "delete", "resourcequota", "few")

    (generated,) = (line for line in lines if line.startswith("generated deploy key "))
    fingerprint = generated.split()[3]
    (lost,) = (line for line in lines if line.startswith("warning: git ssh: "))
    assert lost == (
        f"warning: git ssh: the deploy key {fingerprint} was not kept — the converge ended before "
        'it made the "deploy" Secret; remove it at your git host if you registered it, the next '
        "run makes another"
    )
    assert "exceeded quota" in "\n".join(lines[lines.index(lost) + 1 :])
    assert "deploy" not in secrets_of(instance)
