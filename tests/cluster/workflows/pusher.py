"""A Workspace with a Repo over https, which it pushes, and one over ssh."""

from __future__ import annotations

from pydantic import BaseModel

from jr2 import Context, Machine, Push, WorkspaceSpec, workspace


class Door(BaseModel):
    branch: str


class Ctx(Context):
    pass


body = Machine("pusher", inside=Door, context=Ctx, start=lambda i: Ctx())
pushing, done = body.state("pushing", initial=True), body.final("done")
pushing.run(body.effect("ship", Push(repo="app"))).done(to=done).failed(to=done)

machine = workspace(
    body.build(),
    door=Door,
    repos={
        "app": "https://git.example/you/app.git",
        "docs": "git@git.example:you/docs.git",
        "tools": "ssh://git@git.example/tools/all",
    },
    spec=lambda door: WorkspaceSpec(branch=door.branch),
)
