// Values of a run as text in elements: names and values beside each other, what is deep in a fold.

import { el } from "./dom.js";

const MOST = 200;
const LONGEST = 20000;

/** Return an element that shows a JSON value. */
export function json(value, open = true) {
  if (value === null || typeof value !== "object") return scalar(value);
  const entries = Object.entries(value);
  if (entries.length === 0) return el("span", { class: "value nothing" }, Array.isArray(value) ? "[]" : "{}");
  const rows = entries.slice(0, MOST).flatMap(([name, inner]) => [
    el("dt", {}, name),
    el("dd", {}, isDeep(inner) ? fold(inner) : json(inner, open)),
  ]);
  if (entries.length > MOST) rows.push(el("dt", {}, "…"), el("dd", {}, `${entries.length - MOST} more`));
  return el("dl", { class: "values" }, rows);
}

function isDeep(value) {
  return value !== null && typeof value === "object" && Object.keys(value).length > 0;
}

function fold(value) {
  const count = Object.keys(value).length;
  const name = Array.isArray(value) ? `list of ${count}` : `${count} ${count === 1 ? "field" : "fields"}`;
  const inner = el("details", { open: count <= 12 }, el("summary", {}, name));
  const fill = () => {
    if (inner.open && inner.children.length === 1) inner.append(json(value));
  };
  inner.addEventListener("toggle", fill);
  if (count <= 12) inner.append(json(value));
  return inner;
}

function scalar(value) {
  if (typeof value !== "string") return el("span", { class: `value ${value === null ? "nothing" : typeof value}` }, String(value));
  const text = value.length > LONGEST ? `${value.slice(0, LONGEST)}… (${value.length - LONGEST} more characters)` : value;
  return el("span", { class: `value string${text.includes("\n") ? " block" : ""}` }, text === "" ? "“”" : text);
}
