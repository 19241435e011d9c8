// The Console: what is selected, and who is told when it changes.
//
// The address says what is shown: `/workflows/<name>` the Workflow, `?run=<id>` the run. Whatever a
// feed tells goes into the model, and each panel draws itself from the model once before the next
// picture.

import { Attention } from "./attention.js";
import { details } from "./details.js";
import { Diagram, zoomButtons } from "./diagram.js";
import { button, coalesced, el, renew } from "./dom.js";
import { Feeds } from "./feeds.js";
import { form } from "./forms.js";
import { Client, RETRY, path } from "./http.js";
import { lights, parkedAt } from "./machine.js";
import { Fleet, short } from "./model.js";
import { Nav } from "./nav.js";
import { Rail } from "./rail.js";
import { Session } from "./session.js";

const here = (id) => document.getElementById(id);

const session = new Session();
const client = new Client(() => session.token(), () => session.drop());
const fleet = new Fleet();
const feeds = new Feeds(client, session, fleet);
const diagram = new Diagram(here("diagram"));

/** What is selected, and what is known of it. */
const at = { workflow: undefined, run: null, box: null };
const known = { of: null, document: null, view: null, status: null, emits: [], last: null };
let tab = "details";
/** The run that has just been selected is to be brought into sight. */
let sought = false;

const acts = {
  client,
  read: (id) => feeds.read(id, { first: true }),
  home: () => go(null, null),
  open: (workflow) => go(workflow, null),
  select: (workflow, run) => go(workflow, run),
  start: (workflow) => startRun(workflow),
  unfolded: () => follow(),
  attention: () => show("attention"),
  token: (text) => session.check(text),
};
const nav = new Nav(here("nav"), zoomButtons(diagram), acts);
const rail = new Rail(here("fleet"), fleet, session, { ...acts, unfolded: (names) => follow(names) });
const attention = new Attention(fleet, client, feeds, acts);

// --- the right drawer -------------------------------------------------------------------------
const tabs = {
  attention: button("Attention", () => show("attention"), { role: "tab", id: "tab-attention", "aria-controls": "panel" }),
  details: button("Details", () => show("details"), { role: "tab", id: "tab-details", "aria-controls": "panel" }),
};
const list = el("div", { role: "tablist", "aria-label": "Drawer", class: "tabs" }, tabs.attention, tabs.details);
const panel = el("div", { role: "tabpanel", id: "panel", tabindex: "0" });
const detailsPanel = el("div", { class: "details" });
here("drawer").replaceChildren(list, panel);
list.addEventListener("keydown", (event) => {
  if (!["ArrowLeft", "ArrowRight"].includes(event.key) || tabs.attention.hidden) return;
  show(tab === "details" ? "attention" : "details");
  tabs[tab].focus();
});

function show(name) {
  tab = name;
  draw();
}

function drawDrawer() {
  tabs.attention.hidden = !session.isLive;
  const shown = session.isLive ? tab : "details";
  for (const [name, one] of Object.entries(tabs)) {
    one.setAttribute("aria-selected", String(name === shown));
    one.setAttribute("tabindex", name === shown ? "0" : "-1");
  }
  const count = session.isLive ? fleet.attention().length : 0;
  tabs.attention.textContent = count > 0 ? `Attention (${count})` : "Attention";
  panel.setAttribute("aria-labelledby", tabs[shown].id);
  const inner = shown === "attention" ? attention.node : detailsPanel;
  if (panel.firstElementChild !== inner) panel.replaceChildren(inner);
  if (shown === "attention") attention.draw(at.run);
  else drawDetails();
}

let drawn = "";

function drawDetails() {
  const run = selectedRun();
  const shown = {
    workflow: at.workflow,
    view: known.view,
    run,
    status: session.isLive ? known.status : null,
    box: at.box === null ? null : diagram.box(at.box),
    emits: session.isLive ? known.emits : [],
    isLive: session.isLive,
  };
  // What stays the same is left alone: somebody may be reading or selecting it.
  const text = JSON.stringify([shown.workflow, shown.view, run, shown.status, at.box, shown.box?.folded, shown.emits, shown.isLive]);
  if (text === drawn) return;
  drawn = text;
  renew(detailsPanel, details(shown, acts));
}

// --- what is selected -------------------------------------------------------------------------
function selectedRun() {
  if (at.run === null) return null;
  const observed = fleet.run(at.workflow, at.run) ?? known.last;
  if (observed?.runId === at.run) return observed;
  return known.status?.runId === at.run ? known.status : null;
}

function readAddress() {
  const found = /^\/workflows\/([^/]+)$/.exec(location.pathname);
  let workflow = null;
  try {
    workflow = found ? decodeURIComponent(found[1]) : null;
  } catch {
    // Half of an encoded character names nothing.
  }
  const run = workflow === null ? null : new URLSearchParams(location.search).get("run");
  select(workflow, run);
}

function go(workflow, run) {
  const query = run === null ? "" : `?run=${encodeURIComponent(run)}`;
  const address = workflow === null ? "/" : `${path("workflows", workflow)}${query}`;
  if (address !== location.pathname + location.search) history.pushState(null, "", address);
  select(workflow, run);
}

function select(workflow, run) {
  const isOther = workflow !== at.workflow;
  const isOtherRun = run !== at.run;
  Object.assign(at, { workflow, run });
  if (isOther || isOtherRun) {
    at.box = null;
    sought = run !== null;
    diagram.select(null);
    Object.assign(known, { status: null, emits: [], last: null });
    if (run !== null && tab === "attention" && fleet.gatesOf(run).length === 0) tab = "details";
    followRun();
  }
  if (workflow !== null) {
    fleet.workflow(workflow);
    rail.unfold(workflow);
  }
  if (isOther) {
    Object.assign(known, { of: null, document: null, view: null });
    follow();
    loadMachine();
  }
  draw();
}

let unfolded = [];

function follow(names = unfolded) {
  unfolded = names;
  const first = at.workflow === null ? [] : [at.workflow];
  feeds.follow([...first, ...unfolded.filter((name) => name !== at.workflow)]);
}

function followRun() {
  feeds.followRun(at.run, (event, data) => {
    if (event === "status") known.status = data;
    if (event === "emit") known.emits = [...known.emits.slice(-99), data];
    draw();
  });
}

async function loadMachine() {
  const name = at.workflow;
  if (name === null) {
    Object.assign(known, { of: null, document: null, view: null });
    await diagram.show(null, "Select a Workflow to see its Machine.");
    return;
  }
  let document = null;
  let view = null;
  let instead = "";
  try {
    [view, document] = await Promise.all([
      client.get(path("workflows", name), { open: true }),
      client.get(path("workflows", name, "machine"), { open: true }),
    ]);
  } catch (failed) {
    instead = failed.status === 404 ? `No Workflow ${name} is registered.` : "The Machine is read as soon as the Orchestrator answers.";
    if (failed.status !== 404) setTimeout(() => name === at.workflow && loadMachine(), RETRY);
    // What is shown stays while nobody answers.
    if (failed.status !== 404 && known.of === name) return;
  }
  if (name !== at.workflow) return;
  const isSame = document !== null && JSON.stringify(document) === JSON.stringify(known.document);
  Object.assign(known, { of: name, document, view });
  if (!isSame) await diagram.show(document, instead);
  draw();
}

function drawDiagram() {
  const run = selectedRun();
  if (run === null || known.document === null) {
    diagram.light(new Map());
    return;
  }
  known.last = run;
  const full = known.status?.runId === run.runId ? known.status : run;
  const lit = lights(known.document, run.value, run.children ?? []);
  const pins = new Map();
  for (const gate of fleet.gatesOf(run.runId)) {
    const key = parkedAt(known.document, full.value, full.children, gate.path);
    if (key !== null) pins.set(key, (pins.get(key) ?? 0) + 1);
  }
  diagram.light(lit, pins);
  if (sought && diagram.isDrawn) {
    sought = false;
    diagram.reveal();
  }
}

// --- start a run ------------------------------------------------------------------------------
async function startRun(workflow) {
  let view;
  try {
    view = await client.get(path("workflows", workflow), { open: true });
  } catch (failed) {
    tell(failed.message);
    return;
  }
  const close = button("Close", () => dialog.close());
  const title = el("h2", { id: "start-title" }, `Start a run of ${workflow}`);
  const own = form({
    schema: view.input,
    label: "Start run",
    cancel: close,
    send: (text, key) => client.post(path("workflows", workflow, "runs"), text, { key }),
    done: ({ runId }) => {
      dialog.close();
      tell(`Run ${short(runId)} of ${workflow} started.`);
      go(workflow, runId);
    },
  });
  const dialog = el("dialog", { "aria-labelledby": "start-title" }, title, own);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function tell(text) {
  here("said").textContent = text;
}

// --- all together -----------------------------------------------------------------------------
const draw = coalesced(() => {
  nav.draw({
    workflow: at.workflow,
    machine: known.view?.machineId ?? null,
    gates: fleet.attention().length,
    feed: feeds.state,
    token: session.state,
  });
  rail.draw(at);
  drawDiagram();
  drawDrawer();
});

fleet.addEventListener("change", draw);
feeds.addEventListener("state", draw);
feeds.addEventListener("assembly", loadMachine);
feeds.addEventListener("run", ({ detail }) => {
  if (detail.runId !== at.run) return;
  // Read again after a frame, so it is no older than what the feed told; it says `stuck` besides.
  known.status = detail;
  draw();
});
session.addEventListener("change", () => {
  if (session.state === "invalid") {
    nav.clear();
    tell("The token opens nothing.");
  }
  if (session.isLive) {
    tell("The token is live.");
    followRun();
    if (at.run !== null) feeds.read(at.run, { first: true });
  } else {
    known.status = null;
    known.emits = [];
    document.querySelector("dialog")?.close();
  }
  draw();
});
diagram.addEventListener("select", ({ detail }) => {
  at.box = detail;
  diagram.select(detail);
  if (detail !== null) tab = "details";
  draw();
});
addEventListener("popstate", readAddress);

readAddress();
session.resume();
feeds.start();
