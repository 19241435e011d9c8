"""The program as Pulumi gets it, without an engine."""

from __future__ import annotations

import asyncio
import gc
import importlib
import importlib.metadata
import json
import warnings
from collections.abc import Iterator
from typing import Any

import pulumi
import pytest
from pulumi.runtime import mocks as pulumi_mocks

from jr2_infra import closed_list, program
from jr2_infra.derived import urns
from jr2_infra.resources import Component, DynamicResource, KubernetesResource, Program

CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.jr2.dev", "labels": {"snake_case": "a", "camelCase": "b"}},
    "spec": {
        "versions": [
            {
                "schema": {
                    "openAPIV3Schema": {
                        "x-kubernetes-preserve-unknown-fields": True,
                        "properties": {"snake_case": {"type": "string"}, "camelCase": {}},
                    }
                }
            }
        ]
    },
}
SECRET: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "jr2-instance", "namespace": "demo"},
    "data": {"JR2_TOKEN": "Q0FOQVJZ"},
}
PROGRAM = Program(
    project="jr2",
    stack="demo.0123456789ab",
    components=(Component(name="operator", type="Operator"), Component(name="rest", type="Rest")),
    resources=(
        KubernetesResource(name="crd", object=CRD, component="operator", retain=True),
        KubernetesResource(name="secret", object=SECRET, component="rest", depends_on=("crd",)),
        DynamicResource(
            name="assembly",
            kind="AssemblyPublish",
            inputs={"hash": "b"},
            derived=None,
            component="rest",
            depends_on=("secret",),
        ),
    ),
)


# The SDK holds Outputs that nobody awaits until its mocks are set again: its way, not a fault of ours.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine 'Output:RuntimeWarning")


class Registered(pulumi_mocks.Mocks):  # type: ignore[misc]
    def __init__(self) -> None:
        self.made: dict[str, Any] = {}

    def new_resource(self, args: Any) -> tuple[str, dict[str, Any]]:
        self.made[args.name] = args
        return args.name, args.inputs

    def call(self, args: Any) -> dict[str, Any]:
        raise AssertionError(args.token)


class _Loops(asyncio.DefaultEventLoopPolicy):
    """Remembers each loop that was made: the SDK makes them and closes none."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[asyncio.AbstractEventLoop] = []

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        loop = super().new_event_loop()
        self.made.append(loop)
        return loop


@pytest.fixture
def own_loop() -> Iterator[None]:
    """A loop of the main thread, which the SDK asks for and which another test may have closed."""
    before, loops = asyncio.get_event_loop_policy(), _Loops()
    asyncio.set_event_loop_policy(loops)
    loops.set_event_loop(loops.new_event_loop())
    yield
    for loop in loops.made:
        loop.close()
    asyncio.set_event_loop_policy(before)
    with warnings.catch_warnings():
        # Outputs that nobody awaits are the SDK's way; they must not be told of a later test.
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture
def registered(own_loop: None) -> dict[str, Any]:
    mocks = Registered()
    pulumi.runtime.set_mocks(mocks, project=PROGRAM.project, stack=PROGRAM.stack)

    @pulumi.runtime.test  # type: ignore[untyped-decorator]
    def declare() -> None:
        program.declare(PROGRAM)

    declare()
    return mocks.made


def test_everything_reaches_the_engine_as_it_is_written(registered: dict[str, Any]) -> None:
    assert registered["crd"].inputs == CRD
    assert registered["crd"].typ == ("kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition")
    assert registered["assembly"].inputs == {
        "__provider": urns.provider_constant("AssemblyPublish"),
        "hash": "b",
    }


def test_data_of_a_secret_is_marked_as_secret(registered: dict[str, Any]) -> None:
    inputs = dict(registered["secret"].inputs)
    data = inputs.pop("data")

    assert data["4dabf18193072939515e22adb298388d"] == "1b47061264138c4ac30d75fd1eb44270"
    assert "CANARY" not in json.dumps(inputs)
    assert "Q0FOQVJZ" not in json.dumps(inputs)


@pytest.mark.usefixtures("own_loop")
def test_each_resource_is_a_child_of_its_part_and_waits_for_what_it_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: dict[str, tuple[str, Any]] = {}

    class Resource(pulumi.Resource):  # type: ignore[misc]
        def __init__(self, token: str, name: str, _props: object, opts: Any) -> None:
            self.name = name
            made[name] = token, opts

        def register_outputs(self, outputs: object) -> None:
            assert outputs == {}

    monkeypatch.setattr(pulumi, "ComponentResource", Resource)
    monkeypatch.setattr(pulumi, "CustomResource", Resource)

    program.declare(PROGRAM)

    assert [token for token, _ in made.values()] == [
        "jr2:infra:Operator",
        "jr2:infra:Rest",
        "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition",
        "kubernetes:core/v1:Secret",
        "pulumi-python:dynamic/jr2:AssemblyPublish",
    ]
    facts = {
        name: (
            opts.parent.name,
            [other.name for other in opts.depends_on],
            opts.version,
            opts.retain_on_delete,
            opts.additional_secret_outputs,
        )
        for name, (_, opts) in made.items()
        if opts.parent is not None
    }
    assert facts == {
        "crd": ("operator", [], urns.KUBERNETES_VERSION, True, None),
        "secret": ("rest", ["crd"], urns.KUBERNETES_VERSION, False, ["data", "stringData"]),
        "assembly": ("rest", ["secret"], None, None, None),
    }


def test_the_plugin_is_that_of_the_sdk() -> None:
    assert importlib.metadata.version("pulumi-kubernetes") == urns.KUBERNETES_VERSION


@pytest.mark.parametrize(
    "kind",
    sorted(
        {kind for kind, _ in (*closed_list.INSTANCE_OBJECTS, *closed_list.CLUSTER_OBJECTS)},
        key=str,
    ),
    ids=lambda kind: str(kind.kind),
)
def test_each_type_is_one_that_the_plugin_has(kind: closed_list.Kind) -> None:
    """The typed class of the SDK of the same version carries the same token."""
    group, _, version = kind.api_version.rpartition("/")
    module = f"pulumi_kubernetes.{(group or 'core').removesuffix('.k8s.io')}.{version}"
    module = module.replace("rbac.authorization", "rbac").replace("k8s_io", "")
    cls = getattr(importlib.import_module(module), kind.kind)

    assert cls.pulumi_type == urns.kubernetes_type(kind.api_version, kind.kind)
