"""What Machines carry, in short."""

from __future__ import annotations

from typing import Literal

from jr2.walk import WalkedAgent, WalkedEffect, WalkedParts

Place = Literal["harness", "sandbox-effector", "instance-effector", "orchestrator"]


def agent(model: str = "anthropic/claude-haiku-5-5", slot: str = "writer") -> WalkedAgent:
    return WalkedAgent(slot=slot, model=model, workspace="none")


def effect(secret: str | None, place: Place = "instance-effector") -> WalkedEffect:
    return WalkedEffect(slot="notify", kind="http", place=place, secret=secret)


def parts(*, agents: list[WalkedAgent] | None = None, effects: list[WalkedEffect] | None = None,
          menu_only: bool = True) -> WalkedParts:  # fmt: skip
    """Return the parts of a Machine with one Agent on the Instance Harness."""
    return WalkedParts(
        agents=[agent()] if agents is None else agents,
        effects=effects or [],
        menu_only=menu_only,
    )
