"""A Workspace over https that it pushes, so that its Instance has a token, a Repo cache and secrets."""

from pydantic import BaseModel

from jr2 import Context, Machine, Push, WorkspaceSpec, workspace


class Door(BaseModel):
    branch: str


class Ctx(Context):
    pass


body = Machine("shipper", inside=Door, context=Ctx, start=lambda i: Ctx())
pushing, done = body.state("pushing", initial=True), body.final("done")
pushing.run(body.effect("ship", Push(repo="app"))).done(to=done).failed(to=done)

machine = workspace(
    body.build(),
    door=Door,
    repos={"app": "https://git.example/you/app.git"},
    spec=lambda door: WorkspaceSpec(branch=door.branch),
)
