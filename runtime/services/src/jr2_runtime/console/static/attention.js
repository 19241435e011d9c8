// The Attention tab: one card for each open Gate of the fleet, and what it accepts.
//
// Nothing is counted here: an answer that was taken shows in the next frame of its run, which is read
// again, and then the card goes. `If-Gate` holds an answer to the entry that the card was made for.

import { button, el, keyed, say } from "./dom.js";
import { form } from "./forms.js";
import { path } from "./http.js";
import { json } from "./json.js";
import { short } from "./model.js";
import { fields } from "./schema.js";

const MOST = 100;

export class Attention {
  /** `acts` has `select(workflow, run)`. */
  constructor(fleet, client, feeds, acts) {
    Object.assign(this, { fleet, client, feeds, acts });
    this.list = el("ul", { class: "cards" });
    this.none = el("p", { class: "empty" }, "No run waits for an answer.");
    this.more = el("p", { class: "empty" });
    this.node = el("div", { class: "attention" }, this.none, this.list, this.more);
  }

  /** Show the Gates that are open; those of the selected run come first. */
  draw(selected) {
    const all = this.fleet.attention();
    all.sort((a, b) => Number(b.run === selected) - Number(a.run === selected));
    this.none.hidden = all.length > 0;
    this.more.hidden = all.length <= MOST;
    say(this.more, `${all.length - MOST} more wait. Answer some, or select a run.`);
    keyed(
      this.list,
      all.slice(0, MOST),
      (one) => `${one.run} ${one.gate.id}`,
      (one) => this.#card(one),
      (node, one) => node.classList.toggle("selected", one.run === selected),
    );
  }

  #card({ run, workflow, gate }) {
    const answers = gate.accepts.map((accepted) => this.#answer(run, gate, accepted));
    const name = `Gate ${gate.gate} of run ${short(run)}`;
    return el(
      "li",
      { class: "card", role: "group", "aria-label": name },
      el(
        "header",
        {},
        el("h3", {}, el("span", { class: "flag", "aria-hidden": "true" }, "⚑ "), gate.gate),
        button(`${workflow} · ${short(run)}`, () => this.acts.select(workflow, run), { class: "link", "aria-label": `Show run ${short(run)} of ${workflow}` }),
      ),
      gate.meta === null || gate.meta === undefined ? null : el("div", { class: "meta" }, json(gate.meta)),
      answers.length > 0 ? answers : el("p", { class: "empty" }, "accepts nothing"),
    );
  }

  /** An event without a payload is one button; another one unfolds its form. */
  #answer(run, gate, accepted) {
    const asked = fields(accepted.input);
    const where = path("runs", run, "gates", gate.gate, "events");
    const waiting = el("p", { class: "waiting", role: "status" });
    const send = async (text, key) => {
      try {
        return await this.client.post(where, text, { key, gate: gate.id });
      } catch (failed) {
        // The Gate may be another one by now, and then its card goes.
        if (failed.status === 404 || failed.status === 412) this.feeds.read(run, { first: true });
        throw failed;
      }
    };
    const done = () => {
      say(waiting, `${accepted.name} was taken; waiting for the run.`);
      this.feeds.read(run, { first: true });
    };
    const made = form({ schema: accepted.input, label: accepted.name, send, done, fixed: { type: accepted.name } });
    const description = accepted.description ? el("p", { class: "hint" }, accepted.description) : null;
    if (asked !== null && asked.length === 0) return el("div", { class: "answer" }, made, description, waiting);
    return el(
      "details",
      { class: "answer" },
      el("summary", {}, accepted.name),
      description,
      made,
      waiting,
    );
  }
}
