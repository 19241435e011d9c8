"""The cluster: reached, owned, first contact, versions, nodes, platforms and deliveries."""

from __future__ import annotations

from typing import Final

from tests.contract.seed_003.rows.row import CONVERGE, Row

ROWS: Final = (
    Row(
        text='refusing: cannot reach the API server of <context> (error: context "<context>" does not exist). Nothing was applied.',
        page=CONVERGE,
        tests=(
            "tests/unit/infra/test_kube.py::test_an_unknown_context_is_named_as_kubectl_names_it",
            "tests/apiserver/test_cluster_checks.py::test_a_context_that_is_not_there",
        ),
    ),
    Row(
        text="refusing: <context> runs Kubernetes <version>; jr2 needs Kubernetes 1.35 or newer (every Sandbox mounts jr2's runtime as an image volume, ADR-0037). Nothing was applied.",
        page=CONVERGE,
        tests=(
            "tests/unit/infra/converge/test_rules.py::test_an_older_version_is_refused",
            "tests/apiserver/test_cluster_checks.py::test_a_cluster_before_1_35_is_refused_and_nothing_is_written",
        ),
    ),
    Row(
        text='refusing: namespace "<namespace>" on <context> belongs to another instance ("<owner>")',
        page=CONVERGE,
        below=("pick a different namespace (-n) or context (--context)",),
        tests=(
            "tests/unit/infra/converge/test_rules.py::test_the_namespace_of_another_instance_is_refused",
            "tests/apiserver/test_cluster_checks.py::test_that_of_another_instance_is_refused",
        ),
    ),
    Row(
        text='first contact: deploy instance "<instance>" to context <context> (create namespace "<namespace>")? [y/N] <answer>',
        page=CONVERGE,
        tests=(
            "tests/apiserver/test_first_contact.py::test_any_other_answer_than_yes_changes_nothing",
        ),
    ),
    Row(
        text='first contact: deploy instance "<instance>" to context <context> (adopt existing namespace "<namespace>")? [y/N] <answer>',
        page=CONVERGE,
        tests=(
            "tests/apiserver/test_first_contact.py::test_a_namespace_without_an_owner_is_adopted_and_keeps_its_labels",
        ),
    ),
    Row(
        text="aborted — nothing was changed",
        page=CONVERGE,
        tests=(
            "tests/unit/cli/test_instance_verbs.py::test_down_asks_on_a_terminal_only_and_changes_nothing_without_an_answer",
            "tests/apiserver/derived/test_refusals_write_nothing.py::test_a_refusal_leaves_every_object_as_it_was",
        ),
    ),
    Row(
        text='first contact: deploy instance "<instance>" to context <context> (create namespace "<namespace>")? — not a tty; pass --yes to proceed non-interactively',
        page=CONVERGE,
        tests=(
            "tests/apiserver/test_cluster_checks.py::test_first_contact_asks_and_without_a_terminal_nothing_changes",
        ),
    ),
    Row(
        text="refusing: <context> (Kubernetes <version>) drops pod-level resources — the PodLevelResources feature gate is off, and a Workspace's Size cannot hold (ADR-0060). Enable the gate on the API server and kubelets. The namespace was created; nothing else was applied.",
        page=CONVERGE,
        tests=(
            "tests/unit/infra/converge/test_rules.py::test_dropped_pod_resources_are_refused",
            "tests/apiserver/test_cluster_checks.py::test_a_cluster_that_drops_them_is_refused_after_the_namespace",
        ),
    ),
    Row(
        text="warning: could not confirm pod-level resources on <context>: <error>",
        page=CONVERGE,
        tests=(
            "tests/unit/infra/converge/test_rules.py::test_dropped_pod_resources_are_refused",
            "tests/apiserver/test_cluster_checks.py::test_what_cannot_be_confirmed_is_a_warning",
        ),
    ),
    Row(
        text='error: `platforms` names <platforms> — the kit releases images for <platforms> and nothing else, so an image built for anything else could not be joined by a Kit image in the same pod. Set `platforms` in jr2_config.py (docker platform strings, e.g. "linux/arm64") to name the set to build for.',
        page=CONVERGE,
        tests=(
            "tests/unit/infra/nodes/test_platforms.py::test_a_platform_without_kit_images_is_an_error",
        ),
    ),
    Row(
        text='error: this cluster\'s schedulable nodes report <architectures> — the kit releases images for <platforms> and nothing else, so an image built for anything else could not be joined by a Kit image in the same pod. Set `platforms` in jr2_config.py (docker platform strings, e.g. "linux/arm64") to name the set to build for.',
        page=CONVERGE,
        tests=(
            "tests/unit/infra/nodes/test_platforms.py::test_a_platform_without_kit_images_is_an_error",
            "tests/apiserver/test_cluster_checks.py::test_nodes_without_an_image_of_the_kit",
        ),
    ),
    Row(
        text="warning: no Sandbox node right now — a Sandbox stays Pending until one appears:",
        page=CONVERGE,
        tests=(
            "tests/unit/infra/nodes/test_sandboxes.py::test_no_sandbox_node_says_of_each_node_why",
            "tests/apiserver/test_cluster_checks.py::test_none_says_of_each_node_why_and_goes_on",
        ),
    ),
    Row(
        text='warning: no Sandbox node right now has the allocatable for a Size of <size> (workflow "<workflow>") — its Sandbox stays Pending until one does',
        page=CONVERGE,
        tests=(
            "tests/unit/infra/nodes/test_sandboxes.py::test_a_size_that_no_node_can_allocate_is_a_warning_for_each_workflow",
            "tests/apiserver/test_cluster_checks.py::test_a_size_without_room_is_a_warning",
        ),
    ),
    Row(
        text="error: this cluster needs a <platforms> build, which docker buildx delivers by PUSHING a manifest list (kind load cannot carry one) — set `registry` in jr2_config.py, or name a single platform with `platforms`",
        page=CONVERGE,
        tests=(
            "tests/unit/infra/test_images_sandbox.py::test_two_platforms_need_a_registry",
            "tests/apiserver/test_cluster_checks.py::test_two_platforms_need_a_registry",
        ),
    ),
    Row(
        text="error: context <context> is not a kind cluster and no `registry` is configured — set `registry` in jr2_config.py (from env) so the image can be pushed (ADR-0019)",
        page=CONVERGE,
        tests=(
            "tests/unit/infra/converge/test_rules.py::test_images_are_delivered_to_clusters_of_this_machine_only",
            "tests/apiserver/test_cluster_checks.py::test_1_35_and_what_is_newer_is_taken",
        ),
    ),
    Row(
        text="error: this host cannot build for <platforms>: a foreign architecture's RUN steps need qemu binfmt emulation, and none is registered (this builder targets <platforms>). Install it, then re-run:",
        page=CONVERGE,
        below=("docker run --privileged --rm tonistiigi/binfmt --install <arch>",),
        tests=(
            "tests/unit/infra/test_images_sandbox.py::test_a_platform_that_the_builder_lacks_names_the_emulator",
            "tests/apiserver/test_cluster_checks.py::test_a_foreign_platform_needs_an_emulator",
            "tests/cluster/test_foreign_platform.py::test_the_builder_itself_says_what_it_cannot_build",
        ),
    ),
)
