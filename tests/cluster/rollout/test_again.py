"""A second rollout after the cause of the first failure was taken away, with no clean-up by hand.

The kubelet and the controllers back off after a failure. What the first try left behind is started
anew by a second run that begins at once, and a fix of the object itself is judged by its own pods.
The stories are told at the same time, and the tests read how each went.
"""

from __future__ import annotations

import pytest

from .broken import IMAGE
from .stories import LATE, Story

pytestmark = pytest.mark.cluster


def test_an_image_that_comes_after_the_failure_is_pulled_at_once(stories: dict[str, Story]) -> None:
    story = stories["late-image"]

    assert "does not heal by waiting" in story.first.error
    assert story.second.error == ""
    assert story.second.said[0] == "late-image: waiting for rollout"
    assert story.second.said[1] in {
        f"late-image: an earlier rollout ended with {reason} — starting its pods again"
        for reason in ("ErrImagePull", "ImagePullBackOff")
    }
    assert story.second.said[2:] == (f"late-image: verified — 1 pod(s) running {LATE}",)


def test_a_quota_that_was_raised_is_tried_at_once(stories: dict[str, Story]) -> None:
    story = stories["late-quota"]

    assert "exceeded quota: no-pods" in story.first.error
    assert story.second.error == ""
    assert story.second.said[1:] == (
        "late-quota: an earlier rollout ended with FailedCreate — starting its pods again",
        f"late-quota: verified — 1 pod(s) running {IMAGE}",
    )


@pytest.mark.parametrize("kind", ["deployment", "statefulset", "daemonset"])
def test_a_fix_is_judged_by_its_own_pods(stories: dict[str, Story], kind: str) -> None:
    story = stories[f"fixed-{kind}"]

    assert "CrashLoopBackOff does not heal by waiting" in story.first.error
    assert story.second.error == ""
    assert story.second.said == (
        f"fixed-{kind}: waiting for rollout",
        f"fixed-{kind}: verified — 1 pod(s) running {IMAGE}",
    )


def test_what_served_before_still_serves_and_is_named(stories: dict[str, Story]) -> None:
    story = stories["serving"]

    assert story.first.error == ""
    error = story.second.error
    assert (
        f"\n  pod {story.served} of the revision before still serves; nothing was published\n"
    ) in error
    assert f"\n  pod {story.served} (" not in error
    assert "\n      new one\n" in error
