"""What each service may do at the API: written here once, granted by the Converge, held to by tests.

A rule names exactly the verbs that the service's code uses. Discovery (`/api`, `/apis` and what is
below them up to a group's version) is granted by Kubernetes to every service account, so it needs
no rule.

Source: design §6.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from . import names


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule of a Role or ClusterRole.

    Args:
        groups: API groups; the core group is `""`.
        resources: plurals, and `<plural>/<subresource>`.
        verbs: what may be done to them.
        resource_names: only these objects, when it is given.
    """

    groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    resource_names: tuple[str, ...] = ()

    def as_object(self) -> dict[str, Any]:
        """Return the rule as the API knows it."""
        rule: dict[str, Any] = {
            "apiGroups": list(self.groups),
            "resources": list(self.resources),
            "verbs": list(self.verbs),
        }
        if self.resource_names:
            rule["resourceNames"] = list(self.resource_names)
        return rule


OPERATOR_RULES: Final = (
    Rule(groups=(names.API_GROUP,), resources=("sandboxes", "repos"), verbs=("list", "watch")),
)
"""The ClusterRole `jr2-manager-role`: the operator reads both kinds in every namespace."""

ORCHESTRATOR_RULES: Final = (
    Rule(
        groups=("",),
        resources=("configmaps",),
        verbs=("list", "watch"),
        resource_names=(names.IMAGES_MAP, names.HELD_MAP),
    ),
)
"""The Role `jr2-orchestrator`: two maps of its own namespace, watched by name."""

REPO_CACHE_RULES: Final = (
    Rule(groups=(names.API_GROUP,), resources=("repos",), verbs=("list", "watch")),
    Rule(groups=(names.API_GROUP,), resources=("repos/status",), verbs=("patch",)),
)
"""The Role `jr2-repo-cache`: the Repos of its own namespace, and what each node says of them."""
