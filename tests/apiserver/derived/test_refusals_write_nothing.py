"""Every refusal of steps 1 to 7 leaves each object of the cluster as it was.

The Instance's objects stand on a real API server. Each case makes one thing wrong, runs `jr2 up`
and reads the resourceVersion of every object again. A gateway notes what went over the wire, so a
write that stores the same object again is seen too.

Source: design §5.1.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from jr2 import names
from tests.apiserver.conftest import Instance, NewInstance
from tests.apiserver.derived.conftest import apply_all, versions, wanted_objects, world_of
from tests.apiserver.gateway import Gateway, gateway
from tests.apiserver.server import ApiServer
from tests.unit.infra.machine_folders import CONFIG, PARTS, workflow
from tests.unit.infra.test_machine_refusals import CASES as OPEN_PARTS
from tests.unit.infra.test_machine_refusals import NO_LINE
from tests.waiting import wait_for

NAME = "kept"


class Site:
    """An Instance, its cluster, and the gateway between them."""

    def __init__(self, instance: Instance, server: ApiServer, between: Gateway) -> None:
        self.instance = instance
        self.server = server
        self.gateway = between

    @property
    def folder(self) -> Path:
        """The Instance's folder."""
        return self.instance.folder

    def write(self, path: str, text: str) -> None:
        """Write a file of the folder."""
        self.instance.write(path, text)

    def edit(self, path: str, old: str, new: str) -> None:
        """Change a file of the folder."""
        text = (self.folder / path).read_text()
        assert old in text
        self.write(path, text.replace(old, new))

    def machine(self, body: str) -> None:
        """Register a Machine as the Workflow `w`."""
        self.write("jr2_config.py", CONFIG)
        self.write("workflows/_parts.py", PARTS)
        self.write("workflows/w.py", workflow(body))


def _nothing(site: Site) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One thing that is wrong.

    Args:
        said: words of the refusal.
        wrong: makes it wrong.
        arguments: what is typed after `jr2 up`; the context and `--yes` when not given.
        kubeconfig: a text instead of the gateway's kubeconfig.
    """

    said: str
    wrong: Callable[[Site], None] = _nothing
    arguments: tuple[str, ...] = ("--context", "tests", "--yes")
    kubeconfig: str | None = None


def _open(name: str) -> Case:
    body, lines = {**OPEN_PARTS, **NO_LINE}[name]
    return Case(said=lines[0], wrong=lambda site: site.machine(body))


def _answers(path: str, body: Mapping[str, object]) -> Callable[[Site], None]:
    def wrong(site: Site) -> None:
        site.gateway.answer = lambda method, asked: dict(body) if asked == path else None

    return wrong


def _owned_by_another(site: Site) -> None:
    site.server.patch(
        "/api/v1/namespaces/other", {"metadata": {"labels": {names.LABEL_INSTANCE: "somebody"}}}
    )


def _going(site: Site) -> None:
    space = "/api/v1/namespaces/going"
    if site.server.get(space) is None:
        site.server.add_namespace("going", {names.LABEL_INSTANCE: NAME})
        held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
        site.server.post(f"{space}/configmaps", held)
        site.server.remove(space)
    # The controller takes away what nobody holds, and says what is left, before anything is read.
    wait_for("it is held", lambda: _is_held(site))


def _is_held(site: Site) -> bool:
    found = site.server.get("/api/v1/namespaces/going")
    account = site.server.get("/api/v1/namespaces/going/serviceaccounts/default")
    return account is None and any(
        one["type"] == "NamespaceFinalizersRemaining" and one["status"] == "True"
        for one in found["status"].get("conditions") or []
    )


def _guarded(site: Site) -> None:
    if site.server.get("/api/v1/namespaces/guarded") is None:
        labels = {names.LABEL_INSTANCE: NAME, "pod-security.kubernetes.io/enforce": "restricted"}
        site.server.add_namespace("guarded", labels)
    site.machine("wrap(body())")


def _without(path: str) -> Callable[[Site], None]:
    return lambda site: (site.folder / path).unlink()


def _linked(site: Site) -> None:
    (site.folder / "workflows" / "outside.txt").symlink_to("/etc/hostname")


def _moved_away(site: Site) -> None:
    (site.folder / ".venv").rename(site.folder / ".away")


def _two_locks(site: Site) -> None:
    shutil.copy(site.folder / "uv.lock", site.folder / "poetry.lock")


CASES: dict[str, Case] = {
    # Step 1 and before: the folder, the Kit, the config, the context.
    "no virtual environment": Case(
        said="does not resolve from",
        wrong=_moved_away,
    ),
    "a config that does not load": Case(
        said="error: ", wrong=lambda site: site.write("jr2_config.py", "config = (\n")
    ),
    "a config without config": Case(
        said='has no "config"', wrong=lambda site: site.write("jr2_config.py", "x = 1\n")
    ),
    "a config of a wrong shape": Case(
        said="jr2_config.py at ",
        wrong=lambda site: site.write(
            "jr2_config.py", "from jr2 import Config\n\nconfig = Config(platforms=3)\n"
        ),
    ),
    "no context": Case(said="error: no kube context", arguments=("--yes",), kubeconfig=""),
    "a context that is not there": Case(
        said='context "nowhere" does not exist', arguments=("--context", "nowhere", "--yes")
    ),
    # Step 2: the typecheck.
    "no checker is named": Case(
        said="has no [tool.jr2] typecheck",
        wrong=lambda site: site.edit("pyproject.toml", 'typecheck = "ty"\n', ""),
    ),
    "an unknown checker": Case(
        said="a [tool.jr2] typecheck that jr2 does not know",
        wrong=lambda site: site.edit("pyproject.toml", '"ty"', '"lint"'),
    ),
    "a checker that is not installed": Case(
        said="this instance's type checker (pyrefly) is missing",
        wrong=lambda site: site.edit("pyproject.toml", '"ty"', '"pyrefly"'),
    ),
    "a Python that the images do not have": Case(
        said="the Kit images run Python",
        wrong=lambda site: site.edit("pyproject.toml", '">=3.11"', '">=3.13"'),
    ),
    "a type error": Case(
        said="refusing: this instance does not typecheck — nothing was built and nothing was "
        "applied",
        # An answer is kept as long as no source changes.
        wrong=lambda site: site.edit("workflows/ping.py", "class Ctx", "# a type error\nclass Ctx"),
    ),
    # Step 3: Workflows, Machines and Charts.
    "a Workflow that does not load": Case(
        said="workflows/w.py did not load — ModuleNotFoundError",
        wrong=lambda site: site.write("workflows/w.py", "import no_such_module"),
    ),
    "syntax of a newer Python": Case(
        said="workflows/w.py did not load — SyntaxError",
        wrong=lambda site: site.write("workflows/w.py", "type Number = int\n"),
    ),
    "a Workflow without a machine": Case(
        said='workflow "w"', wrong=lambda site: site.write("workflows/w.py", "x = 1\n")
    ),
    "a machine that is none": Case(
        said='refusing: workflow "w": `machine` is',
        wrong=lambda site: site.write("workflows/w.py", "machine = 1\n"),
    ),
    "an open Repo Slot": _open("a Repo Slot"),
    "an open Agent": _open("an Agent"),
    "an open Effect": _open("the url of an Effect"),
    "an open part invoked inline": _open("a part of a Machine invoked inline"),
    "a Size that is too small": _open("a Size"),
    "a secret that is not declared": _open("a secret that is not declared"),
    "a push whose token is not set": _open("a push whose token is not set"),
    "an image folder that is not there": Case(
        said="error: the Sandbox Image context ",
        wrong=lambda site: site.machine('wrap(body(), image=context(__file__, "nowhere"))'),
    ),
    "a Chart that does not parse": Case(
        said="does not parse", wrong=lambda site: site.write("charts/ping.mmd", "no chart")
    ),
    "a Chart of no Workflow": Case(
        said="names no Workflow",
        wrong=lambda site: site.write("charts/gone.mmd", "stateDiagram-v2\n"),
    ),
    "a file in the place of the charts": Case(
        said="charts is no folder", wrong=lambda site: site.write("charts", "")
    ),
    # Step 4: the Assembly.
    "no lockfile": Case(said=" has no lockfile", wrong=_without("uv.lock")),
    "two lockfiles": Case(said="more than one package manager", wrong=_two_locks),
    "a Pipfile.lock": Case(
        said="pipenv is not supported", wrong=lambda site: site.write("Pipfile.lock", "{}")
    ),
    "a second copy of a Kit package": Case(
        said="a second copy of",
        wrong=lambda site: site.write("workflows/pydantic/__init__.py", ""),
    ),
    "a link to the outside": Case(said="points outside the Assembly", wrong=_linked),
    "a Workflow that is left out": Case(
        said="refusing: the staged Assembly does not hold the Workflows",
        wrong=lambda site: site.edit(
            "pyproject.toml", "[tool.jr2]\n", '[tool.jr2]\nexclude = ["workflows/ping.py"]\n'
        ),
    ),
    "an exclude that is no list": Case(
        said="tool.jr2.exclude",
        wrong=lambda site: site.edit("pyproject.toml", "[tool.jr2]\n", "[tool.jr2]\nexclude = 1\n"),
    ),
    # Step 5: the API server.
    "an API server that does not answer": Case(
        said="refusing: cannot reach the API server of tests",
        kubeconfig="""
apiVersion: v1
kind: Config
current-context: tests
contexts: [{name: tests, context: {cluster: tests, user: tests}}]
clusters: [{name: tests, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: tests, user: {}}]
""",
    ),
    "a Kubernetes that is too old": Case(
        said="jr2 needs Kubernetes 1.35 or newer",
        wrong=_answers("/version", {"major": "1", "minor": "34", "gitVersion": "v1.34.9"}),
    ),
    # Step 6: the namespace.
    "the namespace of another Instance": Case(
        said='belongs to another instance ("somebody")',
        wrong=_owned_by_another,
        arguments=("--context", "tests", "--yes", "-n", "other"),
    ),
    "a namespace of Kubernetes": Case(
        said='namespace "kube-public" is Kubernetes\' own',
        arguments=("--context", "tests", "--yes", "-n", "kube-public"),
    ),
    "a namespace on its way out": Case(
        said='namespace "going" on tests is being deleted',
        wrong=_going,
        arguments=("--context", "tests", "--yes", "-n", "going"),
    ),
    "a first contact that nobody confirms": Case(
        said="aborted — nothing was changed", arguments=("--context", "tests", "-n", "fresh")
    ),
    "an adoption that nobody confirms": Case(
        said="aborted — nothing was changed", arguments=("--context", "tests", "-n", "plain")
    ),
    "a namespace that lets no pod mount a folder of the node": Case(
        said='enforces the Pod Security Standard "restricted"',
        wrong=_guarded,
        arguments=("--context", "tests", "--yes", "-n", "guarded"),
    ),
    "rights that are missing": Case(
        said="right(s) on tests that this converge needs — docs/rights.md has the Roles",
        wrong=_answers(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"status": {"allowed": False}}
        ),
        arguments=("--context", "tests", "--yes", "-n", "plain"),
    ),
    # Step 7: pod-level resources.
    "a cluster that drops pod-level resources": Case(
        said="drops pod-level resources",
        wrong=_answers(f"/api/v1/namespaces/{NAME}/pods", {"kind": "Pod", "spec": {}}),
    ),
}


@pytest.fixture(scope="module")
def site(
    new_instance: NewInstance, api_server: ApiServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """An Instance whose objects stand on the API server."""
    apply_all(api_server, wanted_objects(world_of(api_server, NAME)))
    api_server.add_namespace("other")
    api_server.add_namespace("plain")
    with gateway(api_server, tmp_path_factory.mktemp("gateway")) as between:
        yield Site(new_instance(NAME), api_server, between)


@pytest.fixture
def clean(site: Site) -> Iterator[Site]:
    """The Site, and its folder afterwards as it was before."""
    before = _files(site.folder)
    site.gateway.requests.clear()
    yield site
    site.gateway.answer = lambda method, path: None
    away = site.folder / ".away"
    if away.exists():
        away.rename(site.folder / ".venv")
    for path in set(_files(site.folder)) - set(before):
        path.unlink()
        if not any(path.parent.iterdir()):
            path.parent.rmdir()
    for path, content in before.items():
        path.write_bytes(content)


def _files(folder: Path) -> dict[Path, bytes]:
    found: dict[Path, bytes] = {}
    for top, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in (".venv", ".away", ".jr2")]
        for path in (Path(top, name) for name in files):
            found[path] = b"" if path.is_symlink() else path.read_bytes()
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_refusal_leaves_every_object_as_it_was(clean: Site, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    kubeconfig = clean.gateway.kubeconfig
    if case.kubeconfig is not None:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(case.kubeconfig)
    case.wrong(clean)
    space = case.arguments[-1] if "-n" in case.arguments else NAME
    before = _written(clean.server, NAME, space)

    done = clean.instance.jr2("up", *case.arguments, code=1, kubeconfig=kubeconfig)

    assert case.said in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert clean.gateway.writes == []
    assert _written(clean.server, NAME, space) == before


def _written(server: ApiServer, *namespaces: str) -> dict[str, str]:
    """Return the versions without a Namespace that goes: its controller writes down what holds it."""
    found = versions(server, *namespaces)
    found.pop("/api/v1/namespaces/going", None)
    return found


def test_a_refusal_of_step_7_leaves_the_namespace_that_step_6_made(
    clean: Site, api_server_without_pod_resources: ApiServer, tmp_path: Path
) -> None:
    """On a server whose gate is off, and on which the Instance is new."""
    server = api_server_without_pod_resources
    with gateway(server, tmp_path) as between:
        said = clean.instance.jr2(
            "up", "--context", "tests", "--yes", code=1, kubeconfig=between.kubeconfig
        ).stderr
    left = versions(server, NAME)

    assert "The namespace was created; nothing else was applied." in said
    assert between.writes == [f"PATCH /api/v1/namespaces/{NAME}"]
    made_by_controllers = {"serviceaccounts/default", "configmaps/kube-root-ca.crt"}
    space = f"/api/v1/namespaces/{NAME}"
    assert space in left
    inside = {path.removeprefix(f"{space}/") for path in left if path.startswith(f"{space}/")}
    assert inside <= made_by_controllers
    assert f"/api/v1/namespaces/{names.SYSTEM_NAMESPACE}" not in left
