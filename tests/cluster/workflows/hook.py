"""A Machine with an Effect that reads no file of a Worktree: it runs in the Instance Effector."""

from jr2 import Http, HttpInput, Machine

m = Machine("hook")
tell = m.effect("tell", Http(url="https://example.com/hook"))
telling, done = m.state("telling", initial=True), m.final("done")
telling.run(tell, lambda c: HttpInput(json_body={"text": "hi"})).done(to=done).failed(to=done)
machine = m.build()
