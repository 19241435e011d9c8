"""Texts that would be markup, scripts and more, wherever an author's text is shown."""

from __future__ import annotations

from pydantic import BaseModel, Field

from jr2 import Context, ExternalEvent, Machine

ATTACK = '<img src=x onerror="globalThis.pwned=1"><script>globalThis.pwned=1</script>'


class Door(BaseModel):
    """<b>Door</b> <script>globalThis.pwned=1</script>."""

    text: str = Field(default=ATTACK, title=ATTACK, description=ATTACK)


class HostileEvent(ExternalEvent):
    __doc__ = ATTACK

    word: str = Field(default=ATTACK, title=ATTACK, description="javascript:globalThis.pwned=1")


class Ctx(Context):
    """The data."""

    text: str
    by_name: dict[str, str]


m = Machine(
    "hostile-machine",
    door=Door,
    context=Ctx,
    start=lambda i: Ctx(text=i.door.text, by_name={ATTACK: ATTACK, "__proto__": "x"}),
)
state = m.state("hostile-state", initial=True)
end = m.final("hostile-end")
state.gate(gate="<img src=x onerror=globalThis.pwned=1>", meta=lambda c: {ATTACK: [ATTACK]})
state.on(HostileEvent, to=end)
machine = m.build()
