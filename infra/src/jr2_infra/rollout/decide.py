"""Judge a rollout from one observation to the next: done, still waiting, or never.

A rollout fails at once for what does not heal by waiting (`troubles`); all else waits for the
limit. Only the newest revision is judged, and only once its controller has seen it: the pods of the
revision before say nothing about this one.

The functions are pure: an `Observation` goes in with the `Progress` so far, a `Verdict` comes out.

Source: field case 1, spec/converge.md §6.3, design §5.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from . import events, pods, revisions, troubles
from .pods import Pod

LOOKS: Final = 3
"""At how many looks in a row a container without a probe must run."""
LOOKS_AFTER_CRASH: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one look at the cluster showed.

    Args:
        workload: the Deployment, DaemonSet or StatefulSet; `None` when it is not there.
        revisions: the ReplicaSets or ControllerRevisions of its namespace.
        pods: the pods that match its selector, terminating ones too.
        events: the events of its namespace; they may be empty.
    """

    workload: Mapping[str, Any] | None
    revisions: Sequence[Mapping[str, Any]] = ()
    pods: Sequence[Mapping[str, Any]] = ()
    events: Sequence[Mapping[str, Any]] = ()

    @property
    def made(self) -> tuple[Pod, ...]:
        """The pods of the newest revision that are not being removed."""
        return revisions.pods_of_newest(self.workload, self.revisions, self.pods)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A container that runs, and that no probe watches.

    Without a probe a container counts as ready from its start on, and the API may still show that
    it runs some seconds after it ended.

    Args:
        restarts: how often it was started again.
        looks: at how many looks in a row it ran, not started again in between.
    """

    restarts: int
    looks: int

    @property
    def stays(self) -> bool:
        """Whether it ran long enough to be believed; one that crashed before must run longer."""
        return self.looks >= (LOOKS_AFTER_CRASH if self.restarts else LOOKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What earlier observations showed.

    Args:
        streaks: how often in a row each trouble was seen, by its place.
        pull_messages: the longest message of a failed pull, by pod and container. The kubelet
            alternates it with a short one.
        refused: why no further pod was made.
        running: the containers that ran at the last look and that no probe watches, by pod and
            container.
    """

    streaks: Mapping[str, int] = field(default_factory=dict)
    pull_messages: Mapping[tuple[str, str], str] = field(default_factory=dict)
    refused: str = ""
    running: Mapping[tuple[str, str], Running] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What an observation means.

    Args:
        state: `done`, `waiting` or `failed`.
        reason: for `failed`, the word of what does not heal; for `waiting`, what is waited for.
        pulling: for `waiting`, the images that nodes pull at this moment.
        restarted: for `done`, the containers that were started again on the way.
    """

    state: Literal["done", "waiting", "failed"]
    reason: str = ""
    pulling: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()


def judge(progress: Progress, seen: Observation) -> tuple[Progress, Verdict]:
    """Judge one observation.

    Args:
        progress: what the observations before it showed.
        seen: the observation.
    """
    made = seen.made
    running = _running(progress, made)
    if revisions.is_complete(seen.workload) and _all_stay(made, running):
        return progress, Verdict(state="done", restarted=_restarted(made))
    if not revisions.is_seen(seen.workload):
        return Progress(), Verdict(state="waiting", reason="its controller has not seen it yet")
    found, refused = _troubles(seen, made)
    streaks = {item.place: progress.streaks.get(item.place, 0) + 1 for item in found}
    after = Progress(
        streaks=streaks,
        pull_messages=_pull_messages(progress, made),
        refused=refused,
        running=running,
    )
    for item in found:
        if streaks[item.place] >= item.observations:
            return after, Verdict(state="failed", reason=item.reason)
    pulling = dict.fromkeys(image for pod in made for image in events.pulled_now(seen.events, pod))
    return after, Verdict(state="waiting", reason=_waits_for(made), pulling=tuple(pulling))


def left_over(seen: Observation, *, before: str) -> str:
    """Return the trouble that an earlier rollout left behind; empty when there is none.

    The kubelet and the controllers wait longer and longer before they try again, up to minutes. So
    a rollout that failed before, and whose cause was taken away since, is not judged by what it
    left but started anew.

    Args:
        seen: the first look of a wait.
        before: the time, as the API writes it, before which a pod or a revision is old.
    """
    if revisions.is_complete(seen.workload) or not revisions.is_seen(seen.workload):
        return ""
    found, _ = _troubles(seen, seen.made)
    return next((item.reason for item in found if item.since and item.since < before), "")


def _troubles(seen: Observation, made: Sequence[Pod]) -> tuple[list[troubles.Trouble], str]:
    """Return the troubles of an observation, and why no further pod is made."""
    found = troubles.of_pods(made, seen.events)
    revision = revisions.newest(seen.workload, seen.revisions)
    refused = troubles.refusal(seen.workload, revision, len(made), seen.events)
    if refused is None:
        return found, ""
    return [*found, troubles.of_refusal(refused)], refused.text


def _running(progress: Progress, made: Sequence[Pod]) -> dict[tuple[str, str], Running]:
    found: dict[tuple[str, str], Running] = {}
    for pod in made:
        for container in pods.containers(pod):
            if container.init or container.has_probe or container.reason != pods.RUNNING:
                continue
            place = (pods.name_of(pod), container.name)
            last = progress.running.get(place)
            again = last is not None and last.restarts == container.restarts
            found[place] = Running(
                restarts=container.restarts, looks=last.looks + 1 if last and again else 1
            )
    return found


def _all_stay(made: Sequence[Pod], running: Mapping[tuple[str, str], Running]) -> bool:
    """Say whether every pod is well by itself; the status of a workload may be of a moment ago."""
    for pod in made:
        if pods.has_ended(pod):
            continue
        if not pods.is_ready(pod):
            return False
        for container in pods.containers(pod):
            if container.init or container.has_probe:
                continue
            last = running.get((pods.name_of(pod), container.name))
            if last is None or not last.stays:
                return False
    return True


def _pull_messages(progress: Progress, made: Sequence[Pod]) -> dict[tuple[str, str], str]:
    longest = dict(progress.pull_messages)
    for pod in made:
        for container in pods.containers(pod):
            key = (pods.name_of(pod), container.name)
            if container.reason in pods.PULL_REASONS and len(container.message) > len(
                longest.get(key, "")
            ):
                longest[key] = container.message
    return longest


def _restarted(made: Sequence[Pod]) -> tuple[str, ...]:
    return tuple(
        f"container {container.name} of pod {pods.name_of(pod)} restarted "
        + ("once" if container.restarts == 1 else f"{container.restarts} times")
        for pod in made
        for container in pods.containers(pod)
        if container.restarts
    )


def _waits_for(made: Sequence[Pod]) -> str:
    """Return one short phrase for a progress line."""
    if not made:
        return "no pod yet"
    for pod in made:
        container = pods.spokesman(pod)
        if container is not None:
            return f"{pods.name_of(pod)}: {container.name} {container.reason}"
    return "the pods are ready"
