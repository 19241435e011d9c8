"""Who besides the Instance's own pods may connect to its Orchestrator.

Source: design §6.3, ADR-0142.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from .config_names import Labels
from .config_part import Part, as_tuple, legal_label, quoted, wrong_shape


def _network(text: str | None) -> str | None:
    if text is not None:
        try:
            ipaddress.ip_network(text)
        except ValueError:
            raise wrong_shape(
                f'{quoted(text)} is no range of addresses — write one such as "10.0.0.0/8"'
            ) from None
    return text


class AllowFrom(Part):
    """Pods, or addresses, that may connect.

    Args:
        namespace: of the pods; the Instance's own when it is absent.
        pods: the labels that they have; every pod of the namespace when it is absent.
        cidr: a range of addresses, in place of pods.
    """

    namespace: Annotated[str | None, AfterValidator(legal_label)] = None
    pods: Labels = Field(default_factory=dict)
    cidr: Annotated[str | None, AfterValidator(_network)] = None

    @model_validator(mode="after")
    def _pods_or_addresses(self) -> AllowFrom:
        pods = self.namespace is not None or bool(self.pods)
        if pods == (self.cidr is not None):
            raise wrong_shape(
                "needs pods (namespace, pods or both) or cidr" + (", not both" if pods else "")
            )
        return self


class Network(Part):
    """Who may connect to the Orchestrator.

    Args:
        allow_from: besides the pods that call it by themselves.
    """

    allow_from: Annotated[Sequence[AllowFrom], AfterValidator(as_tuple)] = ()
