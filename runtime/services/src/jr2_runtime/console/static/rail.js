// The left rail: every registered Workflow with its runs.

import { button, el, keyed, say } from "./dom.js";
import { liveCount, short } from "./model.js";

/** Runs that a list shows before somebody asks for more. */
const PAGE = 100;

export class Rail {
  #unfolded = [];
  #pages = new Map();

  /** `acts` has `open(workflow)`, `select(workflow, run)`, `start(workflow)` and `unfolded(names)`. */
  constructor(host, fleet, session, acts) {
    this.fleet = fleet;
    this.session = session;
    this.acts = acts;
    this.list = el("ul", { class: "workflows" });
    this.none = el("p", { class: "empty", hidden: true }, "no workflows registered");
    host.replaceChildren(el("h2", {}, "Workflows"), this.none, this.list);
  }

  /** Show what is known now; `at` is `{workflow, run}`. */
  draw(at) {
    this.at = at;
    const shown = [...this.fleet.workflows.values()].filter(
      (one) => one.registered || one.name === at.workflow || (one.runs?.size ?? 0) > 0,
    );
    this.none.hidden = !this.fleet.isRead || shown.some((one) => one.registered);
    keyed(
      this.list,
      shown,
      (one) => one.name,
      (one) => this.#row(one.name),
      (node, one) => this.#update(node, one),
    );
  }

  /** Show the runs of a Workflow. */
  unfold(name) {
    if (!this.#unfolded.includes(name)) this.#toggle(name);
  }

  #toggle(name) {
    const was = this.#unfolded.includes(name);
    this.#unfolded = this.#unfolded.filter((one) => one !== name);
    if (!was) this.#unfolded.unshift(name);
    this.acts.unfolded(this.#unfolded);
    if (this.at) this.draw(this.at);
  }

  #row(name) {
    const caret = button("▸", () => this.#toggle(name), { class: "caret" });
    const link = el(
      "a",
      {
        class: "name",
        href: `/workflows/${encodeURIComponent(name)}`,
        on: {
          click: (event) => {
            if (event.metaKey || event.ctrlKey || event.shiftKey) return;
            event.preventDefault();
            this.acts.open(name);
          },
        },
      },
      name,
    );
    const count = el("span", { class: "live-count" });
    const start = button("Start", () => this.acts.start(name), { class: "start", "aria-label": `Start a run of ${name}` });
    const runs = el("ul", { class: "runs", "aria-label": `Runs of ${name}` });
    const none = el("p", { class: "empty" }, "no live runs");
    const more = button("", () => {
      this.#pages.set(name, (this.#pages.get(name) ?? 1) + 1);
      this.draw(this.at);
    }, { class: "more" });
    const node = el("li", { class: "workflow" }, el("div", { class: "head" }, caret, link, count, start), runs, none, more);
    node.parts = { caret, link, count, start, runs, none, more };
    return node;
  }

  #update(node, workflow) {
    const { caret, link, count, start, runs, none, more } = node.parts;
    const { name } = workflow;
    const isOpen = this.#unfolded.includes(name);
    const live = liveCount(workflow);
    node.classList.toggle("selected", name === this.at.workflow);
    link.toggleAttribute("aria-current", name === this.at.workflow);
    if (name === this.at.workflow) link.setAttribute("aria-current", "page");
    caret.setAttribute("aria-expanded", String(isOpen));
    caret.setAttribute("aria-label", `${isOpen ? "Fold" : "Unfold"} the runs of ${name}`);
    say(count, live === null ? "" : String(live));
    count.setAttribute("aria-label", live === null ? "" : `${live} live`);
    count.classList.toggle("some", Boolean(live));
    start.hidden = !this.session.isLive || !workflow.registered;
    node.classList.toggle("unregistered", !workflow.registered);
    // The newest first: it is what somebody looks for who has just started one.
    const all = isOpen ? [...(workflow.runs?.values() ?? [])].reverse() : [];
    const most = (this.#pages.get(name) ?? 1) * PAGE;
    const list = all.slice(0, most);
    const picked = all.find((one) => one.runId === this.at.run);
    if (picked && !list.includes(picked)) list.push(picked);
    keyed(
      runs,
      list,
      (one) => one.runId,
      (one) => this.#run(name, one.runId),
      (row, one) => this.#updateRun(row, one),
    );
    runs.hidden = list.length === 0;
    none.hidden = !isOpen || workflow.runs === null || all.length > 0;
    more.hidden = all.length <= most;
    say(more, `show ${Math.min(PAGE, all.length - most)} of ${all.length - most} more`);
  }

  #run(workflow, id) {
    const dot = el("span", { class: "dot", "aria-hidden": "true" });
    const name = el("span", { class: "id" }, short(id));
    const status = el("span", { class: "status" });
    const gates = el("span", { class: "gates" });
    const row = button("", () => this.acts.select(workflow, id), { class: "run", title: id });
    row.append(dot, name, status, gates);
    const node = el("li", {}, row);
    node.parts = { row, status, gates };
    return node;
  }

  #updateRun(node, run) {
    const { row, status, gates } = node.parts;
    const isSelected = run.runId === this.at.run;
    const waits = this.fleet.gatesOf(run.runId).length;
    row.dataset.status = run.status;
    row.setAttribute("aria-pressed", String(isSelected));
    say(status, run.status);
    say(gates, waits > 0 ? `⚑${waits}` : "");
    gates.hidden = waits === 0;
    if (waits > 0) gates.setAttribute("aria-label", `${waits} open ${waits === 1 ? "Gate" : "Gates"}`);
  }
}
