"""Git credentials in the plan: Secrets that come and go, keys that are made once, and warnings."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from jr2_infra.derived.live import ObjectKey
from jr2_infra.git import DeployKey, GitWants
from jr2_infra.git.keys import generate
from jr2_infra.git.needs import KeyUse, SshUrl
from jr2_infra.git.tokens import GitToken
from jr2_infra.resources import KubernetesResource

if TYPE_CHECKING:
    from tests.unit.infra.converge.conftest import World

TOKEN = GitToken(match="github.com/you/", use="clone", value="CANARY")
URL = SshUrl(url="git@github.com:you/app.git", match="github.com/you/", secret="deploy")
KEY = DeployKey(secret="deploy", urls=(URL.url,), pair=generate(), generated=True)


def named(plan: Any) -> dict[str, str | None]:
    return {
        item.key.name: item.operation
        for item in plan.differences
        if item.key is not None and item.key.kind == "Secret"
    }


def secret(**data: str) -> dict[str, Any]:
    return {"data": {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}}


def test_a_token_comes_is_renewed_and_goes(converged: World) -> None:
    converged.wants = converged.wanting(git=GitWants(tokens=(TOKEN,)))
    plan = converged.plan()
    assert named(plan) == {TOKEN.secret: "create"}
    # It is new, and nobody took it away.
    assert plan.drift == ()

    converged.converge()
    assert converged.plan().is_proved
    assert TOKEN.line in converged.plan().standing_lines()

    renewed = GitToken(match=TOKEN.match, use="clone", value="CANARY-2")
    converged.wants = converged.wanting(git=GitWants(tokens=(renewed,)))
    plan = converged.plan()
    assert named(plan) == {TOKEN.secret: "update"}
    assert "CANARY" not in repr(plan.differences)

    converged.wants = converged.wanting()
    assert named(converged.plan()) == {TOKEN.secret: "delete"}


def test_the_lines_stand_before_the_orchestrator(world: World) -> None:
    world.wants = world.wanting(git=GitWants(tokens=(TOKEN,)))
    world.converge()
    lines = world.plan().standing_lines()
    assert lines.index(TOKEN.line) < next(
        index for index, line in enumerate(lines) if line.startswith("orchestrator: applying")
    )


def test_a_secret_of_another_name_is_nobodys_business(converged: World) -> None:
    converged.converge()
    for name in ("jr2-git-ssh", "jr2-git-0123456", "jr2-git-0123456789", "jr2-git-0123ABCD"):
        obj = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": "demo"},
            "data": {},
        }
        converged.apply([obj])
    assert converged.plan().is_proved


def test_a_missing_key_is_named_until_it_is_given_or_there(converged: World) -> None:
    converged.wants = converged.wanting(git=GitWants(urls=(URL,)))
    (missing,) = converged.plan().missing_keys
    assert (missing.secret, missing.urls) == ("deploy", (URL.url,))

    converged.wants = converged.wanting(git=GitWants(urls=(URL,), keys=(KEY,)))
    plan = converged.plan()
    assert plan.missing_keys == ()
    assert named(plan) == {"deploy": "create"}
    (resource,) = (item for item in plan.program.resources if item.name == "secret-deploy")
    assert isinstance(resource, KubernetesResource)
    # A plain `pulumi destroy` leaves the person's key.
    assert resource.retain

    converged.secrets = {"deploy": secret(identity="CANARY")}
    plan = converged.plan()
    assert plan.missing_keys == ()
    # Somebody made it meanwhile: it is not overwritten.
    assert plan.is_proved


def test_a_key_is_made_before_the_operator_and_holds_back_the_instance(world: World) -> None:
    world.wants = world.wanting(git=GitWants(urls=(URL,), keys=(KEY,)))
    resources = {item.name: item for item in world.plan().program.resources}
    order = list(resources)
    assert order.index("secret-deploy") < order.index("deployment-jr2-controller-manager")
    assert "secret-deploy" in resources["secret-jr2-instance"].depends_on


@pytest.mark.parametrize(
    ("wants", "live", "lines"),
    [
        (
            GitWants(urls=(SshUrl(url="git@h:a/b.git", match=None, secret=None),)),
            {},
            [
                "git@h:a/b.git is an ssh url and no git.credentials entry names a key for it — its "
                "cache clone will fail unless the host allows anonymous ssh"
            ],
        ),
        (
            GitWants(urls=(URL,)),
            {"deploy": secret(other="x")},
            [
                'warning: git.credentials "github.com/you/": the Secret "deploy" holds no key '
                "identity — git@github.com:you/app.git cannot be cloned until it does (ADR-0051)"
            ],
        ),
        (GitWants(urls=(URL,)), {"deploy": secret(identity="x")}, []),
        (
            GitWants(uses=(KeyUse(match="*", secret="push", key="identity"),) * 2),
            {},
            [
                'warning: git.credentials "*": the Secret "push" does not exist in namespace demo — '
                "a push that needs it is refused at provision until it exists and jr2 up runs again "
                "(ADR-0051)"
            ],
        ),
        (
            GitWants(
                uses=(
                    KeyUse(match="*", secret="push", key="identity"),
                    KeyUse(match="*", secret="push", key="known_hosts"),
                )
            ),
            {"push": secret(identity="x", known_hosts="")},
            [
                'warning: git.credentials "*": the Secret "push" holds no key known_hosts — a push '
                "that needs it is refused at provision until it exists and jr2 up runs again "
                "(ADR-0051)"
            ],
        ),
    ],
)
def test_what_will_fail_later_is_warned_about_in_each_run(
    converged: World, wants: GitWants, live: dict[str, Any], lines: list[str]
) -> None:
    converged.wants, converged.secrets = converged.wanting(git=wants), live
    assert list(converged.plan().warnings) == lines
    assert converged.plan().is_proved


def test_a_token_is_governed_by_its_name_alone(world: World) -> None:
    world.wants = world.wanting(git=GitWants(tokens=(TOKEN,)))
    world.converge()
    world.wants = world.wanting()
    key = ObjectKey("v1", "Secret", "demo", TOKEN.secret)
    # What jr2 did not apply stays, whatever it is called.
    world.live[key]["metadata"]["managedFields"] = []
    assert named(world.plan()) == {}
