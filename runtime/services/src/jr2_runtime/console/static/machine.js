// A Machine document as boxes and arrows, and which of them a run lights. Pure: no element, no request.
//
// A box has a key that no other one has: the path of its state, and before it, for a state of a child
// Machine, the key of the state that invokes it. So one Machine that two states invoke has two boxes.

const HELD = { child: true, pool: true };

/**
 * Return `{root, arrows, keys}` of a document.
 *
 * A box is `{key, kind, title, lines, boxes, state, machine, folds}`; kinds are those of the chart,
 * besides `machine`, `initial` and `any`. `folded(key, depth)` says whether a child Machine is drawn
 * as one box. An arrow is `{from, to, labels, kind}`.
 */
export function picture(document, folded) {
  const arrows = new Map();
  const opaque = [];
  const root = machineBox(document, { key: "", prefix: "", title: document.machine, depth: 0 });
  root.kind = "root";
  return { root, arrows: [...arrows.values()], opaque };

  function machineBox(machine, { key, prefix, title, depth, slot = null }) {
    const box = { key, kind: "machine", title, lines: [], boxes: [], slot, folds: depth > 0, depth };
    if (depth > 0 && folded(key, depth, machine)) {
      box.folded = true;
      return box;
    }
    for (const state of ordered(machine.states, machine.initial)) box.boxes.push(stateBox(machine, state, prefix, depth));
    begin(machine.states, machine.initial, prefix, key, box);
    leave(machine, machine, key, prefix, box);
    return box;
  }

  function stateBox(machine, state, prefix, depth) {
    const key = prefix + state.id;
    const box = { key, kind: state.type, title: state.key, lines: [], boxes: [], state };
    if (state.gate) box.lines.push({ icon: "⚑", text: gateName(state), what: "gate" });
    for (const one of state.invokes) {
      const child = HELD[one.kind] ? machine.machines[one.src] : undefined;
      if (child === undefined) {
        box.lines.push({ icon: ICONS[one.kind] ?? "⚙", text: `${one.kind} ${one.src}`, what: one.kind });
        continue;
      }
      const place = `${key}/${one.id}`;
      const title = one.kind === "pool" ? `${child.machine} × n` : child.machine;
      const held = { key: place, prefix: `${place}:`, title, depth: depth + 1, slot: one.src };
      box.boxes.push(machineBox(child, held));
    }
    if (machine.opaqueStates.includes(state.id)) {
      box.opaque = true;
      opaque.push(state.id);
    }
    if (state.type === "history") {
      box.title = state.deep ? "H*" : "H";
      box.name = state.key;
      for (const target of state.default ?? []) arrow(key, prefix + target, "at first", "default");
    }
    for (const inner of ordered(state.states ?? [], state.initial)) box.boxes.push(stateBox(machine, inner, prefix, depth));
    if (state.type !== "parallel" && state.states) begin(state.states, state.initial, prefix, key, box);
    leave(machine, state, key, prefix, box);
    return box;
  }

  /** The dot that leads to the first state. */
  function begin(states, initial, prefix, key, box) {
    const first = states.find((state) => state.key === initial);
    if (first === undefined) return;
    const dot = `${key}>`;
    box.boxes.unshift({ key: dot, kind: "initial", title: "", lines: [], boxes: [] });
    arrow(dot, prefix + first.id, null, "initial");
  }

  /** The transitions of a state; one that leads into the state itself begins at a box "any state". */
  function leave(machine, source, key, prefix, box) {
    for (const transition of source.on) {
      const label = eventLabel(transition, source);
      if (transition.targets.length === 0) {
        box.lines.push({ icon: "↺", text: `${label} (stays)`, what: "stays" });
      }
      for (const target of transition.targets) {
        const to = prefix + target;
        const isInside = box.boxes.length > 0 && (source === machine || target.startsWith(`${source.id}.`));
        if (!isInside) {
          arrow(key, to, label, "on");
          continue;
        }
        const any = `${key}*`;
        if (!box.boxes.some((one) => one.key === any)) {
          box.boxes.push({ key: any, kind: "any", title: "any state", lines: [], boxes: [] });
        }
        arrow(any, to, label, "on");
      }
    }
  }

  function arrow(from, to, label, kind) {
    const name = JSON.stringify([from, to, kind]);
    const known = arrows.get(name) ?? { name, from, to, labels: [], kind };
    if (label !== null && !known.labels.includes(label)) known.labels.push(label);
    arrows.set(name, known);
  }
}

/** Return states in the order in which transitions reach them from the first one, so that arrows go on. */
function ordered(states, initial) {
  const found = new Set();
  const reach = (state) => {
    if (found.has(state)) return;
    found.add(state);
    for (const target of [state, ...flat(state.states ?? [])].flatMap((one) => one.on.flatMap((on) => on.targets))) {
      const next = states.find((one) => target === one.id || target.startsWith(`${one.id}.`));
      if (next !== undefined) reach(next);
    }
  };
  states.filter((state) => state.key === initial).forEach(reach);
  // A parallel state has no first one, and its regions keep their order.
  return initial ? [...found, ...states.filter((state) => !found.has(state))] : states;
}

const ICONS = { task: "⚙", effect: "⚡", turn: "✦", sandbox: "▣" };

function gateName(state) {
  const { id, accepts } = state.gate;
  const name = id === null ? "Gate" : id === state.id ? "Gate" : `Gate ${id}`;
  return accepts.length > 0 ? `${name}: ${accepts.join(", ")}` : name;
}

/** Return what an arrow says of its event. */
export function eventLabel(transition, source) {
  const { event, guarded } = transition;
  const id = source.id ?? "";
  let label = event;
  if (event === "") label = "always";
  else if (event === "*") label = "any event";
  else if (event.startsWith("after.")) label = "after a time";
  else if (event === `done.state.${id}`) label = "done";
  else {
    const found = /^(done|error)\.([a-z]+)\./.exec(event);
    if (found && event.startsWith(`${found[0]}${id}.`)) {
      const what = event.slice(found[0].length + id.length + 1);
      label = `${what} ${found[1] === "done" ? "done" : "failed"}`;
    }
  }
  return guarded ? `${label} [guard]` : label;
}

/**
 * Return what a run lights: a map from the keys of active boxes to how many children are in each.
 * `value` is `{state: …}` around a name, as in an observation.
 */
export function lights(document, value, children = [], status = "active") {
  const lit = new Map();
  if (document) {
    add("");
    machine(document, value, children, "");
  }
  return lit;

  function add(key) {
    lit.set(key, (lit.get(key) ?? 0) + 1);
  }

  function machine(part, at, actors, prefix) {
    states(part, part.states, at, actors, prefix);
  }

  function states(part, among, at, actors, prefix) {
    const names = typeof at === "string" ? { [at]: null } : (at ?? {});
    for (const state of among) {
      if (!Object.hasOwn(names, state.key)) continue;
      add(prefix + state.id);
      invoked(part, state, actors, prefix);
      if (state.states) states(part, state.states, names[state.key], actors, prefix);
    }
  }

  function invoked(part, state, actors, prefix) {
    for (const one of state.invokes) {
      const child = HELD[one.kind] ? part.machines[one.src] : undefined;
      if (child === undefined) continue;
      for (const actor of actors) {
        if (actor.src !== one.src || actor.status !== "active") continue;
        const key = `${prefix}${state.id}/${one.id}`;
        add(key);
        machine(child, actor.value, actor.children ?? [], `${key}:`);
      }
    }
  }
}

/** Return the key of the box at which a Gate is parked, or null when the picture has none. */
export function parkedAt(document, value, children, path) {
  return document ? within(document, value, children ?? [], path, "") : null;

  function within(machine, at, actors, rest, prefix) {
    const id = rest.join(".");
    if (find(machine.states, id)) return prefix + id;
    const actor = actors.find((one) => one.id === rest[0]);
    if (actor === undefined) return null;
    for (const state of flat(machine.states)) {
      for (const one of state.invokes) {
        if (one.src !== actor.src || !HELD[one.kind] || !machine.machines[one.src]) continue;
        const inner = `${prefix}${state.id}/${one.id}:`;
        return within(machine.machines[one.src], actor.value, actor.children ?? [], rest.slice(1), inner);
      }
    }
    return null;
  }
}

function find(states, id) {
  return flat(states).find((state) => state.id === id);
}

function flat(states) {
  return states.flatMap((state) => [state, ...flat(state.states ?? [])]);
}

/** Return a value of active states as one short text, such as `checking.lint.linting + checking.test`. */
export function valueText(value) {
  const leaves = [];
  const walk = (at, before) => {
    if (typeof at === "string") leaves.push([...before, at]);
    else if (at && typeof at === "object") {
      const names = Object.keys(at);
      if (names.length === 0 && before.length > 0) leaves.push(before);
      for (const name of names) walk(at[name], [...before, name]);
    }
  };
  walk(value, []);
  return leaves.map((names) => names.join(".")).join(" + ");
}

/** How many states a Machine has, those of its children counted. */
export function size(machine) {
  const inner = Object.values(machine.machines).reduce((sum, one) => sum + size(one), 0);
  return flat(machine.states).length + inner;
}
