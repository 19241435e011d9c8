"""The refusals, questions and warnings of steps 5 to 8, as they are printed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jr2.errors import Jr2Error, Refusal
from jr2_infra import rules
from jr2_infra.rules import Ownership, Place

PLACE = Place(instance="demo", context="jr2-local", namespace="demo")


def printed(error: Jr2Error | None) -> str:
    assert error is not None
    return error.printed


def namespace(**labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "demo", "labels": labels}}


@pytest.mark.parametrize("version", ["v1.35.0", "v1.36.3", "v1.35.1-eks-1", "v2.0.0"])
def test_a_version_from_1_35_on_is_taken(version: str) -> None:
    rules.check_version(PLACE, version)


@pytest.mark.parametrize("version", ["v1.34.9", "v1.9.0", "v0.99.0"])
def test_an_older_version_is_refused(version: str) -> None:
    with pytest.raises(Refusal) as caught:
        rules.check_version(PLACE, version)
    assert caught.value.printed == (
        f"refusing: jr2-local runs Kubernetes {version[1:]}; jr2 needs Kubernetes 1.35 or newer "
        "(every Sandbox mounts jr2's runtime as an image volume, ADR-0037). Nothing was applied."
    )


def test_the_namespace_of_another_instance_is_refused() -> None:
    with pytest.raises(Refusal) as caught:
        rules.ownership(PLACE, namespace(**{"jr2.dev/instance": "other"}))
    assert caught.value.printed == (
        'refusing: namespace "demo" on jr2-local belongs to another instance ("other")\n'
        "  pick a different namespace (-n) or context (--context)"
    )


@pytest.mark.parametrize(
    ("found", "owned", "question"),
    [
        (
            None,
            Ownership.ABSENT,
            'first contact: deploy instance "demo" to context jr2-local (create namespace "demo")?',
        ),
        (
            namespace(),
            Ownership.UNLABELLED,
            'first contact: deploy instance "demo" to context jr2-local '
            '(adopt existing namespace "demo")?',
        ),
        (namespace(**{"jr2.dev/instance": "demo"}), Ownership.OURS, None),
    ],
)
def test_the_first_contact_asks_once(
    found: dict[str, Any] | None, owned: Ownership, question: str | None
) -> None:
    assert rules.ownership(PLACE, found) is owned
    assert rules.first_contact(PLACE, owned) == question


@pytest.mark.parametrize(
    ("name", "whose"),
    [
        *((name, "Kubernetes' own") for name in ("default", "kube-system", "kube-public")),
        ("jr2-system", "the operator's"),
    ],
)
@pytest.mark.parametrize("found", [None, namespace(), namespace(**{"jr2.dev/instance": "demo"})])
def test_a_namespace_that_a_cluster_needs_is_no_place_for_an_instance(
    name: str, whose: str, found: dict[str, Any] | None
) -> None:
    with pytest.raises(Refusal) as caught:
        rules.ownership(replace(PLACE, namespace=name), found)

    assert caught.value.printed == (
        f'refusing: namespace "{name}" is {whose}, and an Instance has one of its own, which '
        "`jr2 down` deletes — pick a different namespace (-n). Nothing was applied."
    )


def test_a_namespace_that_is_being_deleted_is_refused_with_what_holds_it() -> None:
    found = namespace(**{"jr2.dev/instance": "demo"}) | {
        "status": {
            "phase": "Terminating",
            "conditions": [
                {
                    "type": "NamespaceContentRemaining",
                    "status": "True",
                    "message": "sandboxes.core.jr2.dev has 2 resource instances",
                },
                {"type": "NamespaceDeletionDiscoveryFailure", "status": "False", "message": "no"},
            ],
        }
    }
    with pytest.raises(Refusal) as caught:
        rules.ownership(PLACE, found)
    text = caught.value.printed
    assert "NamespaceContentRemaining: sandboxes.core.jr2.dev has 2 resource instances" in text
    assert "DiscoveryFailure" not in text
    assert text.endswith("Nothing was applied.")
    found["status"]["conditions"] = []
    with pytest.raises(Refusal, match="is being deleted — run this again once it is gone"):
        rules.ownership(PLACE, found)


def test_dropped_pod_resources_are_refused() -> None:
    assert printed(rules.drops_pod_resources(PLACE, "v1.36.3")) == (
        "refusing: jr2-local (Kubernetes 1.36.3) drops pod-level resources — the PodLevelResources "
        "feature gate is off, and a Workspace's Size cannot hold (ADR-0060). Enable the gate on "
        "the API server and kubelets. The namespace was created; nothing else was applied."
    )
    assert rules.unconfirmed_pod_resources(PLACE, "forbidden") == (
        "warning: could not confirm pod-level resources on jr2-local: forbidden"
    )


def test_released_images_come_from_the_kit_home_or_its_mirror() -> None:
    plain = rules.released_images("1.2.3", None)
    assert plain.operator == "ghcr.io/snapwich/jr2-operator:1.2.3"
    assert plain.line == (
        "images: installed kit — the published v1.2.3 Harness, operator and Orchestrator, pulled "
        "from ghcr.io/snapwich"
    )
    mirrored = rules.released_images("1.2.3", "registry.example/kit/")
    assert mirrored.orchestrator == "registry.example/kit/jr2-orchestrator:1.2.3"
    assert mirrored.line.endswith("pulled from registry.example/kit (kit_registry)")


def deliver(
    context: str,
    *,
    server: str = "https://a",
    local: str | None = None,
    kind: str | None = None,
    docker: str | None = None,
    registry: str | None = None,
) -> Jr2Error | None:
    place = Place(instance="demo", context=context, namespace="demo")
    programs = {"kind": kind, "docker": docker}
    return rules.check_delivery(
        place, server=server, local_server=local, kind=programs, registry=registry
    )


def test_a_kind_cluster_needs_both_programs() -> None:
    assert deliver("kind-jr2", kind="/bin/kind", docker="/bin/docker") is None
    words = (
        "error: context kind-jr2 is a kind cluster, and images reach its nodes by `kind load` and "
        "`docker exec`: {} not on PATH"
    )
    assert printed(deliver("kind-jr2", docker="/bin/docker")) == words.format("kind is")
    assert printed(deliver("kind-jr2", kind="/bin/kind")) == words.format("docker is")
    assert printed(deliver("kind-jr2")) == words.format("kind and docker are")


def test_images_are_delivered_to_clusters_of_this_machine_only() -> None:
    assert deliver("jr2-local", local="https://a") is None
    assert "not the local cluster of this machine" in printed(deliver("jr2-local"))
    assert "points at https://a" in printed(deliver("jr2-local", local="https://b"))
    assert printed(deliver("production", local="https://a")) == (
        "error: context production is not a kind cluster and no `registry` is configured — set "
        "`registry` in jr2_config.py (from env) so the image can be pushed (ADR-0019)"
    )


def test_any_other_cluster_gets_its_images_from_the_registry_of_the_config() -> None:
    place = Place(instance="demo", context="production", namespace="demo")
    home = rules.push_home(place, "registry.example/team/")

    refs = rules.checkout_refs(
        place,
        orchestrator="jr2.local/jr2-o:1",
        operator="jr2.local/jr2-p:2",
        checkout="/src",
        home=home,
    )

    assert deliver("production", registry="registry.example/team/") is None
    assert (refs.orchestrator, refs.operator) == (
        "registry.example/team/jr2-o:1",
        "registry.example/team/jr2-p:2",
    )
    assert refs.imported
    assert refs.line == (
        "images: checkout kit — the operator and Orchestrator of /src, pushed to "
        "registry.example/team"
    )
    with_harness = rules.checkout_refs(
        place,
        orchestrator="o",
        operator="p",
        harness="jr2.local/jr2-h:3",
        checkout="/src",
        home=home,
    )
    assert with_harness.harness == "registry.example/team/jr2-h:3"
    assert with_harness.line == (
        "images: checkout kit — the Harness, operator and Orchestrator of /src, pushed to "
        "registry.example/team"
    )
    # Design §7: these get their images by an import, whatever the config says.
    for context in ("jr2-local", "kind-jr2"):
        local = Place(instance="demo", context=context, namespace="demo")
        assert rules.push_home(local, "registry.example") is None
    assert rules.push_home(place, None) is None


def test_images_of_a_checkout_are_for_one_platform() -> None:
    assert rules.check_pushed_platforms(("linux/amd64",), "linux/amd64") is None
    assert printed(rules.check_pushed_platforms(("linux/amd64", "linux/arm64"), "linux/amd64")) == (
        "error: the Kit images of this checkout are built for linux/amd64 alone, and this cluster "
        "needs linux/arm64 — use a released version of jr2, or set `platforms` in "
        'jr2_config.py to ["linux/amd64"] when every pod of jr2 runs on such nodes'
    )


def test_images_that_were_not_built_name_the_script() -> None:
    assert printed(rules.not_built("jr2.local/jr2-operator:1", "/src")) == (
        "error: the Kit images of this checkout are not built (jr2.local/jr2-operator:1) — run "
        "/src/scripts/build-kit-images, then re-run `jr2 up`"
    )


@pytest.mark.parametrize("level", ["baseline", "restricted"])
def test_a_namespace_that_forbids_folders_of_the_node_is_refused_for_a_sandbox(
    level: str,
) -> None:
    given = namespace(**{rules.LABEL_POD_SECURITY: level})
    rules.check_pod_security(PLACE, given, repo_cache=False)
    with pytest.raises(Refusal) as refused:
        rules.check_pod_security(PLACE, given, repo_cache=True)
    assert refused.value.printed == (
        'refusing: namespace "demo" on jr2-local enforces the Pod Security Standard '
        f'"{level}", and the Repo cache and each Sandbox mount a folder of the node, which it '
        "forbids — set its label pod-security.kubernetes.io/enforce to privileged, or pick a "
        "different namespace (-n). Nothing was applied."
    )


@pytest.mark.parametrize(
    "given",
    [
        None,
        {"metadata": {}},
        {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}},
        {"metadata": {"labels": {"pod-security.kubernetes.io/warn": "restricted"}}},
    ],
)
def test_other_namespaces_are_not_refused_for_a_sandbox(given: Any) -> None:
    rules.check_pod_security(PLACE, given, repo_cache=True)
