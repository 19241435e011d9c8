"""A cluster as objects: what the API server would hold after jr2 applied a program to it."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from jr2 import names
from jr2.wire import Health
from jr2_infra import crds, made
from jr2_infra.components.secrets import InstanceValues
from jr2_infra.derived import LiveObjects, live_objects
from jr2_infra.facts.cluster import ClusterFacts
from jr2_infra.facts.images import ImageFacts
from jr2_infra.objects import Wants
from jr2_infra.plan import ConvergePlan, make_plan
from jr2_infra.resources import KubernetesResource
from jr2_infra.rules import KitRefs, Place
from jr2_infra.secrets.certificates import Certificates

ASSEMBLY = "ab" * 32
DIGEST = "sha256:" + "1" * 64
CONFIG = "sha256:" + "c" * 64
MINTED = InstanceValues(
    instance_token="instance-token-0123456789",
    publish_token="publish-token-0123456789",
    signing_key="A" * 43,
)
_KEYS = {
    "ports": ("containerPort", "protocol"),
    "volumeMounts": ("mountPath",),
    "containers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "initContainers": ("name",),
}
_numbers = itertools.count(1)
COMPLETE: dict[str, dict[str, Any]] = {
    "Deployment": {
        "replicas": 1,
        "updatedReplicas": 1,
        "availableReplicas": 1,
        "readyReplicas": 1,
    },
    "StatefulSet": {
        "replicas": 1,
        "updatedReplicas": 1,
        "availableReplicas": 1,
        "readyReplicas": 1,
        "currentRevision": "r1",
        "updateRevision": "r1",
    },
    "DaemonSet": {
        "desiredNumberScheduled": 1,
        "currentNumberScheduled": 1,
        "updatedNumberScheduled": 1,
        "numberAvailable": 1,
        "numberReady": 1,
    },
}
"""The status of each kind of workload whose newest revision runs and serves."""


def fields_of(value: Any, name: str = "") -> dict[str, Any]:
    """FieldsV1 of a value that was applied as a whole."""
    if isinstance(value, dict):
        return {f"f:{key}": fields_of(item, key) for key, item in value.items()}
    keys = _KEYS.get(name)
    if isinstance(value, list) and keys and all(isinstance(item, dict) for item in value):
        if name == "ports" and value and "port" in value[0]:
            keys = ("port", "protocol")
        return {
            "k:" + json.dumps({key: item.get(key) for key in keys}): {".": {}, **fields_of(item)}
            for item in value
        }
    return {}


def prune(fields: dict[str, Any], path: tuple[str, ...]) -> None:
    """Take away the mappings of a path that hold nothing any more."""
    if path:
        prune(fields[path[0]], path[1:])
        if not fields[path[0]]:
            del fields[path[0]]


def applied(obj: Mapping[str, Any]) -> dict[str, Any]:
    """The live object after server-side apply by `jr2`."""
    live: dict[str, Any] = copy.deepcopy(dict(obj))
    metadata = {
        key: value for key, value in obj["metadata"].items() if key not in ("name", "namespace")
    }
    owned = {
        key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")
    }
    number = next(_numbers)
    live["metadata"] |= {
        "uid": f"uid-{number}",
        "resourceVersion": str(number),
        "managedFields": [
            {
                "manager": names.FIELD_MANAGER,
                "operation": "Apply",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": fields_of(metadata), **fields_of(owned)},
            }
        ],
    }
    if obj["kind"] in COMPLETE:
        live["metadata"]["generation"] = 1
        live["status"] = {"observedGeneration": 1, **COMPLETE[obj["kind"]]}
    return live


def pod_of(deployment: Mapping[str, Any]) -> dict[str, Any]:
    """A ready pod of a workload."""
    template = deployment["spec"]["template"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{deployment['metadata']['name']}-1",
            "namespace": deployment["metadata"]["namespace"],
            "labels": dict(template["metadata"]["labels"]),
        },
        "spec": copy.deepcopy(template["spec"]),
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [
                {
                    "name": container["name"],
                    "ready": True,
                    "restartCount": 0,
                    "image": container["image"],
                    "imageID": CONFIG,
                    "state": {"running": {}},
                }
                for container in template["spec"]["containers"]
            ],
        },
    }


class World:
    """One Instance and one cluster; `converge` applies the plan to the cluster's objects."""

    def __init__(self) -> None:
        self.place = Place(instance="demo", context="jr2-local", namespace="demo")
        self.refs = KitRefs(
            orchestrator="jr2.local/jr2-orchestrator:0123456789ab",
            operator="jr2.local/jr2-operator:0123456789ab",
            harness=None,
            line="images: checkout kit",
            imported=True,
        )
        self.wants = self.wanting()
        self.live: dict[Any, Any] = {}
        self.pods: tuple[Any, ...] = ()
        self.system_pods: tuple[Any, ...] = ()
        self.health: Health | None = None
        self.secrets: dict[str, Any] = {}
        self.certificates = Certificates()
        self.marks = made.Marks()
        self.config_maps: dict[str, Any] = {}
        self.images: tuple[ImageFacts, ...] = tuple(
            ImageFacts(ref=ref, held=None, archived=DIGEST, config=CONFIG)
            for ref in (self.refs.orchestrator, self.refs.operator)
        )

    def wanting(self, **changed: Any) -> Wants:
        """What the Instance wants, with some of it changed."""
        given: dict[str, Any] = {
            "place": self.place,
            "kit_version": "1.0.0.dev0",
            "refs": self.refs,
            "manage_operator": True,
            "control_class": None,
            "sandbox_class": None,
            "custodian": names.CUSTODIAN_IMAGE,
            "harness": "{}",
            "assembly": ASSEMBLY,
            "workflows": ("ping",),
            "crds": tuple(crds.load()),
            "operator_rules": ({"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},),
        }
        return Wants(**{**given, **changed})

    def facts(self) -> ClusterFacts:
        return ClusterFacts(
            live=dict(self.live),
            pods=self.pods,
            system_pods=self.system_pods,
            health=self.health,
            secrets=self.secrets,
            config_maps=self.config_maps,
        )

    def plan(self, minted: InstanceValues = MINTED) -> ConvergePlan:
        return make_plan(
            self.wants,
            self.facts(),
            cluster_uid="0123456789abcdef",
            node_images=self.images,
            minted=minted,
            certificates=self.certificates,
            marks=self.marks,
        )

    def apply(self, objects: Iterable[Mapping[str, Any]]) -> None:
        for key, obj in live_objects(applied(obj) for obj in objects).items():
            if key in self.live:
                # What is applied again stays the same object.
                obj["metadata"]["uid"] = self.live[key]["metadata"]["uid"]
            self.live[key] = obj

    def converge(self) -> None:
        """Bring the cluster's objects to what the plan wants, as the engine would."""
        plan = self.plan()
        self.apply(
            item.object for item in plan.program.resources if isinstance(item, KubernetesResource)
        )
        self.record(made.settled(plan.making.record, self.live, self.place.namespace))
        self.images = tuple(
            ImageFacts(ref=item.ref, held=item.held or item.archived, config=item.config)
            for item in self.images
        )
        workloads = {key: obj for key, obj in self.live.items() if key.kind in COMPLETE}
        self.pods = tuple(pod_of(obj) for key, obj in workloads.items() if key.namespace == "demo")
        self.system_pods = tuple(
            pod_of(obj) for key, obj in workloads.items() if key.namespace != "demo"
        )
        self.health = Health(version="1.0.0.dev0", hash=self.wants.assembly)

    def record(self, record: made.Made) -> None:
        """Write down on the Namespace what was made."""
        metadata = self.find("Namespace", self.place.namespace)["metadata"]
        metadata.setdefault("annotations", {})[names.ANNOTATION_MADE] = record.text()

    def find(self, kind: str, name: str) -> dict[str, Any]:
        """The live object itself, to be changed by a test."""
        key = next(key for key in self.live if key.kind == kind and key.name == name)
        found: dict[str, Any] = self.live[key]
        return found

    def remove(self, kind: str, name: str) -> None:
        self.live = {
            key: obj for key, obj in self.live.items() if (key.kind, key.name) != (kind, name)
        }

    def objects(self) -> LiveObjects:
        return self.live


@pytest.fixture
def world() -> World:
    """An Instance, and a cluster that holds nothing of it."""
    return World()


@pytest.fixture
def converged(world: World) -> World:
    """A cluster that one converge brought to what the Instance wants."""
    world.converge()
    return world


TakeOver = Callable[[dict[str, Any], str, tuple[str, ...]], None]


@pytest.fixture
def take_over() -> TakeOver:
    """Let another manager own a field that jr2 applied, as a change by hand does."""

    def change(obj: dict[str, Any], manager: str, path: tuple[str, ...]) -> None:
        fields = obj["metadata"]["managedFields"][0]["fieldsV1"]
        owned: dict[str, Any] = {}
        inner = owned
        for step in path[:-1]:
            fields = fields[step]
            inner = inner.setdefault(step, {})
        inner[path[-1]] = fields.pop(path[-1])
        # The API server keeps no empty set.
        prune(obj["metadata"]["managedFields"][0]["fieldsV1"], path[:-1])
        obj["metadata"]["managedFields"].append(
            {"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": owned}
        )

    return change
