"""The conversation about an ssh key, word for word, with each of its ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jr2.errors import StepFailed
from jr2_infra.git import DeployKey, MissingKey, choose_keys, lost, reminder
from jr2_infra.git.local_keys import find_keys
from tests.unit.infra.git.conftest import Person

CASES = Path(__file__).resolve().parents[3] / "cases" / "ssh_keys"
URL = "git@github.com:you/app.git"
MISSING = MissingKey(secret="github-deploy-key", urls=(URL,))
INTRODUCTION = [
    f'{URL} bind over ssh and the "github-deploy-key" Secret their git.credentials entry names '
    "does not exist.",
    '  whichever key you pick lands in a Secret in namespace "my-instance" — readable by anyone with',
    "  Secret read there, and at rest in etcd. A deploy key leaks read access to the repos you",
    "  register it on; a personal key leaks everything it can reach.",
    "where should the git ssh key come from?",
    "generate a fresh in-cluster deploy keypair (recommended — one registration per repo)",
]
REST = ["use another local key (type a path)", "paste a private key (input hidden)"]


def choose(person: Person, home: Path, *, yes: bool = False) -> DeployKey:
    (key,) = choose_keys(
        [MISSING], namespace="my-instance", yes=yes, home=home, prompter=person, reporter=person
    )
    assert (key.secret, key.urls) == (MISSING.secret, MISSING.urls)
    return key


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".ssh").mkdir()
    for name in ("ed", "ed_pw", "ed.pub"):
        (tmp_path / ".ssh" / name).write_bytes((CASES / name).read_bytes())
    (tmp_path / ".ssh" / "config").write_text("Host *\n")
    (tmp_path / ".ssh" / "folder").mkdir()
    os.mkfifo(tmp_path / ".ssh" / "pipe")
    (tmp_path / ".ssh" / "link").symlink_to(tmp_path / "gone")
    return tmp_path


def test_generate_shows_the_public_half_and_waits(home: Path) -> None:
    person = Person(picks="generate")
    key = choose(person, home)
    assert person.seen == [
        *INTRODUCTION,
        f"use {home}/.ssh/ed",
        f"use {home}/.ssh/ed_pw",
        *REST,
        f"generated deploy key {key.pair.fingerprint} — register this PUBLIC key (read access):",
        f"  {key.pair.public}",
        "register this public key with your git host, then press enter to continue: ",
    ]
    assert key.generated


def test_yes_takes_a_fresh_key_and_asks_nothing(home: Path) -> None:
    person = Person()
    key = choose(person, home, yes=True)
    assert person.seen == [
        f"generated deploy key {key.pair.fingerprint} — register this PUBLIC key (read access):",
        f"  {key.pair.public}",
    ]
    assert key.generated


def test_who_picks_none_gets_the_other_ways(home: Path) -> None:
    with pytest.raises(StepFailed) as raised:
        choose(Person(picks=None), home)
    assert raised.value.printed == (
        f'error: {URL} bind over ssh and need the "github-deploy-key" Secret — re-run and pick a '
        "key source, create the Secret yourself (kubectl -n my-instance create secret generic "
        "github-deploy-key --from-file=identity=<path>), or bind the urls over https (+ a token in "
        "git.credentials)"
    )


@pytest.mark.parametrize(
    ("picks", "says", "where"),
    [
        ("use {home}/.ssh/ed", "", "{home}/.ssh/ed"),
        ("use another", "~/.ssh/ed ", "{home}/.ssh/ed"),
        ("use another", "{home}/.ssh/ed", "{home}/.ssh/ed"),
        ("paste", (CASES / "ed").read_text() + "typed ahead\n", "the pasted text"),
    ],
)
def test_a_key_of_the_person_shows_its_fingerprint_alone(
    home: Path, picks: str, says: str, where: str
) -> None:
    person = Person(
        picks=picks.replace("{home}", str(home)), says=says.replace("{home}", str(home))
    )
    key = choose(person, home)
    assert key.pair.private == (CASES / "ed").read_text()
    assert not key.generated
    assert person.seen[-1] == (
        f'git ssh: "github-deploy-key" takes the key {key.pair.fingerprint} from '
        f"{where.replace('{home}', str(home))}"
    )
    secret = key.pair.private.splitlines()[1]
    assert not any(secret in line for line in person.seen)


@pytest.mark.parametrize(
    ("picks", "says", "text"),
    [
        ("use {home}/.ssh/ed_pw", "", "refusing the key from {home}/.ssh/ed_pw: it is passphrase-"),
        ("use another", "", "cannot read the key .: it is no file. Nothing was applied"),
        ("use another", "~/gone", "cannot read the key {home}/gone: it is no file."),
        ("use another", "~/.ssh/pipe", "cannot read the key {home}/.ssh/pipe: it is no file."),
        ("use another", "/proc/self/mem", "cannot read the key /proc/self/mem: Input/output error"),
        ("use another", "~/large", "cannot read the key {home}/large: it is too large."),
        (
            "use another",
            "~/.ssh/ed.pub",
            "refusing the key from {home}/.ssh/ed.pub: it is a public",
        ),
        ("paste", "", "refusing the key from the pasted text: it is empty. Nothing was applied"),
    ],
)
def test_a_key_of_no_use_ends_the_converge(home: Path, picks: str, says: str, text: str) -> None:
    (home / "large").write_bytes(b"-" * 100_000)
    person = Person(picks=picks.replace("{home}", str(home)), says=says)
    with pytest.raises(StepFailed) as raised:
        choose(person, home)
    assert raised.value.message.startswith(text.replace("{home}", str(home)))


def test_no_folder_has_no_keys(tmp_path: Path) -> None:
    assert find_keys(tmp_path / ".ssh") == ()


def test_a_key_whose_name_no_line_can_show_is_not_offered(tmp_path: Path) -> None:
    header = b"-----BEGIN OPENSSH PRIVATE KEY-----\n"
    (tmp_path / "plain é").write_bytes(header)
    for name in (b"two\nlines", b"\x1b[2Jgone", b"not-utf8-\xff"):
        Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).write_bytes(header)

    assert find_keys(tmp_path) == (tmp_path / "plain é",)


def test_each_missing_secret_is_asked_for(home: Path) -> None:
    person = Person(picks="generate")
    other = MissingKey(secret="gitlab", urls=("git@gitlab:a/b", "git@gitlab:c/d"))
    first, second = choose_keys(
        [MISSING, other], namespace="n", yes=False, home=home, prompter=person, reporter=person
    )
    assert first.pair.private != second.pair.private
    assert person.seen.count(INTRODUCTION[4]) == 2
    assert any(line.startswith("git@gitlab:a/b, git@gitlab:c/d bind over") for line in person.seen)


def test_the_reminder_of_a_fresh_key(home: Path) -> None:
    key = choose(Person(picks="generate"), home)
    assert reminder(key) == (
        'git ssh: a deploy key was generated into "github-deploy-key" this converge and nothing has '
        "registered it yet:",
        f"  {key.pair.public}",
        f"  until it is registered, {URL} will not sync (the Orchestrator serves anyway)",
        "  the cache agent retries on its own — `jr2 status` reports each Repo's last error per node",
    )
    assert lost(key) == (
        f"warning: git ssh: the deploy key {key.pair.fingerprint} was not kept — the converge ended "
        'before it made the "github-deploy-key" Secret; remove it at your git host if you '
        "registered it, the next run makes another"
    )
