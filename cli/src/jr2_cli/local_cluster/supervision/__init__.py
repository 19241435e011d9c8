"""One detached process that keeps other processes running; it knows nothing of Kubernetes.

`plan` is what it is told and what it says, `supervisor` is the process itself, and `remains` is what
the rest of the command asks and does when there is none.

Source: design §7.
"""
