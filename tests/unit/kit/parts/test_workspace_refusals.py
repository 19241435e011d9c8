"""`workspace()`: every rule on what it is given, said at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypedDict

import pytest
from pydantic import BaseModel

from jr2 import OPEN, BuildRefused, Context, Machine, Size, UserContainer, context, workspace

if TYPE_CHECKING:
    from .conftest import MakeBody, Wrap

W = 'workspace() of machine "ticket" '


class Other(BaseModel):
    x: int = 0


@pytest.mark.parametrize(
    ("parts", "problems"),
    [
        ({"door": int}, ["has the door <class 'int'>: a door is a pydantic model"]),
        ({"repos": {}}, ["has no Repo Slot: workspace() needs at least one"]),
        (
            {"repos": "https://h/a"},
            ["has repos='https://h/a': give a dict from Repo Slot to url, or OPEN"],
        ),
        (
            {"repos": {"1": "https://h/a", "app": "", "docs": int}},
            [
                "has a Repo Slot '1': it becomes the directory /work/<slot>, so it starts with a "
                "letter and has letters, digits, `.`, `_` and `-` only",
                'has the Repo Slot "app" with an empty url',
                'has the Repo Slot "docs" with an object of type type: give a url, a Binding, OPEN, or a '
                "function of the door",
            ],
        ),
        ({"spec": "main"}, ["has spec='main': give a function of the door"]),
        (
            {"image": "", "effector": 3, "user": UserContainer("~/x", resources=Size(cpu="-1"))},
            [
                "has image='': name an image, or leave it out",
                "has effector=3: name an image, or leave it out",
                "has the image of user='~/x': a folder is named by context(__file__, '~/x'), and "
                "any other text is an image of a registry",
                'has in user: resources.cpu: "-1" is not more than zero — write a positive '
                'quantity, such as "2Gi" or "1500m"',
            ],
        ),
        (
            {"resources": {"limits": {"memory": "4Gb"}}},
            [
                'has resources.memory: "4Gb" is not a Kubernetes quantity — write "4G" or "4Gi"',
            ],
        ),
    ],
)
def test_every_broken_rule_is_said(
    make: MakeBody, wrap: Wrap, parts: dict[str, Any], problems: list[str]
) -> None:
    with pytest.raises(BuildRefused) as refused:
        wrap(make(), **parts)

    assert list(refused.value.problems) == [W + problem for problem in problems]


class Odd(BaseModel):
    call: Callable[[], int]


def test_a_door_without_a_schema_is_refused(make: MakeBody, wrap: Wrap) -> None:
    with pytest.raises(BuildRefused) as refused:
        wrap(make(), door=Odd)

    (problem,) = refused.value.problems
    assert problem.startswith(f"{W}cannot say what the door takes: ")


def test_a_body_with_a_door_of_its_own_is_refused(wrap: Wrap) -> None:
    m = Machine("ticket", door=Other)
    m.state("a", initial=True)

    with pytest.raises(BuildRefused) as refused:
        wrap(m.build())

    assert str(refused.value) == (
        f"{W}is given a body with the door Other of its own, which would never be served: give the "
        "body inside= in place of door="
    )


def test_a_workspace_in_a_workspace_is_refused(make: MakeBody, wrap: Wrap) -> None:
    with pytest.raises(BuildRefused) as refused:
        wrap(wrap(make()))

    assert str(refused.value) == (
        f"{W}is given a workspace(): one Machine has one Sandbox around it"
    )


def test_a_body_of_another_door_is_refused(make: MakeBody, wrap: Wrap) -> None:
    with pytest.raises(BuildRefused) as refused:
        wrap(make(inside=Other))

    assert str(refused.value) == f"{W}has the door Door, and its body is written for Other"


class Ctx(Context):
    pass


class Slots(TypedDict):
    app: PurePosixPath
    docs: PurePosixPath


def slotted() -> Any:
    m = Machine("ticket", inside=Other, slots=Slots, context=Ctx, start=lambda _: Ctx())
    m.state("a", initial=True)
    return m.build()


def test_the_slots_that_a_body_names_are_those_of_its_workspace(wrap: Wrap) -> None:
    with pytest.raises(BuildRefused) as refused:
        wrap(slotted(), door=Other, repos={"doc": "https://h/d"})
    assert str(refused.value) == (
        f"{W}has no Repo Slot app, docs, which its body names (it has: doc)"
    )

    with pytest.raises(BuildRefused) as refused:
        wrap(slotted(), door=Other, repos=OPEN)
    assert str(refused.value) == (
        f"{W}leaves its Repo Slots open, and its body names app, docs: a body of open slots names "
        "none"
    )

    wrap(slotted(), door=Other, repos={"docs": "https://h/d", "app": OPEN, "more": OPEN})


def test_what_is_not_built_is_no_body() -> None:
    with pytest.raises(BuildRefused, match=r"workspace\(\) is given 3: give what .build\(\)"):
        workspace(3, door=Other, repos=OPEN, spec=lambda _: None)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (
            {"inside": int},
            "has inside= <class 'int'>: a door is a pydantic model",
        ),
        (
            {"inside": Other, "door": Other},
            "has a door and inside=: the body of a workspace() has no door of its own",
        ),
        (
            {"slots": Slots},
            f"has slots={Slots!r}: beside inside=, slots= is a TypedDict of Repo Slots",
        ),
        (
            {"inside": Other, "slots": Other},
            f"has slots={Other!r}: beside inside=, slots= is a TypedDict of Repo Slots",
        ),
    ],
)
def test_a_body_of_wrong_parts_is_refused(told: dict[str, Any], text: str) -> None:
    with pytest.raises(BuildRefused) as refused:
        Machine("ticket", context=Ctx, start=lambda _: Ctx(), **told)

    assert str(refused.value) == f'machine "ticket": {text}'


def test_a_user_container_may_be_its_image_alone(make: MakeBody, wrap: Wrap) -> None:
    parts = wrap(make(), user="ghcr.io/you/dev:1").sandbox

    assert parts is not None
    assert parts.user == UserContainer("ghcr.io/you/dev:1")
    assert parts.user_size == {}


def test_an_image_folder_is_a_url_beside_the_module() -> None:
    assert context("/instance/workflows/w.py", "image") == "file:///instance/workflows/image"
    assert context("/instance/workflows/w.py", "../images/x y") == "file:///instance/images/x%20y"
    assert context(__file__, ".") == Path(__file__).parent.resolve().as_uri()
