// The details of what is selected: a run, a box of the picture, or the Workflow itself.

import { button, el } from "./dom.js";
import { newKey, path } from "./http.js";
import { json } from "./json.js";
import { eventLabel, valueText } from "./machine.js";
import { short } from "./model.js";
import { fields } from "./schema.js";

const MOST_EMITS = 50;

/** Return the elements for a selection: `{workflow, view, run, status, box, emits, isLive}`. */
export function details(shown, acts) {
  const { workflow, view, run, box } = shown;
  if (!workflow) return [el("p", { class: "empty" }, "Select a Workflow to see its Machine.")];
  return [
    ...(run ? runDetails(shown, acts) : []),
    ...(box ? boxDetails(box) : []),
    ...(run || box ? [] : workflowDetails(workflow, view)),
  ];
}

function runDetails({ run, status, emits, isLive }, acts) {
  // The token's feed tells more than the open one; without it there are states alone.
  const known = status?.runId === run.runId ? status : null;
  const now = known && (known.status !== "active" || run.status === "active") ? known : run;
  const rows = [
    ["Run", el("code", { class: "whole" }, run.runId)],
    ["Workflow", run.workflow],
    ["Status", el("span", { class: "chip", "data-status": now.status }, now.status)],
    ["State", el("code", {}, valueText(now.value) || "–")],
  ];
  if (known?.assembly) rows.push(["Assembly", el("code", { title: known.assembly }, known.assembly.slice(0, 12))]);
  const parts = [el("h3", {}, `Run ${short(run.runId)}`), table(rows)];
  if (known?.olderAssembly && now.status === "active") {
    parts.push(note("This run holds an older Assembly. The picture is that of the current one."));
  }
  for (const [name, text] of [["Fault", known?.fault], ["Reason", known?.reason], ["Stuck", known?.stuck]]) {
    if (text) parts.push(el("div", { class: "fault" }, el("strong", {}, name), el("p", {}, text)));
  }
  if (!isLive) parts.push(el("p", { class: "hint" }, "A token shows the context, the Gates and the events."));
  if (known && now.status === "active") parts.push(cancel(run.runId, acts));
  if (known?.output !== undefined) parts.push(section("Output", json(known.output)));
  if (known) parts.push(section("Context", json(known.context ?? null)));
  const children = now.children ?? [];
  if (children.length > 0) parts.push(section(`Child Machines (${children.length})`, tree(children)));
  if (emits.length > 0) {
    const rows = emits.slice(-MOST_EMITS).reverse();
    parts.push(section("Emitted", el("ul", { class: "emits" }, rows.map((one) => el("li", {}, json(one))))));
  }
  return parts;
}

let asked = { id: null, node: null };

/** The one control that cancels a run: somebody may be between its two clicks when all else is drawn anew. */
function cancel(id, acts) {
  if (asked.id !== id) asked = { id, node: cancelControl(id, acts) };
  return asked.node;
}

/** A second click, on another word, cancels: it cannot be taken back. */
function cancelControl(id, acts) {
  const key = newKey();
  const problem = el("p", { class: "problem", role: "alert" });
  const ask = button("Cancel run…", () => {
    ask.hidden = true;
    sure.hidden = false;
    sure.querySelector("button").focus();
  });
  const back = () => {
    ask.hidden = false;
    sure.hidden = true;
    ask.focus();
  };
  const yes = button("Cancel it", async () => {
    problem.textContent = "";
    try {
      await acts.client.post(path("runs", id, "events"), JSON.stringify({ type: "CANCEL" }), { key });
      acts.read(id);
    } catch (failed) {
      problem.textContent = failed.message;
    }
  }, { class: "danger" });
  const sure = el("div", { class: "sure", hidden: true, role: "group", "aria-label": "Cancel this run for good?" }, el("span", {}, "For good?"), yes, button("Keep it", back));
  return el("div", { class: "cancel" }, ask, sure, problem);
}

function boxDetails(box) {
  const { state } = box;
  const title = box.kind === "any" ? "Transitions of any state" : `${NAMES[box.kind] ?? "State"} ${box.name ?? box.title}`;
  const parts = [el("h3", {}, title)];
  if (!state) {
    if (box.slot) parts.push(table([["Slot", box.slot]]));
    for (const line of box.lines) parts.push(el("p", { class: "hint" }, `${line.icon} ${line.text}`));
    return parts;
  }
  const rows = [["State", el("code", {}, state.id)], ["Type", state.type]];
  if (state.gate) {
    rows.push(["Gate", state.gate.id ?? "named by the run"]);
    rows.push(["Accepts", state.gate.accepts.join(", ") || "nothing"]);
  }
  if (state.initial) rows.push(["Begins at", state.initial]);
  for (const one of state.invokes) rows.push(["Runs", `${one.kind} ${one.src}`]);
  for (const what of ["entry", "exit"]) if (state[what]) rows.push([what === "entry" ? "On entry" : "On exit", state[what].join(", ")]);
  parts.push(table(rows));
  if (box.opaque) parts.push(note("Opaque: only a run knows how many children this state has."));
  if (state.on.length > 0) {
    const list = state.on.map((one) =>
      el("li", {}, el("code", {}, eventLabel(one, state)), " → ", one.targets.length > 0 ? one.targets.join(" + ") : "stays"),
    );
    parts.push(section("Transitions", el("ul", { class: "transitions" }, list)));
  }
  return parts;
}

function workflowDetails(name, view) {
  const parts = [el("h3", {}, `Workflow ${name}`)];
  if (!view) return parts;
  parts.push(table([["Machine", el("code", {}, view.machineId)]]));
  parts.push(section("Input", door(view.input)));
  return parts;
}

function door(schema) {
  if (!schema) return el("p", { class: "hint" }, "The Machine has no door: a run starts with any input.");
  const asked = fields(schema);
  if (asked === null) return json(schema);
  if (asked.length === 0) return el("p", { class: "hint" }, "It asks for nothing.");
  return el("ul", { class: "fields" }, asked.map(fieldRow));
}

function fieldRow(asked) {
  const kinds = { choice: () => asked.options.map((one) => JSON.stringify(one)).join(" | "), group: () => "object", json: () => asked.schema.type ?? "JSON", text: () => "string" };
  const told = [
    kinds[asked.kind]?.() ?? asked.kind,
    asked.nullable ? "or null" : "",
    asked.required ? "required" : asked.initial === undefined ? "" : `default ${JSON.stringify(asked.initial)}`,
  ];
  return el(
    "li",
    {},
    el("code", {}, asked.name),
    el("span", { class: "hint" }, ` ${told.filter((one) => one).join(", ")}`),
    asked.description ? el("p", { class: "hint" }, asked.description) : null,
    asked.kind === "group" ? el("ul", { class: "fields" }, asked.fields.map(fieldRow)) : null,
  );
}

function tree(children) {
  return el(
    "ul",
    { class: "children" },
    children.map((one) =>
      el(
        "li",
        {},
        el("span", { class: "chip", "data-status": one.status }, one.status),
        " ",
        el("strong", {}, one.id),
        " ",
        el("code", {}, valueText(one.value)),
        one.children?.length ? tree(one.children) : null,
      ),
    ),
  );
}

function table(rows) {
  return el("dl", { class: "rows" }, rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

function section(title, ...inner) {
  return el("section", {}, el("h4", {}, title), ...inner);
}

function note(text) {
  return el("p", { class: "warning", role: "note" }, text);
}

const NAMES = { root: "Machine", machine: "Child Machine", parallel: "Parallel state", final: "Final state", history: "History" };
