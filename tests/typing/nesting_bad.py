"""Mistakes with states inside states and with other Machines: each line that ends in `# refused` has
a type error, and no other has.
"""

from __future__ import annotations

from pydantic import BaseModel

from jr2 import Context, ExternalEvent, Machine


class Item(BaseModel):
    name: str


class Ctx(Context):
    total: int = 0
    by: str | None = None


class Other(Context):
    n: int = 0


class Pause(ExternalEvent):
    why: str


child = Machine("child", door=Item, context=Ctx, output=int, start=lambda i: Ctx(by=i.door.name))
counted = child.final("counted", lambda c: c.total)
child.state("counting", initial=True).always(to=counted)
built = child.build()

m = Machine("m", context=Ctx, output=str, start=lambda i: Ctx())
both = m.parallel("both", initial=True)
left, right = both.state("left"), both.state("right", output=int)
here, there = left.state("here", initial=True), left.state("there")
working, finished = right.state("working", initial=True), right.final("finished", lambda c: c.total)
back = both.history("back", deep=True)
paused, done = m.state("paused"), m.final("done", lambda c: c.by or "")
other = Machine("other", context=Other, start=lambda i: Other()).state("other", initial=True)

both.histroy("again")  # refused
both.parrallel("x")  # refused
m.state("x", paralel=True)  # refused
m.state("y", inital=True)  # refused
both.history("z", deep="yes")  # refused
both.history("w", default="here")  # refused
right.final("odd", lambda c: c.by)  # refused
right.done(to=paused, guard=lambda c, n: n.total > 3)  # refused
right.done(to=paused, assign=lambda c, n: c.set(total=n.x))  # refused
here.on(Pause, to=other)  # refused
here.on(Pause, to=(there, other))  # refused
here.on(Pause, to=there, raise_=lambda c, e: Pause(why=e.wy))  # refused
here.on(Pause, to=there, raise_=lambda c, e: e.why)  # refused
here.on(Pause, too=back)  # refused
paused.entry(assign=lambda c: c.set(total=c.totla))  # refused
paused.exit(assign=lambda c: c.total)  # refused
one = m.child("one", built)
m.child("two", child)  # refused
m.child(one, built)  # refused
here.invoke("one")  # refused
here.invoke(one, lambda c: Ctx())  # refused
here.invoke(one, lambda c: Item(nam=c.by))  # refused
here.invoke(one, lambda c: Item(name=c.yb))  # refused
ran = here.invoke(one, lambda c: Item(name="x"))
ran.done(to=there, guard=lambda c, n: n.x)  # refused
ran.failed(to=there, guard=lambda c, e: e.raeson == "")  # refused
here.each(one, lambda c: {"x": Ctx()})  # refused
here.each(one, lambda c: [Item(name="x")])  # refused
