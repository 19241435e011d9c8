"""The dynamic providers of the Converge. The name of this module never changes.

Pulumi stores a provider of a plain `pulumi up` as the names of its module and its class, so both
stand for ever. A class has no state and no arguments: inputs come from the resource, surroundings
from the run file. What each one does is a plain function of `steps`.

Source: design §5.4, libraries.md §2.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx2

from jr2.errors import StepFailed

from . import kube
from .api import Api, ApiError, words
from .dynamic import NONCE, StepProvider, progress, say
from .engine import fence, run_file
from .engine.folder import plain_run
from .report import line_code
from .steps import kit_image, nothing_more, publish, rollout
from .steps.surroundings import SETTING_LEASE, Surroundings


class KitImage(StepProvider):
    """Delivers a Kit image of a checkout to the nodes."""

    def act(self, inputs: Mapping[str, str], previous: Mapping[str, str] | None) -> None:
        """Deliver the image."""
        with _surroundings(inputs) as around:
            kit_image.deliver_image(inputs, around)


class ProviderPreflight(StepProvider):
    """Checks each model from a pod of the cluster; declared only when there is one to check."""

    def act(self, inputs: Mapping[str, str], previous: Mapping[str, str] | None) -> None:
        """Refuse models: no Machine of this Kit carries an Agent yet."""
        if inputs["models"]:
            raise StepFailed(f"this Kit cannot check a model yet: {inputs['models']}")


class Rollout(StepProvider):
    """Waits for a rollout and verifies what its pods run."""

    def act(self, inputs: Mapping[str, str], previous: Mapping[str, str] | None) -> None:
        """Wait, and say what runs."""
        with _surroundings(inputs) as around:
            rollout.wait_for_rollout(inputs, around)


class NothingMore(StepProvider):
    """Takes away what another manager added to an object."""

    def act(self, inputs: Mapping[str, str], previous: Mapping[str, str] | None) -> None:
        """Heal the object."""
        with _surroundings(inputs) as around:
            nothing_more.take_away(inputs, around)


class AssemblyPublish(StepProvider):
    """Makes the Assembly current in the Orchestrator."""

    def act(self, inputs: Mapping[str, str], previous: Mapping[str, str] | None) -> None:
        """Publish, unless it is current already."""
        with _surroundings(inputs) as around:
            publish.publish_assembly(inputs, around)


@contextmanager
def _surroundings(inputs: Mapping[str, str]) -> Iterator[Surroundings]:
    """Open what a step needs, and turn an API server that fails into an error of ours."""
    nonce = inputs.get(NONCE)
    run = run_file.read_run_file() if nonce is None else plain_run(nonce)
    kubeconfig = Path(run[run_file.KUBECONFIG])
    context = kube.load_context(None, {"KUBECONFIG": str(kubeconfig)})
    try:
        with context.http() as http:
            yield Surroundings(
                api=Api(http),
                kubectl=Path(run[run_file.KUBECTL]),
                kubeconfig=kubeconfig,
                namespace=run[run_file.NAMESPACE],
                check_lease=lambda: fence.check(run),
                lease=run.get(SETTING_LEASE),
                say=lambda text: say(text, code=line_code(text)),
                progress=progress,
                settings=run,
            )
    except ApiError as error:
        raise StepFailed(f"the API server refused: {error.message}") from error
    except httpx2.HTTPError as error:
        raise StepFailed(f"the API server stopped answering ({words(error)})") from error
