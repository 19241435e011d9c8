"""Mistakes in composed Machines and stand-ins: each line that ends in `# refused` has a type error,
and no other has.
"""

from __future__ import annotations

from pydantic import BaseModel

from jr2 import AgentEvent, Command, CommandInput, CommandResult, Context, Machine, Turn, customize


class Question(BaseModel):
    text: str


class Answer(BaseModel):
    yes: bool


class Asked(Context):
    text: str


class Ctx(Context):
    change: str
    notes: str = ""


class Finish(AgentEvent):
    summary: str


ask = Machine(
    "ask", door=Question, context=Asked, output=Answer, start=lambda i: Asked(text=i.door.text)
)
ask.state("asking", initial=True)
ask.final("yes", lambda c: Answer(yse=True))  # refused
asked = ask.build()

m = Machine("release", context=Ctx, start=lambda i: Ctx(change=i.run_id))
m.child("unbuilt", ask)  # refused
approval = m.child("approval", asked)
tests = m.effect("tests", Command(argv=["make"]))
waiting, done = m.state("waiting", initial=True), m.final("done")

waiting.invoke(approval, lambda c: Question(txt=c.change))  # refused
waiting.invoke(approval, lambda c: Question(text=c.chnge))  # refused
waiting.invoke(approval, lambda c: c.change)  # refused
waiting.invoke(ask, lambda c: Question(text=c.change))  # refused
ran = waiting.invoke(approval, lambda c: Question(text=c.change))
ran.done(to=done, guard=lambda c, answer: answer.yse)  # refused
ran.done(to=asked)  # refused
ran.failed(to=done, assign=lambda c, error: c.set(notes=error.raeson))  # refused
machine = m.build()


def picks(turn: str) -> Finish:
    return Finish(summary=turn)


def no_event(turn: Turn) -> str:
    return turn.prompt


def no_result(given: CommandInput) -> str:
    return str(given.cwd)


def misspelt(turn: Turn) -> Finish:
    return Finish(summary=turn.promt)  # refused


def results(given: CommandInput) -> CommandResult:
    return CommandResult(exitcode=len(given.args))  # refused


machine.provide(agents={"coder": picks})  # refused
machine.provide(agents={"coder": no_event})  # refused
machine.provide(effects={"tests": no_result})  # refused
machine.provide(agent={"coder": misspelt})  # refused
machine.provide(actors={"approval": {"task": {}}})  # refused
customize(m, agents={})  # refused
customize(machine, actors={"approval": {"agents": {"coder": {"mdoel": "x/y"}}}})  # refused
