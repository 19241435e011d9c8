// Places for boxes and arrows: ELK, in a worker of its own, so that a large Machine does not hold up
// the page. What goes there and comes back is plain numbers and keys.

import { PATIENCE } from "./http.js";

const CHARACTER = { title: 13, line: 11, label: 11 };
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const WIDEST = 320;
export const LINE = 17;
export const TITLE = 30;

const SPACING = {
  "elk.spacing.nodeNode": 26,
  "elk.spacing.edgeNode": 18,
  "elk.spacing.edgeEdge": 14,
  "elk.spacing.edgeLabel": 3,
  "elk.spacing.labelLabel": 2,
  "elk.layered.spacing.nodeNodeBetweenLayers": 30,
  "elk.layered.spacing.edgeNodeBetweenLayers": 16,
  "elk.layered.spacing.edgeEdgeBetweenLayers": 12,
};
const OPTIONS = {
  "elk.algorithm": "layered",
  "elk.hierarchyHandling": "INCLUDE_CHILDREN",
  "elk.edgeRouting": "ORTHOGONAL",
  "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES",
  "elk.layered.nodePlacement.strategy": "BRANDES_KOEPF",
  "elk.layered.nodePlacement.bk.fixedAlignment": "BALANCED",
  "elk.layered.cycleBreaking.strategy": "MODEL_ORDER",
  "elk.layered.edgeLabels.centerLabelPlacementStrategy": "SPACE_EFFICIENT_LAYER",
  "elk.separateConnectedComponents": false,
  "org.eclipse.elk.json.shapeCoords": "ROOT",
  "org.eclipse.elk.json.edgeCoords": "ROOT",
  ...SPACING,
};

/** The layout did not come; asked again it may. */
export class Lost extends Error {}

const SCRIPT = "/assets/elk-worker.min.js";
// The one script that may become a worker; the page's policy lets no other text be one, and lets no
// second policy have this name.
const policy = globalThis.trustedTypes?.createPolicy("jr2-worker", { createScriptURL: () => SCRIPT });

let worker = null;
/** Whether the script is known to have come. */
let isThere = false;
let number = 0;
const waiting = new Map();

function elk() {
  if (worker !== null) return worker;
  worker = new Worker(policy ? policy.createScriptURL(SCRIPT) : SCRIPT);
  worker.onmessage = ({ data }) => {
    const asked = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.error) asked?.reject(new Error(data.error.message ?? "the layout failed"));
    else asked?.resolve(data.data);
  };
  worker.onerror = (event) => {
    // A script that runs says what went wrong in it; one that did not come says nothing.
    const failed = event instanceof ErrorEvent ? new Error(event.message) : new Lost("the layout did not load");
    for (const asked of waiting.values()) asked.reject(failed);
    waiting.clear();
    worker = null;
    isThere = false;
  };
  worker.postMessage({ id: -1, cmd: "register", algorithms: ["layered"] });
  return worker;
}

/**
 * Have the script come. Of half a head a browser makes an empty one and keeps it, and a worker that
 * runs nothing says nothing.
 */
async function fetched() {
  if (isThere) return;
  try {
    for (const cache of ["default", "reload"]) {
      const answer = await fetch(SCRIPT, { cache, signal: AbortSignal.timeout(PATIENCE) });
      isThere = answer.ok && (await answer.arrayBuffer()).byteLength > 0;
      if (isThere) return;
    }
  } catch {
    // It is lost as one that is empty is.
  }
  throw new Lost("the layout did not load");
}

/**
 * Return the places of a picture: `boxes` by key with `x`, `y`, `width` and `height`, `arrows` by name
 * with `points` and the place of their label, and the size of it all. It goes down or to the right,
 * whatever lets more be read in a room of `width` and `height`.
 */
export async function place(picture, room) {
  const down = await laid(picture, "DOWN");
  if (fits(down, room) >= 1) return down;
  const right = await laid(picture, "RIGHT");
  return fits(right, room) > fits(down, room) * 1.1 ? right : down;
}

/** How large a picture can be shown, with 1 for its natural size. */
function fits({ width, height }, room) {
  return Math.min(room.width / width, room.height / height);
}

async function laid(picture, direction) {
  const order = new Map();
  const walk = (box) => {
    order.set(box.key, order.size);
    box.boxes.forEach(walk);
  };
  walk(picture.root);
  // An arrow that goes back is laid out the other way round, so that the picture follows the order of
  // its boxes, whatever cycles there are.
  const back = new Set();
  for (const { name, from, to } of picture.arrows) if (order.get(to) < order.get(from)) back.add(name);
  const graph = {
    id: "root",
    layoutOptions: { ...OPTIONS, "elk.direction": direction },
    children: [node(picture.root)],
    edges: picture.arrows.map((arrow) => ({
      id: arrow.name,
      sources: [id(back.has(arrow.name) ? arrow.to : arrow.from)],
      targets: [id(back.has(arrow.name) ? arrow.from : arrow.to)],
      labels: label(arrow),
    })),
  };
  await fetched();
  const placed = await new Promise((resolve, reject) => {
    number += 1;
    const own = elk();
    waiting.set(number, { resolve, reject });
    own.postMessage({ id: number, cmd: "layout", graph, layoutOptions: {}, options: {} });
  });
  const boxes = new Map();
  const take = (one) => {
    boxes.set(one.id.slice(2), { x: one.x, y: one.y, width: one.width, height: one.height });
    for (const inner of one.children ?? []) take(inner);
  };
  placed.children.forEach(take);
  const arrows = new Map();
  for (const edge of placed.edges) {
    const [section] = edge.sections ?? [];
    if (section === undefined) continue;
    const points = [section.startPoint, ...(section.bendPoints ?? []), section.endPoint];
    if (back.has(edge.id)) points.reverse();
    arrows.set(edge.id, { points, label: edge.labels?.[0] ?? null });
  }
  return { boxes, arrows, width: placed.width, height: placed.height };
}

/** Keys are made of names that are any text; ELK's own id is "root". */
function id(key) {
  return `b:${key}`;
}

function node(box) {
  if (box.kind === "initial") {
    const first = { "elk.layered.layering.layerConstraint": "FIRST" };
    return { id: id(box.key), width: 12, height: 12, layoutOptions: first };
  }
  if (box.kind === "history") return { id: id(box.key), width: 30, height: 30 };
  if (box.kind === "any") return { id: id(box.key), width: measure("any state", "label") + 20, height: 22 };
  const widths = box.lines.map((line) => measure(line.text, "line") + 22);
  const marks = (box.folds ? 22 : 0) + (box.opaque ? 24 : 0);
  const width = Math.max(84, measure(box.title, "title") + 30 + marks, ...widths.map((one) => one + 20));
  const height = TITLE + box.lines.length * LINE + (box.lines.length > 0 ? 8 : 4);
  if (box.boxes.length === 0) return { id: id(box.key), width, height: Math.max(height, 36) };
  return {
    id: id(box.key),
    children: box.boxes.map(node),
    layoutOptions: {
      ...SPACING,
      "elk.padding": `[top=${height + 12},left=18,bottom=18,right=18]`,
      "elk.nodeSize.constraints": "MINIMUM_SIZE",
      "elk.nodeSize.minimum": `(${width}, ${height})`,
    },
  };
}

function label(arrow) {
  if (arrow.labels.length === 0) return [];
  const width = Math.max(...arrow.labels.map((text) => measure(text, "label"))) + 10;
  const height = arrow.labels.length * 14 + 4;
  const layoutOptions = { "elk.edgeLabels.inline": true };
  return [{ id: `l:${arrow.name}`, text: arrow.labels.join(" "), width, height, layoutOptions }];
}

let canvas = null;

/** Return how wide a text is, in pixels; one that is too long is cut when it is drawn. */
function measure(text, kind) {
  canvas ??= document.createElement("canvas").getContext("2d");
  canvas.font = `${kind === "line" ? "" : "600 "}${CHARACTER[kind]}px ${FONT}`;
  return Math.min(WIDEST, Math.ceil(canvas.measureText(clip(text)).width));
}

/** A text of no more characters than a box has room for. */
export function clip(text) {
  const characters = [...text];
  return characters.length > 42 ? `${characters.slice(0, 41).join("")}…` : text;
}
