"""Rollouts of real pods that cannot start: what ends the wait, what is said, what is explained.

Every case is one workload with one fault. All are applied and waited for at the same time, each as
a `Rollout` step waits, and the tests read how each wait ended.
"""

from __future__ import annotations

import re

import pytest

from .broken import IMAGE
from .cases import CASES, MISSING
from .conftest import Outcome

pytestmark = pytest.mark.cluster


def failed(outcomes: dict[str, Outcome], name: str) -> str:
    """Return the error of a case, whose head, pod and end are as in every failed rollout."""
    namespace, _, _ = CASES[name]
    error = outcomes[name].error
    assert error.startswith(
        f"error: {name}: rollout did not complete in namespace {namespace} — the pods say:\n\n"
    ), outcomes[name]
    assert re.search(r"\n\nstopped after \d+s: \w+ does not heal by waiting$", error), error
    return error


def test_a_pod_that_is_well_is_verified(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["well"].error == ""
    assert outcomes["well"].said == (
        "well: waiting for rollout",
        f"well: verified — 1 pod(s) running {IMAGE}",
    )


def test_an_image_that_no_registry_has(outcomes: dict[str, Outcome]) -> None:
    error = failed(outcomes, "pull")

    assert re.search(r"\n  pod pull-\S+ \(Pending\) on node jr2-local \(amd64\)\n", error)
    assert f"\n      image {MISSING}\n" in error
    # The long message, also when the last look met the short one.
    assert "failed to pull and unpack image" in error
    assert "\n    event Warning Failed: Error: ErrImagePull\n" in error
    assert f"\ndiagnosis: the kubelet could not pull {MISSING}.\n" in error


@pytest.mark.parametrize(
    ("case", "code", "last_words"), [("crash", 3, "to the log"), ("stateful-crash", 6, "st")]
)
def test_a_container_that_starts_and_exits(
    outcomes: dict[str, Outcome], case: str, code: int, last_words: str
) -> None:
    error = failed(outcomes, case)

    # The API shows the back-off, or still how the container ended.
    assert re.search(
        rf"\n    container main: Error \(exit {code}\), restarted [2-9] times\n"
        rf"|\n    container main: CrashLoopBackOff, restarted [2-9] times\n(      .*\n)+"
        rf"      last exit: Error \(exit {code}\)\n",
        error,
    )
    assert f":\n      {last_words}\n" in error
    assert re.search(
        rf"\ndiagnosis: {case}-\S+ starts and exits: its container main ended with {code}\.\n"
        r"  the log lines above are its last words\.\n",
        error,
    )


def test_a_container_that_exits_without_a_word(outcomes: dict[str, Outcome]) -> None:
    error = failed(outcomes, "crash-silent")

    found = re.search(r"kubectl -n rollout-free logs (\S+) -c main --previous\n", error)
    assert found
    assert f"\n  pod {found[1]} " in error


def test_the_container_that_crashes_speaks_and_not_the_one_that_waits(
    outcomes: dict[str, Outcome],
) -> None:
    error = failed(outcomes, "crash-beside")

    assert "\n    log of container second " in error
    assert "\n      I am the one\n" in error
    assert "starts and exits: its container second ended with 5." in error


def test_a_program_that_the_image_does_not_have(outcomes: dict[str, Outcome]) -> None:
    error = failed(outcomes, "no-program")

    assert "no such file or directory" in error
    assert re.search(
        r"\ndiagnosis: no-program-\S+ starts and exits: its container main ended with 128\.\n"
        r"  the message of the container above says why\.\n",
        error,
    )


@pytest.mark.parametrize(
    ("case", "what"),
    [
        ("env-secret", 'Secret "no-secret", which is not in namespace rollout-free'),
        ("env-map", 'ConfigMap "no-map", which is not in namespace rollout-free'),
        ("env-from", 'Secret "no-secret-from", which is not in namespace rollout-free'),
        ("env-key", 'ConfigMap "foreign", which has no key no-key in namespace rollout-free'),
    ],
)
def test_an_env_that_references_what_is_not_there(
    outcomes: dict[str, Outcome], case: str, what: str
) -> None:
    error = failed(outcomes, case)

    assert "\n    container main: CreateContainerConfigError\n" in error
    assert f"\ndiagnosis: the pod's env references {what}.\n" in error


@pytest.mark.parametrize(
    ("case", "what"),
    [
        ("volume-map", 'volume "v" needs ConfigMap "no-volume-map", which is not in namespace'),
        ("volume-secret", 'volume "v" needs Secret "no-volume-secret", which is not in namespace'),
        ("volume-key", 'volume "v" needs the key none of a ConfigMap'),
    ],
)
def test_a_volume_of_what_is_not_there(outcomes: dict[str, Outcome], case: str, what: str) -> None:
    error = failed(outcomes, case)

    assert "\n    event Warning FailedMount: " in error
    assert f"\ndiagnosis: the container's configuration cannot be built: its {what}" in error


def test_an_image_that_runs_as_root_where_it_must_not(outcomes: dict[str, Outcome]) -> None:
    error = failed(outcomes, "root")

    assert "image will run as root" in error
    assert (
        "\ndiagnosis: the container's configuration cannot be built: the message of container "
        "main above says why.\n"
    ) in error


def test_a_program_for_another_processor(outcomes: dict[str, Outcome]) -> None:
    error = failed(outcomes, "platform")

    assert "exec format error" in error
    assert re.search(
        r"\ndiagnosis: platform-\S+ carries an image built for another platform than its node's "
        rf"\(amd64\)\.\n  the image is {re.escape(IMAGE)}\n",
        error,
    )


def test_an_init_container_that_fails(outcomes: dict[str, Outcome]) -> None:
    error = failed(outcomes, "init")

    assert re.search(
        r"\n    init container preflight: (CrashLoopBackOff|Error \(exit 127\)), "
        r"restarted [2-9] times\n",
        error,
    )
    assert "\n    container main: PodInitializing\n" in error
    assert "\n      no glibc here\n" in error
    assert "starts and exits: its init container preflight ended with 127." in error


def test_a_pod_that_restarts_once_and_is_fine(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["once"].error == ""
    said = outcomes["once"].said
    assert re.fullmatch(
        r"once: container main of pod once-\S+ restarted once while it started", said[1]
    )
    assert said[2:] == (f"once: verified — 1 pod(s) running {IMAGE}",)


def test_a_daemon_set_whose_image_cannot_be_pulled(outcomes: dict[str, Outcome]) -> None:
    assert f"\ndiagnosis: the kubelet could not pull {MISSING}.\n" in failed(
        outcomes, "daemon-pull"
    )


@pytest.mark.parametrize(
    ("case", "maker"),
    [
        ("quota", "ReplicaSet"),
        ("stateful-quota", "StatefulSet"),
        ("daemon-quota", "DaemonSet"),
        ("strict", "ReplicaSet"),
    ],
)
def test_a_pod_that_may_not_be_made(outcomes: dict[str, Outcome], case: str, maker: str) -> None:
    error = failed(outcomes, case)

    assert (
        f"\n  no pod matches app={case} — the {maker} made none "
        "(check quota, node taints, and the selector)\n"
    ) in error
    assert f"\n  the {maker} says FailedCreate: " in error
    words = (
        ['violates PodSecurity "restricted', 'container "privileged-one"', "privileged"]
        if case == "strict"
        else ["exceeded quota: team-quota, requested: pods=1, used: pods=0, limited: pods=0"]
    )
    for text in words:
        assert text in error


def test_a_rollout_with_no_pod_verifies_nothing_and_says_so(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["daemon-nowhere"].error == ""
    assert outcomes["daemon-nowhere"].said[1:] == (
        "daemon-nowhere: WARNING — rollout succeeded but no pod matched app=daemon-nowhere "
        "(nothing verified)",
    )
