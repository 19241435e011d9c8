"""Rollouts and the publish: evidence, diagnosis, what the pods run."""

from __future__ import annotations

from typing import Final

from tests.contract.seed_003.rows.row import CONVERGE, FIX, Row

ROWS: Final = (
    Row(
        text="error: <part>: rollout did not complete in namespace <namespace> — the pods say:",
        page=CONVERGE,
        below=(
            "pod <pod> (Pending) on node <node> (<arch>)",
            "container <container>: ImagePullBackOff",
            "image <image>",
            "event Warning Failed: <message>",
        ),
        tests=(
            "tests/unit/infra/rollout/test_rollout_wait.py::test_a_crash_loop_ends_early_with_its_log_and_stops_kubectl",
            "tests/unit/infra/rollout/test_rollout_evidence.py::test_the_text_is_that_of_the_seed",
            "tests/contract/test_check_page.py::test_each_rule_is_on_the_page",
            "tests/apiserver/engine/test_derived_state.py::test_what_was_changed_by_hand_is_exactly_what_is_healed",
            "tests/cluster/rollout/test_broken_pods.py::test_an_image_that_no_registry_has",
        ),
    ),
    Row(
        text="diagnosis: <pod> carries an image built for another platform …",
        page=FIX,
        tests=(
            "tests/unit/infra/rollout/test_rollout_evidence.py::test_the_known_causes_are_explained",
        ),
    ),
    Row(
        text="diagnosis: the kubelet could not pull <image>.",
        page=FIX,
        below=(
            "it resolves to <image>",
            "check the push landed there and that this cluster may pull from it (credentials, network, mirror).",
        ),
        tests=(
            "tests/unit/infra/rollout/test_rollout_evidence.py::test_the_text_is_that_of_the_seed",
            "tests/cluster/rollout/test_broken_pods.py::test_an_image_that_no_registry_has",
        ),
    ),
    Row(
        text="diagnosis: <pod> starts and exits …",
        page=FIX,
        tests=(
            "tests/unit/infra/rollout/test_rollout_evidence.py::test_a_crash_shows_the_log_and_the_exit",
        ),
    ),
    Row(
        text='diagnosis: the pod\'s env references Secret "<name>" …',
        page=FIX,
        tests=(
            "tests/unit/infra/rollout/test_rollout_evidence.py::test_the_known_causes_are_explained",
            "tests/cluster/rollout/test_broken_pods.py::test_an_env_that_references_what_is_not_there",
        ),
    ),
    Row(
        text="diagnosis: the container's configuration cannot be built …",
        page=FIX,
        tests=(
            "tests/unit/infra/rollout/test_rollout_evidence.py::test_the_known_causes_are_explained",
            "tests/cluster/rollout/test_broken_pods.py::test_a_volume_of_what_is_not_there",
        ),
    ),
    Row(
        text="no pod matches <selector> — the ReplicaSet made none (check quota, node taints, and the selector)",
        page=CONVERGE,
        tests=(
            "tests/unit/infra/rollout/test_rollout_evidence.py::test_a_rollout_without_a_pod_names_selector_and_reason",
            "tests/cluster/rollout/test_broken_pods.py::test_a_pod_that_may_not_be_made",
        ),
    ),
    Row(
        text="error: <layer>: rollout reported success, but the running pod carries <images> — expected <image>. The cluster is serving code this converge did not deploy; `kubectl -n <namespace> rollout restart deploy` and re-run `jr2 up` to resolve it.",
        page=CONVERGE,
        tests=(
            "tests/unit/infra/rollout/test_rollout_wait.py::test_another_image_in_a_complete_rollout_is_an_error",
            "tests/cluster/rollout/test_images.py::test_a_pod_that_carries_another_image_is_an_error",
        ),
    ),
    Row(
        text="<layer>: WARNING — rollout succeeded but no pod matched <selector> (nothing verified)",
        page=CONVERGE,
        tests=(
            "tests/unit/infra/rollout/test_rollout_wait.py::test_a_rollout_that_no_pod_proves_says_so_and_goes_on",
            "tests/cluster/rollout/test_broken_pods.py::test_a_rollout_with_no_pod_verifies_nothing_and_says_so",
        ),
    ),
    Row(
        text="refusing: after <n>s the Orchestrator still reads an older <maps> from its mount — the kubelet has not refreshed it; nothing was published, and the previous Assembly is still current. Run `jr2 up` again",
        page=CONVERGE,
        tests=(
            "tests/unit/infra/steps/test_steps.py::test_nothing_is_published_while_the_maps_are_older",
        ),
    ),
    Row(
        text="refusing: the Orchestrator refused Assembly <hash> (HTTP <status>): <error> — the previous Assembly is still current",
        page=CONVERGE,
        tests=("tests/unit/infra/steps/test_steps.py::test_a_refused_assembly_lists_its_problems",),
    ),
)
