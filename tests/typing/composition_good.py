"""Machines that carry others, and stand-ins for a test: each line here type-checks."""

from __future__ import annotations

from pydantic import BaseModel

from jr2 import (
    AgentEvent,
    AgentFault,
    BuiltMachine,
    Command,
    CommandInput,
    CommandResult,
    Context,
    Machine,
    Turn,
    customize,
)


class Question(BaseModel):
    text: str


class Answer(BaseModel):
    yes: bool


class Asked(Context):
    text: str


class Ctx(Context):
    change: str
    approved: bool = False
    notes: str = ""


class Finish(AgentEvent):
    summary: str


ask = Machine(
    "ask", door=Question, context=Asked, output=Answer, start=lambda i: Asked(text=i.door.text)
)
ask.state("asking", initial=True)
ask.final("yes", lambda c: Answer(yes=c.text != ""))
asked: BuiltMachine[Question, Asked, Answer] = ask.build()

m = Machine("release", context=Ctx, start=lambda i: Ctx(change=i.run_id))
approval = m.child("approval", asked)
again = m.child("again", customize(asked))
coder = m.agent("coder", model="local/qwen", workspace="none", instructions="x")
tests = m.effect("tests", Command(argv=["make"]))
waiting, done = m.state("waiting", initial=True), m.final("done")
waiting.invoke(approval, lambda c: Question(text=c.change)).done(
    to=done, guard=lambda c, answer: answer.yes, assign=lambda c, answer: c.set(approved=answer.yes)
).failed(to=done, assign=lambda c, error: c.set(notes=error.reason))
waiting.invoke(asked, lambda c: Question(text=c.change), id="inline").done(
    to=done, guard=lambda c, answer: answer.yes
)
waiting.turn(coder, lambda c: Turn(prompt=c.change)).on(Finish, to=done).on(AgentFault, to=done)
machine: BuiltMachine[object, Ctx, None] = m.build()


def picks(turn: Turn) -> Finish | AgentFault:
    if turn.continue_:
        return AgentFault(instance_id="i", reason=turn.prompt)
    return Finish(summary=turn.prompt)


def ran(given: CommandInput) -> CommandResult:
    return CommandResult(exit_code=len(given.args))


faked = machine.provide(
    agents={"coder": picks},
    effects={"tests": ran},
    tasks={"double": lambda n: n, "nothing": lambda: None},
    actors={"approval": {"tasks": {"t": len}}},
)
retuned = customize(machine, actors={"approval": {"agents": {"coder": {"model": "x/y"}}}})
