"""A run that waits at a Gate until somebody says go."""

from pydantic import BaseModel

from jr2 import Context, ExternalEvent, Machine


class Go(ExternalEvent):
    """Let the run end."""

    word: str


class Ctx(Context):
    word: str = ""


class Out(BaseModel):
    word: str


m = Machine("parked", context=Ctx, output=Out, start=lambda i: Ctx())
waiting = m.state("waiting", initial=True)
done = m.final("done", lambda c: Out(word=c.word))
waiting.gate(meta=lambda c: {"ask": "a word"})
waiting.on(Go, to=done, assign=lambda c, e: c.set(word=e.word))
machine = m.build()
