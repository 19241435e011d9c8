"""A Machine with a Sandbox, so that its Instance has a Repo cache."""

from pydantic import BaseModel

from jr2 import AgentEvent, AgentFault, Machine, Turn, WorkspaceSpec, workspace


class Door(BaseModel):
    branch: str = "main"


class Done(AgentEvent):
    """The work is done."""


m = Machine("repos_body")
coder = m.agent("coder", model="local/qwen", instructions="Fix it.", workspace="write")
coding, done = m.state("coding", initial=True), m.final("done")
coding.turn(coder, lambda c: Turn(prompt="Fix the test.")).on(Done, to=done).on(AgentFault, to=done)
machine = workspace(
    m.build(),
    door=Door,
    repos={"app": "https://github.com/acme/app.git"},
    spec=lambda door: WorkspaceSpec(branch=door.branch),
)
