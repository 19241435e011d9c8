"""The record of what was made: only what a converge made may a converge delete."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from jr2 import names
from jr2_infra import made
from jr2_infra.derived.live import ObjectKey
from jr2_infra.git import GitWants
from jr2_infra.git.tokens import GitToken
from jr2_infra.plan import ConvergePlan
from jr2_infra.resources import KubernetesResource
from tests.unit.infra.converge.conftest import applied

if TYPE_CHECKING:
    from tests.unit.infra.converge.conftest import World

TOKEN = GitToken(match="github.com/you/", use="clone", value="CANARY")
OTHER = GitToken(match="github.com/them/", use="clone", value="CANARY")
CLAIM = ObjectKey("v1", "PersistentVolumeClaim", "demo", names.STATE_CLAIM)


def deleted(plan: ConvergePlan) -> list[str]:
    return [item.key.name for item in plan.differences if item.operation == "delete" and item.key]


def looks_like(token: GitToken, **annotations: str) -> dict[str, Any]:
    """A Secret of somebody's that carries labels, name and `managedFields` of jr2's own."""
    return applied(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": token.secret,
                "namespace": "demo",
                "labels": {
                    names.LABEL_INSTANCE: "demo",
                    names.LABEL_MANAGED_BY: names.MANAGED_BY,
                },
                "annotations": annotations,
            },
            "data": {"a": "eA=="},
        }
    )


def put(world: World, obj: dict[str, Any]) -> None:
    metadata = obj["metadata"]
    world.live[
        ObjectKey(obj["apiVersion"], obj["kind"], metadata["namespace"], metadata["name"])
    ] = obj


def wanting(world: World, *tokens: GitToken) -> World:
    world.wants = world.wanting(git=GitWants(tokens=tokens))
    return world


def test_what_a_converge_made_goes_and_what_looks_like_it_stays(converged: World) -> None:
    wanting(converged, TOKEN).converge()
    put(converged, looks_like(OTHER))

    plan = wanting(converged).plan()

    assert deleted(plan) == [TOKEN.secret]
    assert plan.lines == (
        f"left alone: Secret {OTHER.secret} carries the marks of jr2, and nothing says that a "
        f"converge made it — if nobody needs it: kubectl -n demo delete secret {OTHER.secret}",
    )


def test_what_only_has_the_name_is_not_even_named(converged: World) -> None:
    theirs = looks_like(OTHER)
    theirs["metadata"]["managedFields"] = []
    put(converged, theirs)

    plan = converged.plan()

    assert plan.is_proved
    assert plan.lines == ()


def test_an_object_in_the_place_of_ours_stays_also_with_a_copy_of_its_mark(
    converged: World,
) -> None:
    wanting(converged, TOKEN).converge()
    mark = converged.find("Secret", TOKEN.secret)["metadata"]["annotations"][names.ANNOTATION_MARK]
    put(converged, looks_like(TOKEN, **{names.ANNOTATION_MARK: mark}))

    assert deleted(wanting(converged).plan()) == []


def test_each_object_that_may_go_one_day_is_written_down_and_nothing_else(converged: World) -> None:
    plan = converged.plan()

    assert plan.is_proved
    assert plan.making.is_settled
    ours = {
        f"{item.object['kind']}/{item.object['metadata']['name']}"
        for item in plan.program.resources
        if isinstance(item, KubernetesResource)
        and item.object["metadata"].get("namespace") == "demo"
    }
    assert plan.making.standing.uids.keys() == ours - {f"{CLAIM.kind}/{CLAIM.name}"}
    text = converged.find("Namespace", "demo")["metadata"]["annotations"][names.ANNOTATION_MADE]
    assert json.loads(text)["pending"] == {}


def test_the_record_has_the_marks_only_as_digests_until_their_objects_are_made(
    world: World,
) -> None:
    plan = wanting(world, TOKEN).plan()
    key = ObjectKey("v1", "Secret", "demo", TOKEN.secret)

    mark = plan.making.marks[key]
    assert mark not in plan.making.record.text()
    assert f"Secret/{TOKEN.secret}" in plan.making.record.pending
    assert plan.making.record.uids == {}
    assert len(set(plan.making.marks.values())) == len(plan.making.marks)


class Killed:
    """A converge that wants one more Secret and is killed.

    Args:
        world: the cluster.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.plan = wanting(world, TOKEN).plan()
        world.record(self.plan.making.record)

    def made_the_secret(self) -> None:
        self.world.apply(
            item.object
            for item in self.plan.program.resources
            if isinstance(item, KubernetesResource)
            and item.object["metadata"]["name"] == TOKEN.secret
        )
        # Another run knows no mark of this one.
        self.world.marks = made.Marks()


def test_killed_after_the_secret_it_goes_when_it_is_not_wanted_any_more(converged: World) -> None:
    Killed(converged).made_the_secret()

    plan = wanting(converged).plan()

    assert deleted(plan) == [TOKEN.secret]
    # Its uid is written down first, so that a second kill loses nothing.
    uid = converged.find("Secret", TOKEN.secret)["metadata"]["uid"]
    assert plan.making.record.uids[f"Secret/{TOKEN.secret}"] == uid


def test_killed_after_the_secret_nothing_differs_and_its_uid_is_written_down(
    converged: World,
) -> None:
    Killed(converged).made_the_secret()

    plan = wanting(converged, TOKEN).plan()

    assert plan.differences == ()
    assert not plan.is_proved
    converged.record(plan.making.record)
    assert converged.plan().is_proved


def test_killed_before_the_secret_one_that_somebody_made_meanwhile_stays(converged: World) -> None:
    killed = Killed(converged)
    digest = killed.plan.making.record.pending[f"Secret/{TOKEN.secret}"]
    for forged in ({}, {names.ANNOTATION_MARK: digest}, {names.ANNOTATION_MARK: "0" * 32}):
        put(converged, looks_like(TOKEN, **forged))
        assert deleted(wanting(converged).plan()) == []


def test_killed_before_the_secret_the_record_forgets_it(converged: World) -> None:
    Killed(converged)
    plan = wanting(converged).plan()
    assert plan.differences == ()
    assert plan.making.record.pending == {}
    assert not plan.is_proved


@pytest.mark.parametrize(
    "text", [None, "", "{", "[]", '{"v": 2, "uids": {}}', '{"uids": {"Secret/x": 1}}', '{"own": 1}']
)
def test_without_a_record_that_can_be_read_nothing_goes_and_all_is_written_anew(
    converged: World, text: str | None
) -> None:
    """An Instance of an earlier Kit version, or a record that somebody took away."""
    wanting(converged, TOKEN).converge()
    annotations = converged.find("Namespace", "demo")["metadata"]["annotations"]
    del annotations[names.ANNOTATION_MADE]
    if text is not None:
        annotations[names.ANNOTATION_MADE] = text
    converged.marks = made.Marks()

    plan = wanting(converged).plan()

    assert deleted(plan) == []
    assert any(line.startswith(f"left alone: Secret {TOKEN.secret} ") for line in plan.lines)
    assert {item.operation for item in plan.differences} == {"update", "create"}
    # A mark alone starts no pod again.
    for item in plan.differences:
        if item.key is not None:
            assert {change.path for change in item.fields} == {
                f'metadata.annotations["{names.ANNOTATION_MARK}"]'
            }, item
    assert plan.drift == ()
    assert plan.making.found == text
    converged.converge()
    assert converged.plan().is_proved
    assert deleted(converged.plan()) == []


def test_an_object_without_a_mark_is_marked_and_counts_from_then_on(converged: World) -> None:
    """Its name is wanted, so it is set right as every object is, whoever made it."""
    put(converged, looks_like(TOKEN))
    plan = wanting(converged, TOKEN).plan()
    assert f"Secret/{TOKEN.secret}" in plan.making.record.pending

    converged.converge()

    assert deleted(wanting(converged).plan()) == [TOKEN.secret]


def test_a_mark_that_somebody_took_away_or_changed_is_set_again(converged: World) -> None:
    annotations = converged.find("Secret", names.INSTANCE_SECRET)["metadata"]["annotations"]
    annotations[names.ANNOTATION_MARK] = "theirs"
    assert converged.plan().making.marks[
        ObjectKey("v1", "Secret", "demo", names.INSTANCE_SECRET)
    ] == ("theirs")

    del annotations[names.ANNOTATION_MARK]
    plan = converged.plan()

    assert [item.operation for item in plan.differences] == ["update"]
    assert plan.making.record == plan.making.standing


def test_an_object_that_is_made_anew_is_known_before_and_after(converged: World) -> None:
    name = f"Secret/{names.INSTANCE_SECRET}"
    old = converged.find("Secret", names.INSTANCE_SECRET)
    old["type"] = "kubernetes.io/other"

    plan = converged.plan()

    assert plan.making.record.uids[name] == old["metadata"]["uid"]
    assert name in plan.making.record.pending
    new = copy.deepcopy(old)
    new["metadata"]["uid"] = "new"
    new["metadata"]["annotations"][names.ANNOTATION_MARK] = plan.making.marks[
        ObjectKey("v1", "Secret", "demo", names.INSTANCE_SECRET)
    ]
    put(converged, new)
    after = made.settled(plan.making.record, converged.live, "demo")
    assert after.uids[name] == "new"
    assert after.pending == {}


def test_a_key_of_a_person_is_not_written_down(converged: World) -> None:
    assert "Secret/jr2-git-ssh" not in converged.plan().making.record.text()
    theirs = looks_like(TOKEN)
    theirs["metadata"]["name"] = "jr2-git-ssh"
    put(converged, theirs)
    assert converged.plan().is_proved
