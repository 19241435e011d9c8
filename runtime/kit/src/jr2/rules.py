"""The rules that only a whole Machine can answer; the build says every one that is not met.

What one statement can answer, such as a bad name, is noted where it is written down, and said
first: a Machine that is misspelt is not asked what it means.

Source: spec/authoring.md §2.2, §2.3, §2.6, §2.8.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from pydantic import BaseModel
from pydantic.errors import PydanticUserError

from . import accepted, field_names
from .addresses import addresses
from .chart import Chart
from .drafts import GateDraft, StateDraft, TransitionDraft, address, external, picks, vocabulary
from .events import Event, event_name, semantics
from .run_data import Context
from .together import Users


def problems(
    root: StateDraft,
    *,
    with_output: bool,
    door: type[BaseModel] | None,
    context: type[Context],
    charts: Mapping[str, Chart],
) -> Iterator[str]:
    """Yield each rule that a Machine does not meet, in document order.

    Args:
        root: the Machine.
        with_output: whether it says what a run ends with.
        door: of the Machine.
        context: of the Machine.
        charts: the Machines that it composes, by slot.
    """
    if not root.children:
        yield root.said("has no states")
    for field in _with_sets(context):
        yield root.said(
            f'has a set in the field "{field}" of {context.__name__}: a set has no order, so two '
            "processes would write it differently — use a tuple or a list"
        )
    if door is not None:
        yield from _schema(root, "the door", door)
    for problem in field_names.unknown_in_methods(context):
        yield root.said(f"has a context that sets a field of its own in {problem}")
    yield from _unknown_fields(root, context)
    actors, gates = Users(), Users()
    for draft in root.down():
        for problem in _state(draft, with_output=with_output):
            yield draft.said(problem)
        for problem in _shared(draft, actors=actors, gates=gates, charts=charts):
            yield draft.said(problem)
    yield from _vocabulary(root)


def _unknown_fields(root: StateDraft, context: type[Context]) -> Iterator[str]:
    """Refuse a field of the context that a function sets and that there is not."""
    read: set[object] = set()
    for draft in root.down():
        told = [(f'on "{one.event}"', one.actions) for one in draft.transitions]
        for where, actions in (*told, ("at its entry", draft.entry), ("at its exit", draft.exit)):
            for action in actions:
                if action.run in read:
                    continue
                read.add(action.run)
                for problem in field_names.unknown(action.run, context):
                    yield draft.said(f"sets a field {where} in {problem}")


def _with_sets(context: type[BaseModel]) -> Iterator[str]:
    """Yield the fields of a context that hold a set, at whatever depth."""
    try:
        whole = accepted.schema(context)
    except (PydanticUserError, TypeError, ValueError):
        # A context needs no schema: nobody outside reads it.
        return
    named = whole.get("$defs", {})
    for name, part in whole.get("properties", {}).items():
        if _has_set(part, named, set()):
            yield name


def _has_set(part: object, named: dict[str, object], seen: set[str]) -> bool:
    if isinstance(part, list):
        return any(_has_set(one, named, seen) for one in part)
    if not isinstance(part, dict):
        return False
    ref = str(part.get("$ref", "")).rpartition("/")[2]
    if ref and ref not in seen:
        return _has_set(named.get(ref), named, seen | {ref})
    return part.get("uniqueItems") is True or any(
        _has_set(one, named, seen) for key, one in part.items() if key not in ("default", "$defs")
    )


def _state(draft: StateDraft, *, with_output: bool) -> Iterator[str]:
    yield from _inside(draft)
    for transition in draft.transitions:
        yield from _targets(draft, transition)
        if transition.event == f"done.state.{draft.id}" and not draft.children:
            yield (
                "has .done(…) and no states of its own, so nothing completes it: a task's "
                ".done(…) is chained to .run(…)"
            )
    if draft.kind == "final" and draft.parent is draft.root:
        if with_output and draft.output is None:
            yield "is final without an output, and the Machine declares output="
        if not with_output and draft.output is not None:
            yield "has an output, and the Machine declares no output="
    if draft.gate is not None:
        yield from _gate(draft, draft.gate)
    yield from _turns(draft)


def _inside(draft: StateDraft) -> Iterator[str]:
    """Say what is wrong with what a state has inside, by its kind."""
    regions = draft.regions()
    listed = ", ".join(child.key for child in regions)
    if draft.kind == "compound" and draft.children and not any(one.initial for one in regions):
        if regions:
            yield f"has no initial state: give one of its states initial=True ({listed})"
        else:
            yield "has a history and no states of its own to enter"
    if draft.kind == "parallel":
        if not regions:
            yield "is parallel and has no states inside, so it would be complete at once"
        for child in regions:
            if child.initial:
                yield f'is parallel, so each of its states is entered: "{child.key}" is not initial'
            if child.kind == "final":
                yield (
                    f'is parallel and has the final state "{child.key}": it is done when each of '
                    "its states is"
                )
    if draft.kind == "history":
        default, parent = draft.default, draft.parent
        if default is not None and (default is parent or parent not in [*default.up()]):
            yield f'has the default "{default.id}", which is not inside the state around it'


def _targets(draft: StateDraft, transition: TransitionDraft) -> Iterator[str]:
    """Say what is wrong with where a transition leads."""
    for target in transition.targets:
        if target.root is not draft.root:
            yield (
                f'goes to state "{target.id}" of another machine, "{target.machine}", on '
                f'"{transition.event}"'
            )
            return
    for one, other in combinations(transition.targets, 2):
        if not one.is_with(other):
            yield (
                f'goes to "{one.id}" and "{other.id}" on "{transition.event}", which are never '
                "active at once"
            )


def _shared(
    draft: StateDraft, *, actors: Users, gates: Users, charts: Mapping[str, Chart]
) -> Iterator[str]:
    """Refuse names that two states have which may be active at once: a run is addressed by them.

    Args:
        draft: the next state in document order.
        actors: the states before it by the children that they invoke.
        gates: the states before it by the addresses of their Gates, and of those in the Machines
            that they invoke.
        charts: the Machines that are invoked, by slot.
    """
    for one in draft.invocations:
        if one.kind != "child":
            continue
        other = actors.with_(one.actor, draft)
        actors.add(one.actor, draft)
        if other is not None:
            yield (
                f'invokes the child "{one.actor}", and so does state "{other.id}", which may '
                "be active at once: give one of them an id="
            )
            continue
        for gate in () if one.slot not in charts else addresses(charts[one.slot], [one.actor]):
            other = gates.with_(gate, draft)
            if other is not None:
                yield (
                    f'invokes the child "{one.actor}", which has the Gate "{gate}", and so has '
                    f'the state "{other.id}", which may be active at once'
                )
            gates.add(gate, draft)
    if draft.gate is None:
        return
    called = address(draft)
    if not isinstance(called, str):
        return
    around = [
        above
        for above in list(draft.up())[1:]
        if above.gate is not None and address(above) == called
    ]
    for above in around:
        yield f'has a Gate "{called}", and so has the state "{above.id}" around it'
    other = gates.beside(called, draft) if around else gates.with_(called, draft)
    if other is not None:
        whose = (
            "a Machine that it invokes"
            if other is draft
            else f'the state "{other.id}", which may be active at once'
        )
        yield f'has a Gate "{called}", and so has {whose}'
    gates.add(called, draft)


def _gate(draft: StateDraft, gate: GateDraft) -> Iterator[str]:
    heard = external(draft)
    if gate.accepts is None and not heard:
        yield (
            "has a Gate that accepts nothing: neither it nor a state around it handles an event "
            "that may come from outside"
        )
    if gate.accepts is not None and not gate.accepts:
        yield "has a Gate with an empty accepts="
    for event in gate.accepts or ():
        if event not in heard:
            listed = ", ".join(event_name(one) for one in heard) or "none"
            yield (
                f'has a Gate that accepts "{event_name(event)}", which it does not handle '
                f"from outside (handled: {listed})"
            )


def _turns(draft: StateDraft) -> Iterator[str]:
    """Refuse an Agent that is offered nothing where the states inside would hear its picks."""
    turns = [one.slot for one in draft.invocations if one.kind == "turn"]
    if not turns or picks(draft):
        return
    buried = dict.fromkeys(
        event_name(event) for below in draft.down() if below is not draft for event in picks(below)
    )
    if buried:
        for slot in turns:
            yield (
                f'asks the Agent "{slot}", which could pick nothing here: only states inside '
                f"handle {', '.join(buried)} — handle them on this state, or ask the Agent on the "
                "state that does"
            )


def _vocabulary(root: StateDraft) -> Iterator[str]:
    known: dict[str, type[Event]] = {}
    for draft in root.down():
        for event in dict.fromkeys(one.event_class for one in draft.transitions):
            if event is None:
                continue
            name = event_name(event)
            first = known.setdefault(name, event)
            if first is not event:
                yield draft.said(
                    f'handles two event classes called "{name}": {first.__qualname__} and '
                    f"{event.__qualname__}"
                )
    for event in vocabulary(root):
        if semantics(event) != "ack":
            yield root.said(
                f'handles the event "{event_name(event)}" with semantics="{semantics(event)}", '
                'which is reserved and not built yet: only "ack" is delivered'
            )
        yield from _schema(root, f'the event "{event_name(event)}"', event)


def _schema(root: StateDraft, what: str, model: type[BaseModel]) -> Iterator[str]:
    """Refuse a model that has no JSON Schema, for then nobody can be told what it takes."""
    try:
        accepted.schema(model)
    except (PydanticUserError, TypeError, ValueError) as bad:
        yield root.said(f"cannot say what {what} takes: {str(bad).splitlines()[0]}")
