"""A Machine with a Menu-only Agent, whose Turns run on the Instance Harness."""

from jr2 import AgentEvent, AgentFault, Machine, Turn


class Sorted(AgentEvent):
    """The ticket has a place."""


m = Machine("menu")
triager = m.agent("triager", model="local/qwen", instructions="Sort it.", workspace="none")
sorting, done = m.state("sorting", initial=True), m.final("done")
sorting.turn(triager, lambda c: Turn(prompt="Where does it belong?")).on(Sorted, to=done).on(
    AgentFault, to=done
)
machine = m.build()
