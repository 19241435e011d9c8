"""Write the Roles of docs/rights.md anew from what the Converge asks for.

Run it after a change of the closed list or of `jr2_infra.access.grants`; a contract test says when.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from jr2_infra import access
from jr2_infra.access import Grant

PAGE = Path(__file__).resolve().parents[1] / "docs" / "rights.md"
NAMESPACE = "my-instance"
SUBJECT = {"kind": "User", "name": "somebody", "apiGroup": "rbac.authorization.k8s.io"}
BLOCK = re.compile(r"(<!-- rights: (?P<name>[a-z-]+) -->\n)```yaml\n.*?```", re.DOTALL)


def grants() -> dict[str, tuple[Grant, ...]]:
    """Return what each block of the page grants."""
    both = access.converge(NAMESPACE, shared=True)
    own = access.converge(NAMESPACE, shared=False)
    return {
        "converge": own,
        "shared": tuple(grant for grant in both if grant not in own),
        "preview": access.preview(NAMESPACE),
        "use": access.use(NAMESPACE),
        "remove": access.remove(NAMESPACE),
    }


def block(name: str) -> str:
    """Return the YAML of one block."""
    objects = access.manifests(f"jr2-{name}", grants()[name], namespace=NAMESPACE, subject=SUBJECT)
    return yaml.safe_dump_all(objects, sort_keys=False, default_flow_style=None, width=100)


def render(text: str) -> str:
    """Return the page with its blocks as they should be."""
    return BLOCK.sub(lambda found: f"{found[1]}```yaml\n{block(found['name'])}```", text)


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
