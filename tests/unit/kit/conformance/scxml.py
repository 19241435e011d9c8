"""Translates an SCXML document of the W3C cases into a chart of the kernel.

States, transitions, history and invocations become the chart's own; the kernel decides everything
about them. Only the content of the data model is interpreted here: an executable block is an
`assign` that evaluates it, followed by a `raise` of the internal events and an `emit` of the
external ones that it made. What is sent is delivered by the driver, which has the clock and the
queue of external events.

A document that needs more than jr2 has (`<finalize>`, another event processor, XML as data) raises
`Unsupported`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from xml.etree import ElementTree

from pydantic import JsonValue

from jr2 import Start
from jr2.chart import Action, Chart, ChildMachine, Invocation, Kind, Node, Raised, Transition

from .data_model import PROCESSOR, Block, Model, Sent, Stop, event, pack, scope_of, unpack
from .expressions import UNDEFINED, ScriptError, Unsupported, evaluate, truthy

ROOT_SESSION: Final = "main"
INVOKE_TYPES: Final = (None, "scxml", "http://www.w3.org/TR/scxml", "http://www.w3.org/TR/scxml/")
_STATES: Final = ("state", "parallel", "final", "history")

Element = ElementTree.Element


def translate(document: Path) -> Chart:
    """Return the chart of a document."""
    return _Document(ElementTree.parse(document).getroot(), document.parent).chart()


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _children(element: Element, *tags: str) -> list[Element]:
    return [child for child in element if isinstance(child.tag, str) and _tag(child) in tags]


def _ids(text: str) -> list[str]:
    return text.split()


def seconds(text: str) -> float:
    """Return a delay such as `1.5s` or `200ms` in seconds."""
    number = re.fullmatch(r"\s*(\d*\.?\d+)\s*(ms|s)\s*", text)
    if number is None:
        raise ScriptError(f"{text!r} is no delay")
    return float(number[1]) / (1000 if number[2] == "ms" else 1)


@dataclass(eq=False)
class _State:
    """A state element, its number, and those inside it."""

    element: Element
    id: str
    kind: Kind
    index: int = 0
    parent: _State | None = None
    children: list[_State] = field(default_factory=list)


class _Document:
    """One document while it is translated."""

    def __init__(self, root: Element, folder: Path, invokeid: str | None = None) -> None:
        self.root = root
        self.folder = folder
        self.invokeid = invokeid
        self.late = root.get("binding") == "late"
        self.states: list[_State] = []
        self.by_id: dict[str, _State] = {}
        self.charts: dict[str, ChildMachine] = {}
        self._number(root, None)

    def _number(self, element: Element, parent: _State | None) -> None:
        tag = _tag(element)
        inner = _children(element, *_STATES)
        kind: Kind = "compound"
        if tag == "parallel":
            kind = "parallel"
        elif tag == "final":
            kind = "final"
        elif tag == "history":
            kind = "history"
        elif tag == "state" and not inner:
            kind = "atomic"
        index = len(self.states)
        state = _State(element, element.get("id") or f"state{index}", kind, index, parent)
        self.states.append(state)
        if parent is not None:
            self.by_id[state.id] = state
            parent.children.append(state)
        for child in inner:
            self._number(child, state)

    def chart(self) -> Chart:
        return Chart(
            id="scxml",
            nodes=tuple(self._node(state) for state in self.states),
            context=Model,
            start=self._start,
            encode_output=pack,
            decode_output=self._done,
            children=MappingProxyType(self.charts),
        )

    # --- the data model ---------------------------------------------------------------------------
    def _start(self, first: Start[Any]) -> Model:
        given = first.door if isinstance(first.door, dict) else {}
        model = Model(
            session=given.get("session", ROOT_SESSION),
            name=self.root.get("name", ""),
            data={
                element.get("id", ""): pack(UNDEFINED)
                for element in self.root.iter()
                if _is(element, "data")
            },
        )
        block = Block(model, None)
        params: dict[str, Any] = given.get("params", {})
        for element in self.root.iter():
            if not _is(element, "data"):
                continue
            id_ = element.get("id", "")
            is_top = any(element in list(top) for top in _children(self.root, "datamodel"))
            if is_top and id_ in params:
                block.scope.data[id_] = unpack(params[id_])
            elif not self.late or is_top:
                block.attempt(partial(self._fill, block, element))
        for script in _children(self.root, "script"):
            block.attempt(partial(block.script, script, self.folder))
        return block.close().set(fresh=True)

    def _fill(self, block: Block, element: Element) -> None:
        block.scope.data[element.get("id", "")] = self._value(block, element)

    def _value(self, block: Block, element: Element) -> Any:
        """Return the value of `<data>`, `<content>` or `<assign>`: an expression, a file or text."""
        if element.get("expr") is not None:
            return block.value(element.get("expr", ""))
        source = element.get("src")
        if source is not None:
            return _literal((self.folder / source.removeprefix("file:")).read_text(), block)
        if len(element):
            raise Unsupported("XML as data")
        return (
            UNDEFINED if not (element.text or "").strip() else _literal(element.text or "", block)
        )

    def _done(self, output: JsonValue) -> Any:
        name = f"done.invoke.{self.invokeid}"
        done = unpack(output)
        data = done["data"] if isinstance(done, dict) else UNDEFINED
        return event(name, "external", data, invokeid=self.invokeid)

    # --- nodes ------------------------------------------------------------------------------------
    def _node(self, state: _State) -> Node:
        element = state.element
        initial: tuple[int, ...] = ()
        initial_actions: tuple[Action, ...] = ()
        if state.kind == "compound":
            initial, initial_actions = self._initial(state)
        elif state.kind == "history":
            (default,) = _children(element, "transition")
            initial, initial_actions = self._targets(default), self._actions([default])
        return Node(
            index=state.index,
            kind=state.kind,
            path=() if state.parent is None else (state.id,),
            parent=None if state.parent is None else state.parent.index,
            children=tuple(child.index for child in state.children),
            initial=initial,
            initial_actions=initial_actions,
            deep=element.get("type") == "deep",
            transitions=() if state.kind == "history" else tuple(self._transitions(state)),
            entry=self._entry(state),
            exit=self._exit(state),
            invocations=tuple(self._invocations(state)),
            output=(lambda model: unpack(model.done)) if state.kind == "final" else None,
        )

    def _initial(self, state: _State) -> tuple[tuple[int, ...], tuple[Action, ...]]:
        for initial in _children(state.element, "initial"):
            (transition,) = _children(initial, "transition")
            return self._targets(transition), self._actions([transition])
        named = state.element.get("initial")
        if named is not None:
            return tuple(self.by_id[id_].index for id_ in _ids(named)), ()
        first = next(child for child in state.children if child.kind != "history")
        return (first.index,), ()

    def _targets(self, transition: Element) -> tuple[int, ...]:
        return tuple(self.by_id[id_].index for id_ in _ids(transition.get("target", "")))

    def _transitions(self, state: _State) -> Iterator[Transition]:
        for element in _children(state.element, "transition"):
            condition = element.get("cond")
            actions = self._actions([element])
            for descriptor in _descriptors(element.get("event")):
                yield Transition(
                    source=state.index,
                    event=descriptor,
                    targets=self._targets(element),
                    internal=element.get("type") == "internal",
                    guard=None if condition is None else _guard(condition),
                    actions=actions,
                )

    def _entry(self, state: _State) -> tuple[Action, ...]:
        if state.parent is None or state.kind == "history":
            return ()
        first = [element for top in _children(state.element, "datamodel") for element in top]

        def enter(block: Block) -> None:
            block.active = (*block.active, state.id)
            if self.late and state.id not in block.visited:
                block.visited = (*block.visited, state.id)
                for element in first:
                    block.attempt(partial(self._fill, block, element))

        found = _actions(enter)
        for onentry in _children(state.element, "onentry"):
            found += self._actions([onentry])
        if state.kind == "final":
            found += _actions(lambda block: self._give(block, state))
        for number, invoke in enumerate(_children(state.element, "invoke")):
            location = invoke.get("idlocation")
            if location is not None:
                id_ = _invokeid(state, invoke, number)
                found += _actions(partial(_write, location, id_))
        return found

    def _exit(self, state: _State) -> tuple[Action, ...]:
        found: tuple[Action, ...] = ()
        for onexit in _children(state.element, "onexit"):
            found += self._actions([onexit])

        def leave(block: Block) -> None:
            block.active = tuple(id_ for id_ in block.active if id_ != state.id)

        return found + _actions(leave)

    def _give(self, block: Block, state: _State) -> None:
        """Work out `<donedata>` at the entry into a final state."""
        data: Any = UNDEFINED
        try:
            for donedata in _children(state.element, "donedata"):
                data = self._payload(block, donedata)
        except ScriptError:
            block.throw(event("error.execution", "platform"))
        parent = state.parent.id if state.parent is not None else ""
        block.done = event(f"done.state.{parent}", "platform", data)

    # --- executable content -----------------------------------------------------------------------
    def _actions(self, blocks: list[Element]) -> tuple[Action, ...]:
        def content(block: Block) -> None:
            for element in blocks:
                block.attempt(partial(self._execute_all, block, element))

        return _actions(content)

    def _execute_all(self, block: Block, element: Element) -> None:
        for child in element:
            if isinstance(child.tag, str):
                self._execute(block, child)

    def _execute(self, block: Block, element: Element) -> None:
        tag = _tag(element)
        if tag == "raise":
            block.throw(event(element.get("event", ""), "internal"))
        elif tag == "assign":
            block.write(element.get("location", ""), self._value(block, element))
        elif tag == "log":
            if element.get("expr") is not None:
                block.value(element.get("expr", ""))
        elif tag == "script":
            block.script(element, self.folder)
        elif tag == "if":
            self._if(block, element)
        elif tag == "foreach":
            self._foreach(block, element)
        elif tag == "send":
            self._send(block, element)
        elif tag == "cancel":
            id_ = element.get("sendid") or block.value(element.get("sendidexpr", ""))
            block.sent.append({"cancel": id_})
        else:
            raise Unsupported(f"<{tag}>")

    def _if(self, block: Block, element: Element) -> None:
        takes = truthy(block.value(element.get("cond", "")))
        for child in element:
            tag = _tag(child)
            if tag in ("elseif", "else"):
                if takes:
                    return
                takes = tag == "else" or truthy(block.value(child.get("cond", "")))
            elif takes:
                self._execute(block, child)

    def _foreach(self, block: Block, element: Element) -> None:
        listed = block.value(element.get("array", ""))
        if not isinstance(listed, list):
            raise ScriptError("foreach over something that is no array")
        for name in filter(None, (element.get("item"), element.get("index"))):
            if not re.fullmatch(r"[A-Za-z_$][\w$]*", name):
                raise ScriptError(f"{name!r} is no name")
            block.scope.data.setdefault(name, UNDEFINED)
        for number, value in enumerate(list(listed)):
            block.write(element.get("item", ""), value)
            if element.get("index") is not None:
                block.write(element.get("index", ""), number)
            self._execute_all(block, element)

    def _send(self, block: Block, element: Element) -> None:
        def named(name: str) -> Any:
            expression = element.get(f"{name}expr")
            return element.get(name) if expression is None else block.value(expression)

        id_ = element.get("id")
        if element.get("idlocation") is not None:
            block.ids += 1
            id_ = f"send{block.ids}"
            block.write(element.get("idlocation", ""), id_)
        processor, target = named("type"), named("target")
        known = {} if id_ is None else {"sendid": id_}
        if processor is not None and "basichttp" in processor.lower():
            raise Unsupported("the BasicHTTP event processor")
        if processor not in (None, "scxml", PROCESSOR) or (target or "#").startswith("!"):
            block.throw(event("error.execution", "platform", **known))
            raise Stop
        name = named("event")
        data = self._payload(block, element)
        delay = named("delay")
        wait = 0.0 if delay is None else seconds(delay)
        if target == "#_internal":
            block.throw(event(name, "internal", data, **known))
            return
        origin = f"#_scxml_{block.session}"
        if target in (origin, None):
            to = block.session
        elif target == "#_parent":
            to = ROOT_SESSION
        elif str(target).startswith("#_scxml_"):
            block.throw(event("error.communication", "platform", **known))
            raise Stop
        elif str(target).startswith("#_"):
            to = target[2:]
        else:
            block.throw(event("error.execution", "platform", **known))
            raise Stop
        known |= {"origin": origin, "origintype": PROCESSOR}
        if target == "#_parent":
            known["invokeid"] = block.session
        block.sent.append(
            {
                "send": pack(event(name, "external", data, **known)),
                "id": id_,
                "delay": wait,
                "to": to,
                "from": block.session,
            }
        )

    def _payload(self, block: Block, element: Element) -> Any:
        """Return the data of `<send>`, `<donedata>` or `<invoke>`."""
        for content in _children(element, "content"):
            return self._value(block, content)
        found: dict[str, Any] = {}
        for name in _ids(element.get("namelist", "")):
            found[name] = block.value(name)
        for param in _children(element, "param"):
            try:
                found[param.get("name", "")] = block.value(
                    param.get("expr") or param.get("location") or ""
                )
            except ScriptError:
                if _tag(element) == "donedata":
                    # The parameter is left out, and the rest goes on.
                    block.throw(event("error.execution", "platform"))
                    continue
                raise
        return found or UNDEFINED

    # --- invocations ------------------------------------------------------------------------------
    def _invocations(self, state: _State) -> Iterator[Invocation]:
        for number, element in enumerate(_children(state.element, "invoke")):
            if _children(element, "finalize") or element.get("autoforward") == "true":
                raise Unsupported("<finalize> and autoforward")
            kind = element.get("type")
            if kind not in INVOKE_TYPES or element.get("typeexpr") is not None:
                raise Unsupported(f"an invocation of type {kind!r}")
            id_ = _invokeid(state, element, number)
            document = self._invoked(element)
            self.charts[id_] = ChildMachine(
                chart=_Document(document, self.folder, id_).chart(),
                start=lambda value: Start(door=value, run_id=""),
            )
            yield Invocation(
                id=id_,
                kind="child",
                slot=id_,
                input=partial(self._given, element, id_),
                encode_input=pack,
                decode_output=unpack,
                done=f"done.invoke.{id_}",
                failed=f"error.invoke.{id_}",
                actor=id_,
            )

    def _invoked(self, element: Element) -> Element:
        source = element.get("src")
        if source is not None:
            return ElementTree.parse(self.folder / source.removeprefix("file:")).getroot()
        for content in _children(element, "content"):
            for document in _children(content, "scxml"):
                return document
        raise Unsupported("an invocation whose document is an expression")

    def _given(self, element: Element, id_: str, model: Model) -> Any:
        block = Block(model, None)
        inner = Element(element.tag, element.attrib)
        inner.extend(_children(element, "param"))
        params = self._payload(block, inner)
        return {"session": id_, "params": pack({} if params is UNDEFINED else params)}


def _actions(content: Callable[[Block], None]) -> tuple[Action, ...]:
    def act(model: Model, happened: Any) -> Model:
        block = Block(model, happened)
        content(block)
        return block.close()

    return (
        Action("assign", act),
        Action("raise", lambda model, _: tuple(_internal(one) for one in model.raised)),
        Action("emit", lambda model, _: tuple(Sent(what=one) for one in model.sent)),
    )


def _internal(packed: JsonValue) -> Raised:
    happened = unpack(packed)
    return Raised(happened["name"], happened)


def _write(location: str, value: str, block: Block) -> None:
    block.write(location, value)


def _guard(condition: str) -> Callable[[Any, Any], bool]:
    def allows(model: Model, happened: Any) -> bool:
        try:
            known = unpack(model.event) if happened is None else happened
            return truthy(evaluate(condition, scope_of(model, known)))
        except ScriptError:
            return False

    return allows


def _descriptors(text: str | None) -> Iterator[str]:
    if text is None:
        yield ""
        return
    for word in _ids(text):
        name = word.removesuffix(".*").removesuffix(".") or "*"
        yield name
        if name != "*":
            yield f"{name}.*"


def _invokeid(state: _State, element: Element, number: int) -> str:
    return element.get("id") or f"{state.id}.invoke{number}"


def _literal(text: str, block: Block) -> Any:
    """Return what a text in the document stands for: JSON, an expression, or the text itself."""
    stripped = text.strip()
    if stripped.startswith("<"):
        raise Unsupported("XML as data")
    try:
        return json.loads(stripped)
    except ValueError:
        pass
    try:
        return block.value(stripped)
    except (ScriptError, Unsupported):
        return " ".join(stripped.split())


def _is(element: Element, tag: str) -> bool:
    return isinstance(element.tag, str) and _tag(element) == tag
