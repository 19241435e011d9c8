"""`customize`: the same Machine with other parts, and every wrong name said at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jr2 import OPEN, Binding, BuildRefused, Command, Http, Push, Size, UserContainer, customize
from jr2.parts.workspaces import SandboxParts

if TYPE_CHECKING:
    from .conftest import Built, MakeBody, Wrap

URL = "https://github.com/you/app.git"


def sandbox(machine: Built) -> SandboxParts:
    assert machine.sandbox is not None
    return machine.sandbox


def test_an_override_is_layered_and_the_original_stays(make: MakeBody) -> None:
    stock = make(model=OPEN, effects={"tests": Command(argv=["make"], secret=OPEN)})

    made = customize(
        stock,
        agents={"coder": {"model": "local/other", "thinking_level": "low"}},
        effects={"tests": {"secret": "GH_TOKEN"}},
    )

    assert made.agents["coder"].model == "local/other"
    assert made.agents["coder"].instructions == "Fix it."
    assert made.agents["coder"].thinking_level == "low"
    assert made.effects["tests"] == Command(argv=["make"], secret="GH_TOKEN")
    assert stock.agents["coder"].model is OPEN
    assert stock.effects["tests"] == Command(argv=["make"], secret=OPEN)
    assert made is not stock
    assert made.shape() == stock.shape()


def test_the_wrapper_takes_its_own_keys_and_hands_the_others_to_the_body(
    make: MakeBody, wrap: Wrap
) -> None:
    stock = wrap(
        make(model=OPEN),
        repos={"app": lambda door: URL, "docs": URL},
        resources=Size(memory="4Gi", cpu="2"),
        image="ghcr.io/a/b:1",
    )

    made = customize(
        stock,
        agents={"coder": {"model": "local/other"}},
        repos={"app": Binding(URL, "main")},
        image="ghcr.io/a/b:2",
        effector="ghcr.io/a/e:1",
        user=UserContainer("ghcr.io/a/u:1", resources={"limits": {"cpu": "1"}}),
        resources={"limits": {"memory": "8Gi"}},
    )

    parts = sandbox(made)
    assert parts.body.agents["coder"].model == "local/other"
    assert parts.repos == {"app": Binding(URL, "main"), "docs": URL}
    assert (parts.image, parts.effector) == ("ghcr.io/a/b:2", "ghcr.io/a/e:1")
    assert parts.user is not None
    assert (parts.user.image, parts.user_size) == ("ghcr.io/a/u:1", {"cpu": "1"})
    assert parts.resources == (
        ("customize()", {"memory": "8Gi"}),
        ("workspace()", {"memory": "4Gi", "cpu": "2"}),
    )
    assert sandbox(stock).image == "ghcr.io/a/b:1"
    assert sandbox(stock).body.agents["coder"].model is OPEN
    assert made.shape() == stock.shape()


def test_a_run_of_the_new_machine_has_the_new_repos(make: MakeBody, wrap: Wrap) -> None:
    made = customize(wrap(make(), repos={"app": OPEN}), repos={"app": "https://h/other"})

    (command,) = made.start({}, "run-1").commands

    assert command.kind == "start_sandbox"
    assert isinstance(command.input, dict)
    assert command.input["repos"] == {
        "app": {"url": "https://h/other", "ref": None, "per_run": False}
    }


def test_a_composed_machine_is_reached_by_its_slots(make: MakeBody, wrap: Wrap) -> None:
    deep = wrap(make(name="deep", model=OPEN), repos=OPEN)
    stock = wrap(make(children={"review": make(name="review", children={"deep": deep})}))

    made = customize(
        stock,
        actors={
            "review": {
                "agents": {"coder": {"model": "local/r"}},
                "actors": {
                    "deep": {"agents": {"coder": {"model": "local/d"}}, "repos": {"app": URL}}
                },
            }
        },
    )

    review = sandbox(made).body.children["review"]
    assert review.agents["coder"].model == "local/r"
    assert sandbox(review.children["deep"]).body.agents["coder"].model == "local/d"
    assert sandbox(review.children["deep"]).repos == {"app": URL}
    # The chart that runs is made of the same Machines.
    assert made.chart.children["body"].chart is sandbox(made).body.chart
    assert (
        sandbox(made).body.chart.children["review"].chart.children["deep"].chart
        is review.children["deep"].chart
    )


def test_two_customizations_of_one_machine_are_two_machines(make: MakeBody) -> None:
    stock = make(name="coder", model=OPEN)
    parent = make(
        children={
            "left": customize(stock, agents={"coder": {"model": "local/left"}}),
            "right": customize(stock, agents={"coder": {"model": "local/right"}}),
        }
    )

    made = customize(parent, actors={"left": {"agents": {"coder": {"model": "local/other"}}}})

    assert [one.agents["coder"].model for one in parent.children.values()] == [
        "local/left",
        "local/right",
    ]
    assert [one.agents["coder"].model for one in made.children.values()] == [
        "local/other",
        "local/right",
    ]
    assert stock.agents["coder"].model is OPEN


def test_an_empty_customize_gives_an_equal_machine(make: MakeBody, wrap: Wrap) -> None:
    stock = wrap(make())

    assert customize(stock).shape() == stock.shape()


W = 'customize(…) of machine "ticket" '
FIELDS = "model, instructions, description, workspace, thinking_level"
KEYS = "agents, effects, actors, repos, image, effector, user, resources"


@pytest.mark.parametrize(
    ("parts", "problems"),
    [
        (
            {
                "agents": {"coderr": {}, "cod": {"model": "x/y"}},
                "effects": {"tset": {}},
                "actors": {"reviw": {}},
            },
            [
                "names the Agent 'coderr', which it does not have (it has: coder)",
                "names the Agent 'cod', which it does not have (it has: coder)",
                "names the Effect 'tset', which it does not have (it has: tests, hook)",
                "names the composed Machine 'reviw', which it does not have (it has: review)",
            ],
        ),
        (
            {"agents": {"coder": {"modle": "x/y", "cwd": "/"}}, "effects": {"hook": {"argv": []}}},
            [
                f"sets 'modle' of the Agent \"coder\" (its fields: {FIELDS})",
                f"sets 'cwd' of the Agent \"coder\" (its fields: {FIELDS})",
                "sets 'argv' of the Effect \"hook\" (its fields: method, url, headers, secret, "
                "timeout)",
            ],
        ),
        (
            {"agents": {"coder": {"model": "qwen", "instructions": ""}}},
            [
                'has an Agent "coder" with the model \'qwen\', which is not "<provider>/<model id>"',
                'has an Agent "coder" with no instructions',
            ],
        ),
        (
            {"effects": {"hook": {"url": "x"}}},
            ['has an Effect "hook" with a url that is not "https://<host>/<path>"'],
        ),
        (
            {"agents": {"coder": "local/qwen"}, "effects": ["hook"]},
            [
                "gives 'local/qwen' for the Agent \"coder\": give a dict",
                "gives effects=['hook']: give a dict by slot",
            ],
        ),
        (
            {"repos": {"app": URL, "ap": URL, "docs": ""}},
            [
                "names the Repo Slot 'ap', which it does not have (it has: app, docs)",
                'gives the Repo Slot "docs" with an empty url',
            ],
        ),
        ({"repos": URL}, [f"gives repos={URL!r}: give a dict by Repo Slot"]),
        (
            {"image": "./image", "effector": "", "user": 3, "resources": {"requests": {}}},
            [
                "gives image='./image': a folder is named by context(__file__, './image'), and any "
                "other text is an image of a registry",
                "gives effector='': name an image, or leave it out",
                "gives user=3: give an image, or a UserContainer(image, resources=…)",
                "gives resources with requests: every request equals its limit",
            ],
        ),
    ],
)
def test_everything_that_is_wrong_is_said_at_once(
    make: MakeBody, wrap: Wrap, parts: dict[str, Any], problems: list[str]
) -> None:
    machine = wrap(
        make(
            effects={"tests": Command(argv=["make"]), "hook": Http(url="https://h/x")},
            children={"review": make(name="review")},
        ),
        repos={"app": OPEN, "docs": URL},
    )

    with pytest.raises(BuildRefused) as refused:
        customize(machine, **parts)

    assert list(refused.value.problems) == [W + problem for problem in problems]
    assert str(refused.value) == "\n".join(W + problem for problem in problems)


def test_keys_of_a_sandbox_need_one(make: MakeBody) -> None:
    with pytest.raises(BuildRefused) as refused:
        customize(make(), repos={"app": URL}, image="x", resources=Size(cpu="1"))

    assert str(refused.value) == (
        f"{W}gives repos, image, resources, which belong to a Sandbox, and no workspace() is "
        "around it"
    )


def test_a_nested_problem_names_its_own_machine(make: MakeBody) -> None:
    machine = make(children={"review": make(name="review")})
    parts: Any = {"review": {"agents": {"x": {}}, "agent": {}, "user": "u"}, "other": {}}

    with pytest.raises(BuildRefused) as refused:
        customize(machine, actors=parts)

    assert list(refused.value.problems) == [
        f"customize(…) of machine \"review\" has the key 'agent' (keys: {KEYS})",
        'customize(…) of machine "review" gives user, which belong to a Sandbox, and no '
        "workspace() is around it",
        "customize(…) of machine \"review\" names the Agent 'x', which it does not have "
        "(it has: coder)",
        f"{W}names the composed Machine 'other', which it does not have (it has: review)",
    ]


@pytest.mark.parametrize(
    ("repos", "problems"),
    [
        ({}, ["gives no Repo Slot: a Machine whose Repo Slots are open needs at least one"]),
        (OPEN, ["gives repos=OPEN, which binds nothing"]),
        (
            {"a b": URL, "c": 3},
            [
                "gives a Repo Slot 'a b': it becomes the directory /work/<slot>, so it starts with "
                "a letter and has letters, digits, `.`, `_` and `-` only",
                'gives the Repo Slot "c" with an object of type int: give a url, a Binding, OPEN, or a function of the '
                "door",
            ],
        ),
    ],
)
def test_a_composer_names_the_slots_of_an_open_map(
    make: MakeBody, wrap: Wrap, repos: Any, problems: list[str]
) -> None:
    machine = wrap(make(effects={"ship": Push(repo="app")}), repos=OPEN)

    with pytest.raises(BuildRefused) as refused:
        customize(machine, repos=repos)

    assert list(refused.value.problems) == [W + problem for problem in problems]
    assert sandbox(customize(machine, repos={"app": URL})).repos == {"app": URL}


def test_what_is_not_built_cannot_be_customized() -> None:
    with pytest.raises(BuildRefused, match=r"customize\(\) is given 3: give what .build\(\) ret"):
        customize(3)  # type: ignore[call-overload]


def test_an_inline_machine_is_not_reached(make: MakeBody) -> None:
    machine = make(inline={"x": make(name="x")})

    with pytest.raises(BuildRefused, match="names the composed Machine 'inline:x'"):
        customize(machine, actors={"inline:x": {}})
