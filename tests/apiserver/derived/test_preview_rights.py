"""A preview with exactly the Role of docs/rights.md: the plan, and the real engine with its plugin.

The plugin asks the API server what an apply would give, if it may; whoever only reads gets the same
answer from what was read.

Source: design §5.6 and §6.3.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jr2 import names
from jr2.errors import StepFailed
from jr2_infra import access, closed_list
from tests.apiserver.derived.conftest import versions
from tests.apiserver.derived.converged import Converged
from tests.apiserver.server import ApiServer

NAME = "previewed"
VIEWER = {"kind": "User", "name": "viewer", "apiGroup": "rbac.authorization.k8s.io"}


@pytest.fixture
def converged(own_server: ApiServer) -> Iterator[Converged]:
    with Converged(own_server, NAME) as made:
        own_server.add_namespace(NAME, {names.LABEL_INSTANCE: NAME})
        made.heal(made.look())
        yield made


def viewer(server: ApiServer) -> Converged:
    """The same Instance in the eyes of one who may preview it and nothing else."""
    rights = access.manifests("viewer", access.preview(NAME), namespace=NAME, subject=VIEWER)
    for one in rights:
        space = one["metadata"].get("namespace")
        where = f"namespaces/{space}/" if space else ""
        server.post(f"/apis/{one['apiVersion']}/{where}{one['kind'].lower()}s", one)
    server.wait_for_rights(rights)
    return Converged(server, NAME, server.user_kubeconfig("viewer"))


def test_who_may_only_look_sees_each_change_and_changes_nothing(converged: Converged) -> None:
    server = converged.server
    held, images = (
        closed_list.CONFIG_MAP.path(NAME, name) for name in (names.HELD_MAP, names.IMAGES_MAP)
    )
    with viewer(server) as seen:
        look = seen.look()
        assert look.verdict() == {}
        assert seen.preview(look) == {}

        server.remove(held)
        change = '{"data":{"images.json":"theirs"}}'
        server.run_kubectl("-n", NAME, "patch", "configmap", names.IMAGES_MAP, "-p", change)
        before = versions(server, NAME)
        look = seen.look()
        expected = {
            f"configmap-{names.HELD_MAP}": "create",
            f"configmap-{names.IMAGES_MAP}": "update",
        }
        assert look.verdict() == expected
        assert seen.preview(look) == expected

        # What the preview shows, one who may only look cannot do.
        with pytest.raises(StepFailed, match="forbidden"):
            seen.heal(look)

    assert versions(server, NAME) == before
    assert server.get(held) is None
    assert (server.get(images) or {})["data"] == {"images.json": "theirs"}
