"""A secret value stands in the `data` of its Secret and nowhere else.

Values are planted in each place that the config has for one, and those that jr2 makes itself are
read from the cluster afterwards. While `jr2` runs, the list of programs and every file of its
folders are read again and again; afterwards every object of the API, every log and every line are
searched. The searches are shown to find what does stand there.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from jr2 import git_credentials, names
from jr2_cli.local_cluster import layout
from tests.waiting import LIMIT, wait_for

from ..conftest import CONTEXT, Instance
from .search import SHORTEST, Canaries, Seen, Watcher

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

WORKFLOWS = Path(__file__).parents[1] / "workflows"
NAME: Final = "canary"
IN_MEMORY: Final = Path("/dev/shm")
UP: Final = ("up", "--yes", "--context", CONTEXT)
VARIABLES: Final = ("GIT_TOKEN", "HELD_VALUE", "HARNESS_VALUE")
CONFIG = """\
import os

from jr2 import Config, EnvVar, Git, GitCredential, Harness, Secret

config = Config(
    name="canary",
    git=Git(credentials=[GitCredential(match="git.example/you/", token="GIT_TOKEN")]),
    secrets=[
        Secret(name="HELD", value=os.environ.get("HELD_VALUE"), hosts=["api.held.example"]),
    ],
    harness=Harness(env=[EnvVar(name="LITERAL", value=os.environ.get("HARNESS_VALUE"))]),
)
"""


def planted() -> dict[str, bytes]:
    """Return a value for each variable of `.env`, as nobody else has it."""
    return {name: f"CANARY-{name}-{secrets.token_hex(12)}".encode() for name in VARIABLES}


@dataclass
class Story:
    """What was said and seen while the Instance was converged in many ways."""

    instance: Instance
    values: dict[str, bytes]
    said: list[tuple[str, str]] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)

    def jr2(self, *arguments: str, code: int = 0) -> str:
        """Run `jr2` under the eyes of a watcher, and keep what it said."""
        with self._watched() as watcher:
            done = self.instance.jr2(*arguments, code=code, environment=self._environment)
        assert watcher.rounds > 1
        for stream, text in (("stdout", done.stdout), ("stderr", done.stderr)):
            self.said.append((f"{stream} of jr2 {' '.join(arguments)}", text))
        return done.stderr

    def killed(self, *arguments: str, when: str) -> None:
        """Run `jr2`, kill it when a line came, and keep what it left behind."""
        with self._watched():
            child = self.instance.start(*arguments, environment=self._environment)
            assert child.stderr is not None
            said = ""
            for line in child.stderr:
                said += line
                if when in line:
                    break
            else:
                pytest.fail(f"jr2 never said {when!r}:\n{said}")
            child.send_signal(signal.SIGKILL)
            rest, err = child.communicate(timeout=LIMIT)
        self.said.append((f"a killed jr2 {' '.join(arguments)}", said + rest + err))

    def _watched(self) -> Watcher:
        self.temporary.mkdir(exist_ok=True)
        watcher = Watcher(self.temporary, IN_MEMORY, self.instance.folder / ".jr2")
        self.seen.append(watcher.seen)
        return watcher

    @property
    def temporary(self) -> Path:
        return self.instance.folder.parent / "temporary"

    @property
    def _environment(self) -> dict[str, str]:
        return {"TMPDIR": str(self.temporary)}

    def write_env(self) -> None:
        lines = [f"{name}={self.values[name].decode()}" for name in VARIABLES]
        self.instance.write(".env", "\n".join(lines) + "\n")

    def everywhere_said(self) -> Iterator[tuple[str, bytes | str]]:
        """Yield what jr2 printed, and what was seen while it ran."""
        yield from self.said
        for seen in self.seen:
            yield from seen.everything()


@pytest.fixture(scope="module")
def story(
    new_instance: Callable[[str], Instance], depart: Callable[[Instance], None]
) -> Iterator[Story]:
    """An Instance that was converged, changed by hand, broken, killed and healed."""
    instance = new_instance(NAME)
    (instance.folder / "workflows" / "ping.py").unlink()
    instance.write("workflows/shipper.py", (WORKFLOWS / "shipper.py").read_text())
    instance.write("jr2_config.py", CONFIG)
    told = Story(instance, planted())
    told.write_env()
    try:
        told.jr2("check")
        told.jr2(*UP)
        told.jr2(*UP, "--json")
        told.jr2("status", "--context", CONTEXT)
        told.jr2("version", "--context", CONTEXT)
        told.jr2("runs", "--context", CONTEXT)
        yield told
    finally:
        depart(instance)


def values_of(instance: Instance) -> dict[str, bytes]:
    """Return every value of every Secret of the Instance that is long enough to be searched.

    A public part of a Secret, such as a certificate, is no secret and stands elsewhere too.
    """
    found = {}
    for item in instance.get("secrets")["items"]:
        for key, value in (item.get("data") or {}).items():
            raw = base64.b64decode(value)
            if len(raw) >= SHORTEST and not key.endswith((".crt", ".pub", "username", ".sha256")):
                found[f"{item['metadata']['name']}/{key}"] = raw
    return found


def every_object(instance: Instance) -> list[tuple[str, str]]:
    """Return every object of the cluster as the API gives it, without the data of Secrets."""
    kinds = instance.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    wanted = [kind for kind in kinds if not kind.endswith(".metrics.k8s.io")]
    listed = json.loads(
        instance.kubectl("get", ",".join(wanted), "-A", "--show-managed-fields", "-o", "json")
    )
    found = []
    for item in listed["items"]:
        if item["kind"] == "Secret":
            item.pop("data", None)
        meta = item["metadata"]
        place = f"{item['kind']} {meta.get('namespace', '')}/{meta['name']}"
        found.append((place, json.dumps(item, ensure_ascii=False)))
    return found


def every_log(instance: Instance) -> list[tuple[str, bytes]]:
    """Return the logs of all pods and of the programs of the cluster itself."""
    at = layout.Layout()
    roots = (at.logs, at.pod_logs, Path("/var/log/pods"))
    found = []
    for root in roots:
        for path in root.rglob("*") if root.is_dir() else ():
            # The pods of another Instance go at this time, and their logs with them.
            with contextlib.suppress(FileNotFoundError):
                if path.is_file():
                    found.append((str(path), path.read_bytes()))
    return found


def test_the_searches_find_what_stands_there(story: Story, tmp_path: Path) -> None:
    """Nothing below could fail if the searches were blind."""
    decoy = f"DECOY-{secrets.token_hex(12)}"
    canaries = Canaries({"decoy": decoy.encode()})
    for shift in range(3):
        inside = base64.b64encode(b"x" * shift + decoy.encode() + b"yz")
        assert canaries.found_in(inside) == ["decoy"]
    with Watcher(tmp_path) as watcher:
        file = tmp_path / "deep" / "file"
        file.parent.mkdir()
        file.write_text(json.dumps({"a": decoy}))
        child = subprocess.Popen([sys.executable, "-c", "input()", decoy], stdin=subprocess.PIPE)
        rounds = watcher.rounds
        wait_for("two rounds of the watcher", lambda: watcher.rounds > rounds + 2)
        file.unlink()
        child.communicate(b"\n")
    places = [place for place, content in watcher.seen.everything() if canaries.found_in(content)]
    assert str(file) in places
    assert any(place.startswith("ps: ") for place in places)
    # The values that were planted are in the Secrets, so the config was read and they were used.
    held = {name.partition("/")[0]: value for name, value in values_of(story.instance).items()}
    clone = git_credentials.clone_secret("git.example/you/")
    assert held[clone] == story.values["GIT_TOKEN"]
    assert held[names.HELD_SECRETS] == story.values["HELD_VALUE"]
    assert held[names.HARNESS_ENV_SECRET] == story.values["HARNESS_VALUE"]
    # And the engine's own files were seen: its program and its checkpoint lie there.
    paths = {path for seen in story.seen for path, _ in seen.files}
    assert any("/state/" in path for path in paths), sorted(paths)[:50]


def test_a_value_is_in_no_output_no_file_and_no_argument(story: Story) -> None:
    canaries = Canaries({**story.values, **values_of(story.instance)})

    assert canaries.found_in_all(story.everywhere_said()) == []


def test_a_value_is_in_no_object_and_no_log(story: Story) -> None:
    canaries = Canaries({**story.values, **values_of(story.instance)})

    objects = every_object(story.instance)
    kinds = {place.partition(" ")[0] for place, _ in objects}
    assert {"Secret", "ConfigMap", "Deployment", "Event", "Pod", "Lease", "DaemonSet"} <= kinds
    assert canaries.found_in_all(objects) == []
    logs = every_log(story.instance)
    assert any(names.ORCHESTRATOR in path for path, _ in logs), [path for path, _ in logs]
    assert canaries.found_in_all(logs) == []


def test_a_value_that_changed_by_hand_and_one_that_is_renewed_are_not_shown(story: Story) -> None:
    old = dict(story.values)
    by_hand = f"CANARY-by-hand-{secrets.token_hex(12)}".encode()
    encoded = base64.b64encode(by_hand).decode()
    story.instance.kubectl(
        "-n", NAME, "patch", "secret", names.HELD_SECRETS, "--type=merge", "-p",
        json.dumps({"data": {"HELD": encoded, "MORE": encoded}}),
    )  # fmt: skip
    said = story.jr2(*UP)
    assert f"Secret {names.HELD_SECRETS} in {NAME}" in said
    story.values |= planted()
    story.write_env()
    story.jr2(*UP)

    held = values_of(story.instance)
    assert held[f"{names.HELD_SECRETS}/HELD"] == story.values["HELD_VALUE"]
    renewed = Canaries(
        {**story.values, "by hand": by_hand, **{f"old {name}": old[name] for name in old}}
    )
    assert renewed.found_in_all(story.everywhere_said()) == []
    assert renewed.found_in_all(every_object(story.instance)) == []


def test_a_rollout_that_fails_shows_no_value(story: Story) -> None:
    story.instance.kubectl(
        "-n", NAME, "create", "quota", "no-pods", "--hard=pods=0",
    )  # fmt: skip
    story.values |= planted()
    story.write_env()
    # New values start the Orchestrator's pod anew, which the quota refuses.
    story.instance.kubectl("-n", NAME, "delete", "secret", names.INSTANCE_SECRET)
    try:
        said = story.jr2(*UP, code=1)
    finally:
        story.instance.kubectl("-n", NAME, "delete", "quota", "no-pods")
    assert "exceeded quota: no-pods" in said

    canaries = Canaries({**story.values, **values_of(story.instance)})
    assert canaries.found_in_all(story.everywhere_said()) == []


def test_a_run_that_was_killed_leaves_no_value(story: Story) -> None:
    story.values |= planted()
    story.write_env()
    story.instance.kubectl("-n", NAME, "delete", "secret", names.INSTANCE_SECRET)
    story.killed(*UP, when="orchestrator: waiting for rollout")
    story.jr2(*UP)

    canaries = Canaries({**story.values, **values_of(story.instance)})
    assert canaries.found_in_all(story.everywhere_said()) == []
    assert canaries.found_in_all(every_object(story.instance)) == []
    left = [path for path in story.temporary.rglob("*") if path.is_file()]
    assert canaries.found_in_all((str(path), path.read_bytes()) for path in left) == []


def test_nothing_of_the_folder_but_env_holds_a_value(story: Story) -> None:
    canaries = Canaries({**story.values, **values_of(story.instance)})
    found = [
        place
        for root, _, files in os.walk(story.instance.folder)
        for name in files
        if canaries.found_in((place := Path(root, name)).read_bytes())
    ]
    assert found == [story.instance.folder / ".env"]
