"""What a look at the cluster gave, and the plan that is made once every Lease is held.

Source: design §5.1 and §5.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import assembly
from .facts.cluster import Contact
from .leases import Leases
from .objects import Wants
from .plan import ConvergePlan
from .rules import KitRefs


def plan_under(
    leases: Leases, plan: ConvergePlan, plan_again: Callable[[], ConvergePlan]
) -> ConvergePlan:
    """Return a plan that was made while every Lease was held that its writes need.

    Args:
        leases: what is held: the Lease of the Instance's namespace.
        plan: the plan that was made without a Lease.
        plan_again: reads the cluster and plans.

    Raises:
        Jr2Error: another run holds `jr2-system`, or the plan refuses.
    """
    while True:
        if plan.writes_shared and not leases.shares:
            leases.hold_shared()
        plan = plan_again()
        # What the Instances share may differ only since the first look.
        if leases.shares or not plan.writes_shared:
            return plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one look at the cluster gave: the facts, and the plan that they make.

    Args:
        contact: what the first contact said.
        wants: what the Instance wants.
        refs: the Kit images.
        staged: the Assembly, for the nodes' platform.
        plan: the plan, made without a Lease.
    """

    contact: Contact
    wants: Wants
    refs: KitRefs
    staged: assembly.StagedAssembly
    plan: ConvergePlan
