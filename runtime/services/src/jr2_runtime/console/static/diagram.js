// The Machine as a picture: nested boxes and arrows, lit by the run that is selected.
//
// A click on a box selects it, the icon of a child Machine folds it. The wheel and the buttons zoom, a
// drag moves the picture. With the keyboard: arrows go from box to box, Enter selects, + and - zoom,
// 0 is the natural size, f shows all.

import { button, el, svg } from "./dom.js";
import { RETRY } from "./http.js";
import { LINE, Lost, TITLE, clip, place } from "./layout.js";
import { picture, size } from "./machine.js";

const CLOSEST = 2.5;
const FARTHEST = 0.1;
/** A picture that could not be read when all of it is shown begins at its top, at this size. */
const READABLE = 0.7;
/** A child Machine with more states than this is folded until somebody opens it. */
const LARGE = 14;

export class Diagram extends EventTarget {
  #document = null;
  #folds = new Map();
  #drawn = 0;
  #boxes = new Map();
  #arrows = [];
  #lit = new Map();
  #pins = new Map();
  #selected = null;
  #view = { x: 0, y: 0, scale: 1 };
  #size = { width: 1, height: 1 };
  #fitted = true;
  #asked = 0;

  constructor(host) {
    super();
    this.host = host;
    this.layer = svg("g", { class: "layer" });
    this.svg = svg(
      "svg",
      { class: "picture", role: "group", "aria-label": "States and transitions", tabindex: "-1" },
      svg("defs", {}, marker("arrow"), marker("arrow-lit")),
      this.layer,
    );
    this.notes = el("div", { class: "notes" });
    this.empty = el("p", { class: "empty", hidden: true });
    host.replaceChildren(this.svg, this.notes, this.empty);
    this.#moves();
    new ResizeObserver(() => this.#fitted && this.fit()).observe(host);
  }

  /** Show a Machine document, or a text in its place. */
  async show(document, instead = "") {
    this.#document = document;
    this.#fitted = true;
    this.empty.textContent = instead;
    this.empty.hidden = document !== null || instead === "";
    this.svg.setAttribute("class", document === null ? "picture hidden" : "picture");
    this.notes.replaceChildren();
    this.layer.replaceChildren();
    this.#boxes.clear();
    this.#arrows = [];
    if (document === null) return;
    await this.#draw();
  }

  /** Light boxes; `lit` is how many times each key is active. */
  light(lit, pins = new Map()) {
    const before = this.#lit;
    this.#lit = lit;
    this.#pins = pins;
    this.#paint(before);
  }

  /** Mark a box as the selected one. */
  select(key) {
    this.#selected = key;
    for (const [own, { group }] of this.#boxes) group.classList.toggle("selected", own === key);
  }

  /** Return what is drawn under a key: `{key, kind, title, state, …}`. */
  box(key) {
    return this.#boxes.get(key)?.box ?? null;
  }

  zoom(factor) {
    const { width, height } = this.host.getBoundingClientRect();
    this.#zoomAt(factor, width / 2, height / 2);
  }

  reset() {
    this.#fitted = false;
    this.#zoomAt(1 / this.#view.scale, 0, 0);
    this.#centre(1);
  }

  fit() {
    const { width, height } = this.host.getBoundingClientRect();
    if (width === 0 || this.#document === null) return;
    const below = this.notes.childElementCount > 0 ? this.notes.offsetHeight + 12 : 0;
    const room = height - 48 - below;
    const scale = Math.min(1.15, (width - 48) / this.#size.width, room / this.#size.height);
    this.#centre(Math.max(FARTHEST, scale));
    this.#fitted = true;
  }

  /** Bring a box that is lit into sight, when none of them is. */
  reveal() {
    const { width, height } = this.host.getBoundingClientRect();
    const lit = [...this.#boxes.values()].filter(({ box }) => box.boxes.length === 0 && this.#lit.has(box.key));
    const places = lit.map(({ at }) => ({
      x: (at.x + at.width / 2) * this.#view.scale + this.#view.x,
      y: (at.y + at.height / 2) * this.#view.scale + this.#view.y,
    }));
    if (places.length === 0 || places.some(({ x, y }) => x > 0 && x < width && y > 0 && y < height)) return;
    this.#fitted = false;
    const [{ x, y }] = places;
    this.#move({ ...this.#view, x: this.#view.x + width / 2 - x, y: this.#view.y + height / 2 - y });
  }

  /** Show all, or the top of what is too large for that. */
  #begin() {
    this.fit();
    if (this.#view.scale >= READABLE * 0.75) return;
    this.#centre(READABLE);
    this.#move({ ...this.#view, y: 24 });
    this.#fitted = false;
  }

  /** Whether the boxes have their places. */
  get isDrawn() {
    return this.#boxes.size > 0;
  }

  get percent() {
    return Math.round(this.#view.scale * 100);
  }

  #centre(scale) {
    const { width, height } = this.host.getBoundingClientRect();
    const x = (width - this.#size.width * scale) / 2;
    const y = Math.max(24, (height - this.#size.height * scale) / 2);
    this.#move({ x, y, scale });
  }

  #zoomAt(factor, x, y) {
    const { scale } = this.#view;
    const next = Math.min(CLOSEST, Math.max(FARTHEST, scale * factor));
    this.#fitted = false;
    this.#move({
      x: x - ((x - this.#view.x) * next) / scale,
      y: y - ((y - this.#view.y) * next) / scale,
      scale: next,
    });
  }

  #move(view) {
    this.#view = view;
    this.layer.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
    this.dispatchEvent(new Event("zoom"));
  }

  async #draw() {
    const asked = (this.#asked += 1);
    const folded = (key, depth, machine) => this.#folds.get(key) ?? (depth > 1 || size(machine) > LARGE);
    const shown = picture(this.#document, folded);
    let placed;
    try {
      placed = await place(shown, this.host.getBoundingClientRect());
    } catch (failed) {
      if (asked !== this.#asked) return;
      const isLost = failed instanceof Lost;
      this.empty.textContent = isLost
        ? "The picture is laid out as soon as the Orchestrator answers."
        : `The picture cannot be laid out: ${failed.message}`;
      this.empty.hidden = false;
      if (isLost) setTimeout(() => asked === this.#asked && this.#draw(), RETRY);
      return;
    }
    if (asked !== this.#asked) return;
    this.empty.hidden = true;
    const focused = document.activeElement?.dataset?.box;
    this.#boxes.clear();
    this.#arrows = [];
    const layers = ["boxes", "arrows", "labels", "tags"].map((name) => svg("g", { class: name }));
    const [below, between, above, tags] = layers;
    this.#put(shown.root, placed, below, tags);
    for (const arrow of shown.arrows) this.#join(arrow, placed, between, above);
    this.layer.replaceChildren(...layers);
    this.#size = { width: placed.width, height: placed.height };
    this.#warn(shown.opaque);
    this.#paint(new Map());
    this.select(this.#selected);
    if (this.#fitted) this.#begin();
    this.#rove(this.#boxes.has(focused) ? focused : (this.#boxes.keys().next().value ?? ""), focused);
    this.#drawn += 1;
    this.svg.dataset.drawn = String(this.#drawn);
  }

  #warn(opaque) {
    if (opaque.length === 0) return;
    this.notes.append(
      el(
        "p",
        { class: "warning", role: "note" },
        el("strong", {}, "⚠ Opaque states: "),
        `${opaque.join(", ")}. Only a run knows how many children they have; the picture shows one.`,
      ),
    );
  }

  #put(box, placed, into, tags) {
    const at = placed.boxes.get(box.key);
    if (box.kind === "initial") {
      into.append(svg("circle", { class: "initial", cx: at.x + 6, cy: at.y + 6, r: 6 }));
      return;
    }
    const group = svg("g", {
      class: `box ${box.kind}${box.boxes.length > 0 ? " holds" : ""}`,
      role: "button",
      tabindex: "-1",
      "data-box": box.key,
      on: {
        click: (event) => {
          event.stopPropagation();
          if (this.#dragged) return;
          this.#rove(box.key);
          this.dispatchEvent(new CustomEvent("select", { detail: box.key }));
        },
      },
    });
    const middle = { x: at.x + at.width / 2, y: at.y + at.height / 2 };
    if (box.kind === "history") {
      group.append(svg("circle", { class: "face", cx: middle.x, cy: middle.y, r: 14 }));
      group.append(text(box.title, middle.x, middle.y + 4, "title centred"));
    } else {
      const round = box.kind === "any" ? at.height / 2 : 8;
      group.append(svg("rect", { class: "face", ...at, rx: round }));
      if (box.kind === "final") group.append(inset(at));
      this.#words(box, at, group);
    }
    into.append(group);
    const tag = tagOf(at);
    tags.append(tag);
    this.#boxes.set(box.key, { box, group, tag, at });
    for (const inner of box.boxes) this.#put(inner, placed, into, tags);
  }

  #words(box, at, group) {
    if (box.kind === "any") {
      group.append(text(box.title, at.x + at.width / 2, at.y + 15, "label centred"));
      return;
    }
    const indent = box.folds ? 32 : 12;
    group.append(text(clip(box.title), at.x + indent, at.y + 20, "title"));
    if (box.boxes.length > 0 && box.kind !== "root") {
      group.append(svg("line", { class: "rule", x1: at.x, x2: at.x + at.width, y1: at.y + TITLE, y2: at.y + TITLE }));
    }
    if (box.folds) group.append(this.#fold(box, at));
    if (box.opaque) group.append(text("⚠", at.x + at.width - 22, at.y + 20, "opaque"));
    box.lines.forEach((line, number) => {
      const y = at.y + TITLE + 13 + number * LINE;
      group.append(text(line.icon, at.x + 12, y, `icon ${line.what}`), text(clip(line.text), at.x + 30, y, "line"));
    });
  }

  #fold(box, at) {
    const toggle = (event) => {
      event.stopPropagation();
      this.#folds.set(box.key, !box.folded);
      this.#draw();
    };
    const name = `${box.folded ? "Unfold" : "Fold"} Machine ${box.title}`;
    const icon = svg("g", {
      class: "fold",
      role: "button",
      tabindex: "0",
      "aria-label": name,
      "aria-expanded": box.folded ? "false" : "true",
      on: {
        click: toggle,
        keydown: (event) => {
          if (event.key === "Enter" || event.key === " ") {
            event.preventDefault();
            toggle(event);
          }
        },
      },
    });
    icon.append(
      svg("title", {}, name),
      svg("rect", { x: at.x + 8, y: at.y + 7, width: 17, height: 17, rx: 4 }),
      svg("path", { d: plus(at.x + 16.5, at.y + 15.5, box.folded) }),
    );
    return icon;
  }

  #join(arrow, placed, lines, labels) {
    const at = placed.arrows.get(arrow.name);
    if (at === undefined) return;
    const line = svg("path", { class: `line ${arrow.kind}`, d: rounded(at.points) });
    lines.append(line);
    const words = svg("g", { class: "words" });
    if (at.label !== null) {
      const { x, y, width, height } = at.label;
      words.append(svg("rect", { x, y, width, height, rx: 3 }));
      arrow.labels.forEach((one, number) => words.append(text(clip(one), x + 5, y + 12 + number * 14, "label")));
      labels.append(words);
    }
    this.#arrows.push({ arrow, line, words });
  }

  /** Put lights, pins and accessible names on what is drawn. */
  #paint(before) {
    const waits = new Map();
    for (const [key, times] of this.#pins) {
      const shown = this.#shown(key);
      waits.set(shown, (waits.get(shown) ?? 0) + times);
    }
    for (const [key, { box, group, tag }] of this.#boxes) {
      const times = this.#lit.get(key) ?? 0;
      const pins = waits.get(key) ?? 0;
      group.classList.toggle("lit", times > 0);
      group.classList.toggle("entered", times > 0 && !before.has(key) && before.size > 0);
      group.classList.toggle("parked", pins > 0);
      tag.classList.toggle("waits", pins > 0);
      mark(tag, pins > 0 ? `⚑ parked here${pins > 1 ? ` ×${pins}` : ""}` : times > 1 ? `×${times}` : "");
      const said = [
        `${KINDS[box.kind] ?? "state"} ${box.name ?? box.title}`,
        ...(times > 0 && box.kind !== "root" ? ["active"] : []),
        ...(pins > 0 ? ["waits at a Gate"] : []),
        ...(box.opaque ? ["opaque"] : []),
      ];
      group.setAttribute("aria-label", said.join(", "));
    }
    for (const { arrow, line, words } of this.#arrows) {
      const from = arrow.from.replace(/\*$/, "");
      const lit = arrow.kind === "on" && (this.#lit.get(from) ?? 0) > 0;
      line.setAttribute("marker-end", lit ? "url(#arrow-lit)" : "url(#arrow)");
      line.classList.toggle("lit", lit);
      words.classList.toggle("lit", lit);
    }
  }

  /** Return the key of the box that is drawn for a state: a folded child Machine for what is in it. */
  #shown(key) {
    let shown = key;
    while (!this.#boxes.has(shown) && shown.includes(":")) shown = shown.slice(0, shown.lastIndexOf(":"));
    return shown;
  }

  // --- moving about ---------------------------------------------------------------------------
  #dragged = false;

  #moves() {
    let from = null;
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      from = { x: event.clientX, y: event.clientY, view: this.#view, id: event.pointerId };
      this.#dragged = false;
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (from === null) return;
      const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
      if (!this.#dragged && Math.hypot(dx, dy) < 5) return;
      if (!this.#dragged) this.svg.setPointerCapture(from.id);
      this.#dragged = true;
      this.#fitted = false;
      this.svg.classList.add("dragged");
      this.#move({ ...from.view, x: from.view.x + dx, y: from.view.y + dy });
    });
    const end = () => {
      from = null;
      this.svg.classList.remove("dragged");
    };
    this.svg.addEventListener("pointerup", end);
    this.svg.addEventListener("pointercancel", end);
    this.svg.addEventListener("click", () => {
      if (!this.#dragged) this.dispatchEvent(new CustomEvent("select", { detail: null }));
      this.#dragged = false;
    });
    this.svg.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const place = this.host.getBoundingClientRect();
        const lines = event.deltaMode === 1 ? 20 : 1;
        this.#zoomAt(Math.exp(-event.deltaY * lines * 0.0015), event.clientX - place.left, event.clientY - place.top);
      },
      { passive: false },
    );
    this.host.addEventListener("keydown", (event) => this.#key(event));
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const acts = {
      "+": () => this.zoom(1.25),
      "=": () => this.zoom(1.25),
      "-": () => this.zoom(0.8),
      0: () => this.reset(),
      f: () => this.fit(),
      ArrowDown: () => this.#step(1),
      ArrowRight: () => this.#step(1),
      ArrowUp: () => this.#step(-1),
      ArrowLeft: () => this.#step(-1),
      Enter: () => this.#enter(),
      " ": () => this.#enter(),
      Escape: () => this.dispatchEvent(new CustomEvent("select", { detail: null })),
    };
    if (!Object.hasOwn(acts, event.key)) return;
    event.preventDefault();
    acts[event.key]();
  }

  #enter() {
    const key = document.activeElement?.dataset?.box;
    if (key !== undefined) this.dispatchEvent(new CustomEvent("select", { detail: key }));
  }

  #step(by) {
    const keys = [...this.#boxes.keys()];
    const at = keys.indexOf(document.activeElement?.dataset?.box);
    const next = keys[Math.min(keys.length - 1, Math.max(0, at + by))];
    if (next !== undefined) this.#rove(next, next);
  }

  /** One box is the stop of the Tab key; the arrows go from there. */
  #rove(key, focus = undefined) {
    for (const [own, { group }] of this.#boxes) group.setAttribute("tabindex", own === key ? "0" : "-1");
    if (focus !== undefined) this.#boxes.get(focus)?.group.focus({ preventScroll: true });
  }
}

const KINDS = { root: "Machine", machine: "child Machine", parallel: "parallel state", final: "final state", history: "history", any: "transitions of" };

/** The buttons that zoom, for the navigation. */
export function zoomButtons(diagram) {
  const percent = button("100%", () => diagram.reset(), { class: "percent", title: "Natural size", "aria-label": "Reset zoom" });
  diagram.addEventListener("zoom", () => {
    percent.textContent = `${diagram.percent}%`;
  });
  return el(
    "div",
    { class: "zoom", role: "group", "aria-label": "Zoom" },
    button("−", () => diagram.zoom(0.8), { "aria-label": "Zoom out" }),
    percent,
    button("+", () => diagram.zoom(1.25), { "aria-label": "Zoom in" }),
    button("Fit", () => diagram.fit(), { "aria-label": "Fit the picture" }),
  );
}

function text(words, x, y, names) {
  return svg("text", { class: names, x, y }, words);
}

/** Return what a run says of a box, on its upper edge, where no other text is. */
function tagOf(at) {
  const words = text("", at.x + at.width - 14, at.y + 4, "count");
  const place = { "data-right": at.x + at.width - 8, "data-top": at.y - 8 };
  return svg("g", { class: "tag", ...place }, svg("rect", { rx: 8, height: 16 }), words);
}

/** Show a text on the tag of a box. */
function mark(tag, words) {
  const [face, shown] = tag.children;
  if (shown.textContent === words) return;
  shown.textContent = words;
  const width = words === "" ? 0 : shown.getComputedTextLength() + 12;
  face.setAttribute("width", width);
  face.setAttribute("x", tag.dataset.right - width);
  face.setAttribute("y", tag.dataset.top);
}

function inset({ x, y, width, height }) {
  return svg("rect", { class: "inner", x: x + 3, y: y + 3, width: width - 6, height: height - 6, rx: 6 });
}

function plus(x, y, isPlus) {
  return `M${x - 4} ${y}h8${isPlus ? `M${x} ${y - 4}v8` : ""}`;
}

function marker(name) {
  return svg(
    "marker",
    { id: name, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto-start-reverse" },
    svg("path", { d: "M0 0.500L8 4L0 7.500z" }),
  );
}

/** Return the path through points, with round corners. */
export function rounded(points) {
  const [first, ...rest] = points;
  let path = `M${first.x} ${first.y}`;
  rest.forEach((point, at) => {
    const next = rest[at + 1];
    const before = at === 0 ? first : rest[at - 1];
    if (next === undefined) {
      path += `L${point.x} ${point.y}`;
      return;
    }
    const into = Math.hypot(point.x - before.x, point.y - before.y);
    const out = Math.hypot(next.x - point.x, next.y - point.y);
    const by = Math.min(7, into / 2, out / 2);
    if (by === 0) return;
    const start = { x: point.x - ((point.x - before.x) * by) / into, y: point.y - ((point.y - before.y) * by) / into };
    const end = { x: point.x + ((next.x - point.x) * by) / out, y: point.y + ((next.y - point.y) * by) / out };
    path += `L${start.x} ${start.y}Q${point.x} ${point.y} ${end.x} ${end.y}`;
  });
  return path;
}
