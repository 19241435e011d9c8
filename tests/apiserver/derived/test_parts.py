"""The objects of the parts that come and go, as a real API server keeps them: applied, they are proved."""

from __future__ import annotations

from dataclasses import replace

from jr2_infra.api import Api
from jr2_infra.facts.cluster import read_cluster
from jr2_infra.made import keep, settled
from jr2_infra.parts import PartsWanted
from tests.apiserver.derived.conftest import apply_all, wanted_objects, world_of
from tests.apiserver.server import ApiServer

NAME = "with-parts"


def test_what_was_applied_is_proved_and_nothing_is_more(api_server: ApiServer) -> None:
    world = world_of(api_server, NAME)
    world.refs = replace(world.refs, harness="jr2.local/jr2-harness:0123456789ab")
    world.wants = replace(
        world.wants,
        refs=world.refs,
        parts=PartsWanted(repo_cache=True, instance_harness=True, instance_effector=True),
    )
    making = world.plan().making
    apply_all(api_server, wanted_objects(world))
    with api_server.kube_context().http() as http:
        api = Api(http)
        keep(api, NAME, settled(making.record, read_cluster(api, NAME).live, NAME), over=None)
        world.live = dict(read_cluster(api, NAME).live)
    plan = world.plan()
    assert [item for item in plan.differences if item.key is not None] == []
    assert plan.drift == ()
    assert plan.surplus == ()

    world.wants = replace(world.wants, parts=PartsWanted())
    gone = {item.resource for item in world.plan().differences if item.operation == "delete"}
    assert "surplus:daemonset:jr2-repo-cache" in gone
    assert "surplus:statefulset:jr2-instance-harness" in gone
    assert "surplus:deployment:jr2-instance-effector" in gone
    assert not [name for name in gone if "claim" in name]
