"""The Machine that `workspace()` puts around a body: the life of one Sandbox as states.

    placing → provisioning → attaching → running (the body) → teardown → done

`placing` waits for a node, with no deadline; the rest is work that the Orchestrator does for the
state. A body that faults is not caught: the run faults, and the Sandbox stays to be looked at.

Source: spec/authoring.md §2.10, spec/runtime.md §5.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from pydantic import BaseModel, JsonValue
from pydantic.errors import PydanticUserError

from .. import accepted, kept
from ..built import BuiltMachine
from ..chart import (
    Action,
    Chart,
    ChildMachine,
    Invocation,
    InvocationKind,
    Node,
    Transition,
)
from ..errors import BuildRefused
from ..run_data import Context
from .opening import Opening, is_open
from .repos import RepoValue
from .sizes import ResourcesValue, read
from .workspace_run import WorkspaceContext, begin, inside
from .workspaces import (
    Inside,
    S,
    SandboxParts,
    UserContainer,
    WorkspaceSpec,
    Worktrees,
    image_problem,
    repos_problems,
    user_problems,
)

C = TypeVar("C", bound=Context)
D = TypeVar("D", bound=BaseModel)
O = TypeVar("O")  # noqa: E741 - what a run ends with

BODY: Final = "body"
"""The slot of the body in the wrapper; `customize` does not see it."""
LIFE: Final = ("placing", "provisioning", "attaching")
"""The states before the body runs, each one piece of work that the Orchestrator does."""
_WHO: Final = "workspace()"


def workspace(
    body: BuiltMachine[Inside[D, S], C, O],
    *,
    door: type[D],
    repos: Mapping[str, RepoValue[D]] | Opening,
    spec: Callable[[D], WorkspaceSpec],
    image: str | None = None,
    effector: str | None = None,
    user: str | UserContainer | None = None,
    resources: ResourcesValue | None = None,
) -> BuiltMachine[D, Context, O]:
    """Return a Machine that makes a Sandbox, runs a body in it, and removes the Sandbox.

    Args:
        body: the Machine inside; it has no door of its own, for nothing would serve it.
        door: the model of what starts a run.
        repos: what each Repo Slot resolves to, or `OPEN` for a composer to name the slots. The
            order is kept.
        spec: makes the branch, and what else a run decides, from the door.
        image: the Sandbox Image: `context(__file__, "<dir>")` or an image of a registry. The
            Instance's `images/default` when absent.
        effector: the image of the Sandbox's Effector; the Sandbox Image when absent.
        user: an image of your own beside the Agent.
        resources: the Size; each field that is absent comes from the config.

    Raises:
        BuildRefused: a part breaks its rules; the text has a line for each.
    """
    if not isinstance(body, BuiltMachine):
        raise BuildRefused(f"workspace() is given {body!r}: give what .build() returned")
    container, user_size, of_user = user_problems(user)
    size, of_size = ({}, []) if resources is None else read(resources)
    images = (("image", image), ("effector", effector))
    problems = [
        *_body_problems(body, door),
        *(f"has {problem}" for problem in repos_problems(repos, who=_WHO)),
        *_slot_problems(body, repos),
        *([] if callable(spec) else [f"has spec={spec!r}: give a function of the door"]),
        *(
            f"has {problem}"
            for what, value in images
            if value is not None and (problem := image_problem(what, value)) is not None
        ),
        *(f"has {problem}" for problem in (*of_user, *of_size)),
    ]
    if problems:
        raise BuildRefused(*(f'workspace() of machine "{body.id}" {one}' for one in problems))
    slots: Mapping[Any, Any] | Opening = repos
    parts = SandboxParts(
        body=body,
        door=door,
        image=image,
        user=container,
        user_size=user_size,
        resources=((_WHO, size),) if size else (),
        repos=slots if is_open(slots) else MappingProxyType(dict(slots)),
        spec=spec,
        effector=effector,
    )
    return _wrapped(body.id, parts)


def _body_problems(body: BuiltMachine[Any, Any, Any], door: Any) -> Iterator[str]:
    if body.sandbox is not None:
        yield "is given a workspace(): one Machine has one Sandbox around it"
    elif body.door is not None:
        yield (
            f"is given a body with the door {body.door.__qualname__} of its own, which would never "
            "be served: give the body inside= in place of door="
        )
    if not isinstance(door, type) or not issubclass(door, BaseModel):
        yield f"has the door {door!r}: a door is a pydantic model"
        return
    if body.inside is not None and not issubclass(door, body.inside.door):
        yield (
            f"has the door {door.__qualname__}, and its body is written for "
            f"{body.inside.door.__qualname__}"
        )
    try:
        accepted.schema(door)
    except (PydanticUserError, TypeError, ValueError) as bad:
        yield f"cannot say what the door takes: {bad}"


def _slot_problems(body: BuiltMachine[Any, Any, Any], repos: Any) -> Iterator[str]:
    """Refuse slots that are not those which the body names."""
    named = () if body.inside is None else body.inside.slots
    if is_open(repos) and named:
        yield (
            f"leaves its Repo Slots open, and its body names {', '.join(named)}: a body of open "
            "slots names none"
        )
    elif isinstance(repos, Mapping):
        missing = [slot for slot in named if slot not in repos]
        if missing:
            yield (
                f"has no Repo Slot {', '.join(missing)}, which its body names "
                f"(it has: {', '.join(repos)})"
            )


def rebuilt(
    machine: BuiltMachine[Any, Any, Any], parts: SandboxParts
) -> BuiltMachine[Any, Any, Any]:
    """Return a `workspace()` with other parts; its shape is the same."""
    return _wrapped(machine.id, parts)


def _wrapped(id: str, parts: SandboxParts) -> BuiltMachine[Any, Any, Any]:
    return BuiltMachine(
        _chart(id, parts),
        parts.door,
        tasks={},
        children={BODY: parts.body},
        sandbox=parts,
        output=parts.body.output,
    )


def _chart(id: str, parts: SandboxParts) -> Chart:
    body = parts.body.chart
    running = len(LIFE) + 1
    teardown, done = running + 1, running + 2
    nodes = [
        Node(
            index=0,
            kind="compound",
            path=(),
            parent=None,
            children=tuple(range(1, done + 1)),
            initial=(1,),
        ),
        *(_work(index, name, to=index + 1) for index, name in enumerate(LIFE, 1)),
        Node(
            index=running,
            kind="atomic",
            path=("running",),
            parent=0,
            transitions=(_ended(running, "child", "running", BODY, teardown, _keep(body)),),
            invocations=(
                _invocation("child", "running", BODY, lambda context: context, slot=BODY),
            ),
        ),
        _work(teardown, "teardown", to=done),
        Node(
            index=done,
            kind="final",
            path=("done",),
            parent=0,
            output=(lambda context: context.output) if body.encode_output is not None else None,
        ),
    ]
    return Chart(
        id=id,
        nodes=tuple(nodes),
        context=WorkspaceContext,
        start=lambda start: begin(id, parts, start, kept.write_model(start.door)),
        # The body's output is JSON already: it was kept in the context.
        encode_output=None if body.encode_output is None else _same,
        decode_output=body.decode_output,
        children=MappingProxyType(
            {BODY: ChildMachine(chart=body, start=lambda context: _inside(parts, context))}
        ),
    )


def _inside(parts: SandboxParts, context: WorkspaceContext) -> Inside[Any, Worktrees]:
    return inside(context, kept.read_model(parts.door, context.door))


def _work(index: int, name: str, *, to: int) -> Node:
    """Return a state that waits for one piece of work on the Sandbox."""
    return Node(
        index=index,
        kind="atomic",
        path=(name,),
        parent=0,
        transitions=(_ended(index, "sandbox", name, name, to),),
        invocations=(_invocation("sandbox", name, name, _asked, slot=name),),
    )


def _invocation(
    kind: InvocationKind, state: str, id: str, input: Callable[[Any], Any], *, slot: str
) -> Invocation:
    return Invocation(
        id=id,
        kind=kind,
        slot=slot,
        input=input,
        encode_input=_same,
        decode_output=_same,
        done=f"done.{kind}.{state}.{id}",
        failed=f"error.{kind}.{state}.{id}",
        actor=id if kind == "child" else "",
    )


def _ended(
    source: int, kind: InvocationKind, state: str, id: str, to: int, *actions: Action
) -> Transition:
    return Transition(
        source=source,
        event=f"done.{kind}.{state}.{id}",
        targets=(to,),
        actions=actions,
    )


def _keep(body: Chart) -> Action:
    """Return what keeps the body's output in the context, as JSON."""
    encode = body.encode_output or _same
    return Action("assign", lambda context, output: context.set(output=encode(output)))


def _asked(context: WorkspaceContext) -> JsonValue:
    """Return what the Orchestrator is asked to make: what the run decided, and nothing else."""
    asked: JsonValue = context.model_dump(
        mode="json", include={"branch", "work_group", "review_sha", "repos"}
    )
    return asked


def _same(value: Any) -> Any:
    return value
