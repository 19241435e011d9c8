"""One state after the other, more than a page shows at once."""

from __future__ import annotations

from jr2 import Context, ExternalEvent, Machine


class Next(ExternalEvent):
    """Go on."""


class Last(ExternalEvent):
    """Go to the last but one."""


m = Machine("chain", context=Context, start=lambda i: Context())
states = [m.state(f"step-{at}", initial=at == 0) for at in range(30)]
end = m.final("end")
for here, there in zip(states, [*states[1:], end], strict=True):
    here.gate(gate="step").on(Next, to=there)
states[0].on(Last, to=states[-1])
machine = m.build()
