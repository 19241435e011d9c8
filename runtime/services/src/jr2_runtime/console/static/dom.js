// Elements made from plain values.
//
// Nothing here, and nothing in the Console, makes markup of a text: what a run, a Machine or a person
// wrote goes into text nodes and attributes alone. Names of elements and attributes are ours.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    } else if (value === true) {
      node.setAttribute(name, "");
    } else if (value !== false && value !== null && value !== undefined) {
      node.setAttribute(name, String(value));
    }
  }
  node.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return node;
}

/** Return an HTML element; a child is a node, or a text that is shown as it is. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Return an SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Return a button that does no more than call its handler. */
export function button(label, handler, attributes = {}) {
  return el("button", { type: "button", on: { click: handler }, ...attributes }, label);
}

/**
 * Make the children of `parent` those of `items`, in their order. What is there already is updated
 * and keeps its focus; what is gone is removed.
 */
export function keyed(parent, items, key, create, update) {
  const there = new Map([...parent.children].map((node) => [node.dataset.key, node]));
  const nodes = items.map((item) => {
    const name = key(item);
    let node = there.get(name);
    if (node === undefined) {
      node = create(item);
      node.dataset.key = name;
    }
    return node;
  });
  renew(parent, nodes);
  nodes.forEach((node, number) => update(node, items[number]));
}

/**
 * Make the children of `parent` these nodes. One that stays is not taken out for a moment: it would
 * lose its focus, and a click that has begun on it.
 */
export function renew(parent, nodes) {
  const kept = new Set(nodes);
  for (const node of [...parent.childNodes]) if (!kept.has(node)) node.remove();
  let next = parent.firstChild;
  for (const node of nodes) {
    if (node === next) next = next.nextSibling;
    else parent.insertBefore(node, next);
  }
}

/** Set a text only when it is another one, so that a reader's selection is left alone. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Call a function once before the next picture, however often it is asked for. */
export function coalesced(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    // A hidden page gets no pictures, and is up to date all the same when it is looked at.
    const run = () => {
      asked = false;
      draw();
    };
    if (document.hidden) setTimeout(run, 50);
    else requestAnimationFrame(run);
  };
}
