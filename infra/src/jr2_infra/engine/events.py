"""What the engine says, turned into the lines of the contract and into one readable error.

Debug noise is dropped, and so is everything that the engine says about its own work. A dynamic
provider's lines arrive in the order in which it said them.

Source: design §5.1 and §5.4, libraries.md §2.1 (rules 6 and 7).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from ..derived.urns import Urns
from ..report import Reporter
from ..resources import DynamicResource, KubernetesResource, Program

Operation = Literal["same", "create", "update", "delete", "replace", "other"]

_SAY: Final = "jr2-say "
_COLOUR: Final = re.compile(r"<\{%.*?%\}>|\x1b\[[0-9;]*m")
_KNOWN: Final[Mapping[str, Operation]] = {
    "same": "same",
    "create": "create",
    "update": "update",
    "delete": "delete",
    "replace": "replace",
    "create-replacement": "replace",
    "delete-replaced": "replace",
}
_FRAMES: Final = re.compile(
    r"\d+ errors? occurred: "
    r"|resource \"[^\"]*\" was not successfully (?:created|updated) by the Kubernetes API server: "
    r"|the Kubernetes API server reported that \"[^\"]*\" failed to fully initialize or become live: "
)
_NOISE: Final = re.compile(r"^\s*$|^Retry #\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """What the engine did, or would do in a preview, with one resource.

    Args:
        resource: the Pulumi name; that of the checkpoint for an object that is no longer wanted.
        operation: what it did.
        fields: the paths that changed, as the engine spells them.
    """

    resource: str
    operation: Operation
    fields: tuple[str, ...] = ()


@dataclass(slots=True)
class EngineEvents:
    """Listens to one run of the engine.

    Args:
        program: what is declared.
        reporter: where the lines go.
    """

    program: Program
    reporter: Reporter
    steps: dict[str, StepOutcome] = field(default_factory=dict)
    errors: list[tuple[str | None, str]] = field(default_factory=list)
    _by_urn: dict[str, KubernetesResource | DynamicResource] = field(init=False)
    _announced: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        urns = Urns(self.program)
        self._by_urn = {urns.resource(resource): resource for resource in self.program.resources}

    def __call__(self, event: Any) -> None:
        """Take one event of the Automation API."""
        if event.resource_pre_event is not None:
            self._begun(event.resource_pre_event.metadata)
        elif event.res_outputs_event is not None:
            self._done(event.res_outputs_event.metadata)
        elif event.diagnostic_event is not None:
            self._said(event.diagnostic_event)

    def error(self) -> str | None:
        """Return the first error that has a resource, else the first one; `None` without errors."""
        for urn, text in sorted(self.errors, key=lambda pair: pair[0] is None):
            resource = self._by_urn.get(urn or "")
            if isinstance(resource, KubernetesResource):
                metadata = resource.object["metadata"]
                where = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
                return f"cannot apply {resource.object['kind']} {where}: {_reason(text)}"
            if resource is not None:
                return f"{resource.name} failed: {_reason(text)}"
            return f"the Pulumi engine failed: {_reason(text)}"
        return None

    def _begun(self, metadata: Any) -> None:
        resource = self._by_urn.get(metadata.urn)
        if resource is None or resource.component in self._announced:
            return
        # The engine begins what waits for the same thing in any order; the lines keep the program's.
        for component in self.program.components:
            if component.name not in self._announced:
                self._announced.add(component.name)
                for text in component.announce:
                    self.reporter.line(text)
            if component.name == resource.component:
                return

    def _done(self, metadata: Any) -> None:
        name = metadata.urn.rpartition("::")[2]
        operation = _KNOWN.get(getattr(metadata.op, "value", str(metadata.op)), "other")
        resource = self._by_urn.get(metadata.urn)
        if not _is_plumbing(metadata.type):
            self.steps[name] = StepOutcome(
                resource=name, operation=operation, fields=_changed(metadata, resource)
            )
        if isinstance(resource, DynamicResource) and operation == "same":
            for text in resource.unchanged:
                self.reporter.line(text)

    def _said(self, diagnostic: Any) -> None:
        text = _COLOUR.sub("", diagnostic.message or "")
        if diagnostic.severity == "error":
            self.errors.append((diagnostic.urn or None, text.strip()))
            return
        resource = self._by_urn.get(diagnostic.urn or "")
        # What a provider prints has no resource: the engine reads it from the plugin's output.
        if diagnostic.urn and not isinstance(resource, DynamicResource):
            if diagnostic.severity == "warning" and not _NOISE.match(text) and resource is not None:
                self.reporter.warning(f"warning: {resource.name}: {text.strip()}")
            return
        if diagnostic.severity.startswith("info"):
            for line in text.splitlines():
                self._from_provider(line)

    def _from_provider(self, line: str) -> None:
        at = line.find(_SAY)
        if at < 0:
            return
        try:
            message = json.loads(line[at + len(_SAY) :])
        except ValueError:
            return
        if "line" in message:
            self.reporter.line(message["line"], code=message.get("code", "line"))
        elif "warning" in message:
            self.reporter.warning(message["warning"], code=message.get("code", "warning"))
        elif "progress" in message:
            self.reporter.progress(message["progress"])


def _changed(
    metadata: Any, resource: KubernetesResource | DynamicResource | None
) -> tuple[str, ...]:
    """Return the paths that changed; of a step the engine names none, so its inputs are compared."""
    if not isinstance(resource, DynamicResource):
        return tuple(sorted(metadata.detailed_diff or metadata.diffs or ()))
    if metadata.old is None or metadata.new is None:
        return ()
    old, new = metadata.old.inputs or {}, metadata.new.inputs or {}
    return tuple(name for name in sorted({*old, *new}) if old.get(name) != new.get(name))


def _is_plumbing(token: str) -> bool:
    return token.startswith(("pulumi:", "jr2:"))


def _reason(text: str) -> str:
    """Return an error of the engine without the frames that its layers put around it."""
    lines = [line.strip().removeprefix("* ") for line in text.splitlines() if line.strip()]
    if any(line.startswith("Traceback (most recent call last)") for line in lines):
        return lines[-1]
    return _FRAMES.sub("", " ".join(lines))
