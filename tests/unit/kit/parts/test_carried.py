"""The walk over what a Machine composes, and what it asks of Sandboxes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jr2 import OPEN, Binding, Command, Dispatch, Http, HttpFile, Push, Size, Target, UserContainer
from jr2.parts.carried import carried, visits
from jr2.parts.sandbox_rules import placement_refusals, size_refusals, split_of

if TYPE_CHECKING:
    from .conftest import Built, MakeBody, Wrap

URL = "https://github.com/you/app.git"


def test_each_way_to_a_machine_is_walked_and_a_body_adds_nothing_to_it(everything: Built) -> None:
    found = list(visits(everything))

    assert [(one.machine.id, one.path, one.inline) for one in found] == [
        ("ticket", (), False),
        ("ticket", (), False),
        ("review", ("review",), False),
        ("inner", ("review", "deep"), False),
        ("inner", ("review", "deep"), False),
        ("helper", (), True),
    ]
    inner = found[3].machine.sandbox
    assert [one.sandbox is everything.sandbox for one in found] == [True] * 3 + [False] * 2 + [True]
    assert found[4].sandbox is inner


def test_a_machine_carries_each_thing_once(make: MakeBody, wrap: Wrap) -> None:
    effects = {
        "tests": Command(argv=["make"], secret="GH_TOKEN"),
        "hook": Http(url="https://h", secret="HOOK"),
        "ship": Push(repo="app"),
    }
    other = Dispatch(workflow="w", target=Target(url="https://o", secret="GH_TOKEN"))
    machine = wrap(
        make(
            effects=effects,
            children={"review": make(effects=effects), "next": make(effects={"go": other})},
        ),
        repos={"app": URL, "docs": Binding(URL, "main"), "per": lambda door: URL, "left": OPEN},
        image="ghcr.io/a/b:1",
        user=UserContainer("ghcr.io/a/u:1"),
        effector="ghcr.io/a/e:1",
    )

    found = carried(machine)

    assert [slot for slot, _ in found.agents] == ["coder"]
    assert found.models == ("local/qwen",)
    assert [slot for slot, _ in found.effects] == ["tests", "hook", "ship", "go"]
    assert found.secrets == ("GH_TOKEN", "HOOK")
    assert (found.images, found.default_image) == (("ghcr.io/a/b:1",), False)
    assert (found.users, found.effector_images) == (("ghcr.io/a/u:1",), ("ghcr.io/a/e:1",))
    assert found.repos == (Binding(URL), Binding(URL, "main"))
    assert (found.menu_only, found.composes_sandbox, found.pushes) == (False, True, True)
    assert (found.instance_effector, found.sandbox_effector) == (True, True)


def test_a_machine_that_needs_nothing_carries_nothing(make: MakeBody) -> None:
    found = carried(make(model=OPEN, access="none"))

    assert (found.models, found.images, found.repos) == ((), (), ())
    assert (found.menu_only, found.composes_sandbox, found.default_image) == (True, False, False)
    assert (found.instance_effector, found.sandbox_effector, found.pushes) == (False,) * 3


# --- Sizes ----------------------------------------------------------------------------------------
LINE = (
    "; a composer retunes it where the Machine is registered: machine = customize(<import>, "
    'resources={"limits": {"memory": "<memory>"}})'
)


def test_a_size_that_is_large_enough_is_not_refused(make: MakeBody, wrap: Wrap) -> None:
    assert size_refusals("w", wrap(make()), None) == []
    assert size_refusals("w", make(), Size(memory="1Mi")) == []


def test_the_text_gives_each_number_its_source_and_the_field(make: MakeBody, wrap: Wrap) -> None:
    machine = wrap(
        make(effects={"ship": Push(repo="app")}),
        resources=Size(memory="1Gi"),
        user=UserContainer("u", resources=Size(memory="768Mi", cpu="1")),
    )

    assert size_refusals("w", machine, Size(memory="9Gi", cpu="1")) == [
        'workflow "w": the Size leaves the Harness container 128Mi memory and -100m cpu, and it '
        "needs 256Mi and more than 0 cpu: 1Gi/1 (resources.memory of workspace(), "
        "sandbox.resources.cpu) minus Custodian 64Mi/50m (kit), User Container 768Mi/1 "
        "(user.resources), Effector 64Mi/50m (kit); make resources.memory of workspace() and "
        f"sandbox.resources.cpu larger{LINE}"
    ]


def test_the_defaults_of_the_kit_are_made_larger_in_the_config(make: MakeBody, wrap: Wrap) -> None:
    machine = wrap(make(), user=UserContainer("u", resources=Size(memory="2Gi")))

    (text,) = size_refusals("w", machine, None)

    assert text == (
        'workflow "w": the Size leaves the Harness container -64Mi memory and 950m cpu, and it '
        "needs 256Mi and more than 0 cpu: 2Gi/1 (kit) minus Custodian 64Mi/50m (kit), User "
        f"Container 2Gi/0 (user.resources); make sandbox.resources.memory larger{LINE}"
    )


def test_a_composed_size_is_retuned_through_its_slots(make: MakeBody, wrap: Wrap) -> None:
    small = wrap(make(name="small"), resources=Size(memory="100Mi"))
    machine = make(
        children={"a": make(children={"b": small})}, inline={"small": small}, access="none"
    )

    composed, inline = size_refusals("w", machine, None)

    assert composed.startswith(
        'workflow "w" (on the Machine composed as "a" → "b"): the Size leaves the Harness container'
    )
    assert composed.endswith(
        "machine = customize(<import>, "
        'actors={"a": {"actors": {"b": {"resources": {"limits": {"memory": "<memory>"}}}}}})'
    )
    assert inline.endswith("make resources.memory of workspace() larger")


@pytest.mark.parametrize(
    ("effect", "sliced"),
    [
        (Command(argv=["x"]), False),
        (Command(argv=["x"], secret=OPEN), True),
        (Http(url="https://h"), False),
        (HttpFile(url="https://h"), True),
        (Push(repo="app"), True),
        (Dispatch(workflow="w"), False),
    ],
)
def test_an_effector_takes_its_slice_only_where_an_effect_runs_in_it(
    make: MakeBody, wrap: Wrap, effect: object, sliced: bool
) -> None:
    nested = make(effects={"e": effect})
    parts = wrap(make(children={"a": nested})).sandbox
    assert parts is not None

    assert [one.name for one in split_of(parts, None).slices] == [
        "Custodian",
        *(["Effector"] if sliced else []),
    ]


def test_an_effect_of_another_sandbox_takes_no_slice_here(make: MakeBody, wrap: Wrap) -> None:
    inner = wrap(make(effects={"ship": Push(repo="app")}))
    parts = wrap(make(children={"a": inner})).sandbox
    assert parts is not None

    assert [one.name for one in split_of(parts, None).slices] == ["Custodian"]


# --- places ---------------------------------------------------------------------------------------
def test_what_works_in_a_sandbox_needs_one(make: MakeBody) -> None:
    effects = {
        "tests": Command(argv=["make"]),
        "ship": Push(repo="app"),
        "hook": Http(url="https://h"),
    }
    machine = make(effects=effects, children={"a": make(access="read", name="review")})

    assert placement_refusals("w", machine) == [
        'workflow "w": Agent "coder" of machine "ticket" has workspace="write", and no workspace() '
        'is around it — wrap its Machine in workspace(…), or give it workspace="none"',
        'workflow "w": Effect "tests" of machine "ticket" runs in a Sandbox, and no workspace() is '
        "around it — wrap its Machine in workspace(…)",
        'workflow "w": Effect "ship" of machine "ticket" runs in a Sandbox, and no workspace() is '
        "around it — wrap its Machine in workspace(…)",
        'workflow "w" (on the Machine composed as "a"): Agent "coder" of machine "review" has '
        'workspace="read", and no workspace() is around it — wrap its Machine in workspace(…), or '
        'give it workspace="none"',
    ]


def test_a_body_needs_its_workspace(make: MakeBody) -> None:
    from .conftest import Door

    assert placement_refusals("w", make(inside=Door)) == [
        'workflow "w": machine "ticket" is the body of a workspace(), and no workspace() is around '
        "it — give it to workspace(…)"
    ]


def test_a_push_needs_its_slot(make: MakeBody, wrap: Wrap) -> None:
    body = make(children={"a": make(name="inner", effects={"ship": Push(repo="app")})})

    assert placement_refusals("w", wrap(body, repos={"application": URL})) == [
        'workflow "w" (on the Machine composed as "a"): Effect "ship" of machine "inner" pushes '
        'the Repo Slot "app", which its Workspace does not have (it has: application)'
    ]
    assert placement_refusals("w", wrap(body)) == []
    assert placement_refusals("w", wrap(body, repos=OPEN)) == []
    assert placement_refusals("w", make(access="none")) == []
