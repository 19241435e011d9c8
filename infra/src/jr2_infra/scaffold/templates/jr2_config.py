"""What this Instance declares: reach and credentials. The Machines declare the rest."""

from jr2 import Config, Git, GitCredential

config = Config(
    name="@name@",
    git=Git(
        credentials=[
            # `*` lets the input of a run name any repository. Narrow it to a prefix of yours, such
            # as "github.com/<you>/", before anybody whom you do not trust can start a run.
            # JR2_GIT_TOKEN is a variable of .env, and jr2-git-ssh a Secret of the namespace.
            GitCredential(match="*", token="JR2_GIT_TOKEN", ssh_key="jr2-git-ssh"),
        ],
    ),
    # The Size of a Sandbox whose Workspace states none (import Sandbox and Size from jr2):
    # sandbox=Sandbox(resources=Size(memory="2Gi", cpu="1")),
)
