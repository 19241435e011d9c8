"""A preview says what a converge would heal, also what the API takes only in two steps."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jr2 import names
from jr2_infra import closed_list
from tests.apiserver.derived.conftest import versions
from tests.apiserver.derived.converged import Converged
from tests.apiserver.server import ApiServer

NAME = "healings"


@pytest.fixture(scope="module")
def converged(api_server: ApiServer) -> Iterator[Converged]:
    with Converged(api_server, NAME) as made:
        api_server.add_namespace(NAME, {names.LABEL_INSTANCE: NAME})
        made.heal(made.look())
        yield made


@pytest.mark.parametrize(("field", "value"), [("port", 77), ("protocol", "SCTP")])
def test_a_port_that_somebody_changed_is_in_a_preview(
    converged: Converged, field: str, value: object
) -> None:
    path = closed_list.SERVICE.path(NAME, names.ORCHESTRATOR)
    edit = [{"op": "replace", "path": f"/spec/ports/0/{field}", "value": value}]
    response = converged.http.patch(
        path,
        params={"fieldManager": "theirs"},
        json=edit,
        headers={"Content-Type": "application/json-patch+json"},
    )
    assert response.is_success, response.text

    look = converged.look()

    assert (
        f"drift: Service {names.ORCHESTRATOR} in {NAME}: spec.ports was changed by theirs — set back"
        in look.plan.drift
    )
    before = versions(converged.server, NAME)
    service = f"service-{names.ORCHESTRATOR}"
    assert converged.preview(look) == {f"nothing-more-{service}": "create", service: "update"}
    assert versions(converged.server, NAME) == before
    converged.heal(look)
    assert converged.look().verdict() == {}


def test_an_object_that_is_deleted_and_made_again_is_in_a_preview(converged: Converged) -> None:
    """The API refuses the other value as long as the object is there."""
    path = closed_list.ROLE_BINDING.path(NAME, names.ORCHESTRATOR)
    other = converged.api.get(path)
    assert other is not None
    other["roleRef"]["name"] = "theirs"
    for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        other["metadata"].pop(name, None)
    converged.server.remove(path)
    converged.server.post(path.rpartition("/")[0], other)

    look = converged.look()

    binding = f"rolebinding-{names.ORCHESTRATOR}"
    assert converged.preview(look) == {f"nothing-more-{binding}": "create", binding: "create"}
    converged.heal(look)
    assert converged.look().verdict() == {}
