"""Sizes: the memory and cpu of a whole Sandbox, and what is left of them for the Harness container.

A Size is stated field by field: `customize` over `workspace()` over the config's
`sandbox.resources` over the Kit. Each container's request equals its limit, so what the others get
is gone for the Harness, which is where the Agent works.

Source: spec/authoring.md §2.10 (Size rules), design §3.1 (Size), ADR-0060.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, TypedDict

from .. import quantity
from ..config import Size

Field = Literal["memory", "cpu"]
FIELDS: Final[tuple[Field, ...]] = ("memory", "cpu")


class Limits(TypedDict, total=False):
    """The two fields of a Size, as a pod states them."""

    memory: str
    cpu: str


class Resources(TypedDict):
    """A Size as a pod states it; `Size(memory="4Gi", cpu="2")` says the same."""

    limits: Limits


ResourcesValue = Size | Resources
"""What `resources=` takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """What one container gets, and who says so."""

    name: str
    memory: str
    cpu: str
    source: str


KIT: Final = "kit"
KIT_SIZE: Final[Mapping[Field, str]] = {"memory": "2Gi", "cpu": "1"}
CUSTODIAN: Final = Slice(name="Custodian", memory="64Mi", cpu="50m", source=KIT)
EFFECTOR: Final = Slice(name="Effector", memory="64Mi", cpu="50m", source=KIT)
HARNESS_FLOOR: Final = "256Mi"
SHM_FLOOR: Final = "64Mi"
SHM_SHARE: Final = Fraction(1, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """One field of a Size as somebody stated it."""

    amount: str
    source: str
    """The field that set it, as a person finds it: `resources.memory of workspace()`, or `kit`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A Size with what each container gets of it."""

    memory: Stated
    cpu: Stated
    slices: tuple[Slice, ...]
    """What the other containers get, in the order in which a refusal subtracts them."""

    @property
    def harness_memory(self) -> Fraction:
        """What is left for the Harness container, in bytes; negative when there is not enough."""
        return quantity.parse(self.memory.amount) - sum(
            (quantity.parse(one.memory) for one in self.slices), Fraction(0)
        )

    @property
    def harness_cpu(self) -> Fraction:
        """What is left for the Harness container, in cpus; negative when there is not enough."""
        return quantity.parse(self.cpu.amount) - sum(
            (quantity.parse(one.cpu) for one in self.slices), Fraction(0)
        )

    @property
    def short(self) -> tuple[Field, ...]:
        """The fields that leave the Harness container too little."""
        memory = self.harness_memory < quantity.parse(HARNESS_FLOOR)
        found: list[Field] = ["memory"] if memory else []
        return (*found, "cpu") if self.harness_cpu <= 0 else tuple(found)

    @property
    def shm(self) -> Fraction:
        """The bytes of `/dev/shm`: a quarter of the Harness share, and at least 64Mi."""
        return max(quantity.parse(SHM_FLOOR), self.harness_memory * SHM_SHARE)


def read(value: Any) -> tuple[dict[Field, str], list[str]]:
    """Return the fields that a `resources=` states, and what is wrong with it.

    Args:
        value: a `Size`, or `{"limits": {"memory": …, "cpu": …}}`.
    """
    if isinstance(value, Size):
        stated: Mapping[Any, Any] = {
            name: amount for name, amount in value.__dict__.items() if amount is not None
        }
    elif isinstance(value, Mapping):
        if "requests" in value:
            return {}, ["resources with requests: every request equals its limit"]
        more = [name for name in value if name != "limits"]
        if more or not isinstance(value.get("limits"), Mapping):
            what = f"the field {more[0]!r}" if more else "no limits"
            return {}, [f'resources with {what}: give {{"limits": {{"memory": …, "cpu": …}}}}']
        stated = value["limits"]
    else:
        return {}, [f"resources={value!r}: give a Size(memory=…, cpu=…)"]
    fields: dict[Field, str] = {}
    found = []
    for name, amount in stated.items():
        if name == "requests":
            found.append("resources with requests: every request equals its limit")
        elif name not in FIELDS:
            found.append(f"resources with the field {name!r}: a Size has memory and cpu")
        else:
            try:
                text = quantity.spell(amount)
                quantity.positive(text)
            except quantity.QuantityError as wrong:
                found.append(f"resources.{name}: {wrong}")
            else:
                fields[name] = text
    return fields, found


def resolve(
    layers: tuple[tuple[str, Mapping[Field, str]], ...], sandbox: Size | None
) -> dict[Field, Stated]:
    """Return who states each field of a Size.

    Args:
        layers: who states what, the strongest first, such as `("customize()", {"cpu": "2"})`.
        sandbox: the config's `sandbox.resources`.
    """
    found: dict[Field, Stated] = {}
    for field in FIELDS:
        stated = [
            Stated(amount=fields[field], source=f"resources.{field} of {who}")
            for who, fields in layers
            if field in fields
        ]
        default = None if sandbox is None else getattr(sandbox, field)
        if default is not None:
            stated.append(Stated(amount=default, source=f"sandbox.resources.{field}"))
        found[field] = [*stated, Stated(amount=KIT_SIZE[field], source=KIT)][0]
    return found


def refusal(split: Split) -> str | None:
    """Return what is wrong with a split, from `the Size leaves …` to the field to make larger."""
    if not split.short:
        return None
    total = (
        f"{split.memory.amount}/{split.cpu.amount} "
        f"({_sources(split.memory.source, split.cpu.source)})"
    )
    minus = ", ".join(f"{one.name} {one.memory}/{one.cpu} ({one.source})" for one in split.slices)
    larger = " and ".join(_larger(getattr(split, field).source, field) for field in split.short)
    return (
        f"the Size leaves the Harness container {_memory(split.harness_memory)} memory and "
        f"{_cpu(split.harness_cpu)} cpu, and it needs {HARNESS_FLOOR} and more than 0 cpu: "
        f"{total} minus {minus}; make {larger} larger"
    )


def _sources(memory: str, cpu: str) -> str:
    return memory if memory == cpu else f"{memory}, {cpu}"


def _larger(source: str, field: Field) -> str:
    # The Kit's own default is not a field of anybody: the config's is what stands above it.
    return f"sandbox.resources.{field}" if source == KIT else source


def _memory(value: Fraction) -> str:
    return f"-{quantity.format_memory(-value)}" if value < 0 else quantity.format_memory(value)


def _cpu(value: Fraction) -> str:
    return f"-{quantity.format_cpu(-value)}" if value < 0 else quantity.format_cpu(value)
