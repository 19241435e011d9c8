// How the page stays up to date.
//
// A browser holds six connections to one address, so no more than three Workflows are followed by a
// feed of their own: the one that is shown, and those that were unfolded last. The others are asked
// in turn. What a token opens, a run and its Gates, is read again after each status frame, two at a
// time, each run once however often it was told of.

import { RETRY, path } from "./http.js";

const MOST_FEEDS = 3;
const EVERY = 4000;
/** How long the Orchestrator has to say that it is there. */
const HEARTBEAT = 8000;
/** How long a feed may take to open. */
const OPENS = 6000;
const AT_ONCE = 2;
/** Between two reads of runs: a fleet that moves fast is no load of its own. */
const PAUSE = 25;
/** A list of so many runs is asked for every four seconds, one of twice as many half as often. */
const FEW = 250;
/** Runs of an opening frame whose Gates are read without being asked for. */
const MOST_FIRST = 300;

export class Feeds extends EventTarget {
  #sources = new Map();
  #wanted = [];
  #open = new Set();
  /** When a browser last began to attach to a feed. */
  #tried = new Map();
  #queue = new Set();
  #reading = new Set();
  #again = new Set();
  #isBroken = false;
  #run = null;
  #assembly = null;
  #due = new Map();

  constructor(client, session, fleet) {
    super();
    this.client = client;
    this.session = session;
    this.fleet = fleet;
    session.addEventListener("change", () => (session.isLive ? this.readAll() : this.#forget()));
  }

  /** `live` while the Orchestrator answers; `connecting` before, and `reconnecting` after that. */
  state = "connecting";

  /** Read what is registered, then keep up with it for as long as the page is open. */
  async start() {
    for (;;) {
      await this.#turn();
      await new Promise((done) => setTimeout(done, this.state === "live" ? EVERY : RETRY));
    }
  }

  /** Follow these Workflows, the most important one first. */
  follow(names) {
    this.#wanted = names.slice(0, MOST_FEEDS);
    for (const name of this.#sources.keys()) if (!this.#wanted.includes(name)) this.#unfollow(name);
    for (const name of this.#wanted) if (!this.#sources.has(name)) this.#follow(name);
  }

  /** Follow one run with the token; `hear(event, data)` gets its frames. */
  async followRun(id, hear) {
    this.#run?.abort();
    const own = new AbortController();
    this.#run = own;
    while (id && this.session.isLive && !own.signal.aborted) {
      let last = null;
      try {
        await this.client.follow(path("runs", id, "events"), own.signal, (event, data) => {
          last = event === "status" ? data : last;
          if (!own.signal.aborted) hear(event, data);
          if (event === "status") this.read(id, { first: true });
        });
      } catch (failed) {
        if (own.signal.aborted || failed.status === 404) return;
      }
      if (last !== null && last.status !== "active") return;
      await new Promise((done) => setTimeout(done, RETRY));
    }
  }

  /** Read a run with its Gates again, soon; before all others when somebody looks at it. */
  read(id, { first = false } = {}) {
    if (!this.session.isLive) return;
    if (this.#reading.has(id)) this.#again.add(id);
    else if (first) this.#queue = new Set([id, ...this.#queue]);
    else this.#queue.add(id);
    this.#pump();
  }

  /** Read the Gates of every run that is on a list. */
  readAll() {
    for (const workflow of this.fleet.workflows.values()) {
      if (workflow.runs !== null) this.#readFirst([...workflow.runs.keys()]);
    }
  }

  #readFirst(ids) {
    for (const id of ids.slice(-MOST_FIRST)) this.read(id);
  }

  #forget() {
    this.#queue.clear();
    this.#again.clear();
    this.#run?.abort();
    this.fleet.forget();
  }

  async #pump() {
    while (this.#queue.size > 0 && this.#reading.size < AT_ONCE) {
      const [id] = this.#queue;
      this.#queue.delete(id);
      this.#reading.add(id);
      this.#readOne(id).finally(async () => {
        await new Promise((done) => setTimeout(done, PAUSE));
        this.#reading.delete(id);
        if (this.#again.delete(id)) this.#queue.add(id);
        this.#pump();
      });
    }
  }

  async #readOne(id) {
    const token = this.session.token();
    try {
      const run = await this.client.get(path("runs", id));
      if (token !== this.session.token()) return;
      this.fleet.open(id, run.workflow, run.gates ?? []);
      this.dispatchEvent(new CustomEvent("run", { detail: run }));
    } catch (failed) {
      if (failed.status === 404) this.fleet.open(id, "", []);
      // A run that waits says nothing more for weeks, so what was lost is asked for again.
      else setTimeout(() => token === this.session.token() && this.read(id), RETRY);
    }
  }

  #follow(name) {
    const source = new EventSource(path("workflows", name, "events"));
    this.#sources.set(name, source);
    this.#tried.set(name, Date.now());
    const on = (event, take) =>
      source.addEventListener(event, (frame) => {
        if (this.#sources.get(name) === source) take(JSON.parse(frame.data));
      });
    source.addEventListener("open", () => this.#opened(name, true));
    source.addEventListener("error", () => {
      if (this.#sources.get(name) !== source) return;
      this.#opened(name, false);
      this.#tried.set(name, Date.now());
      // A browser attaches again after a cut, and not after an answer that is an error.
      if (source.readyState !== EventSource.CLOSED) return;
      this.#sources.delete(name);
      setTimeout(() => this.follow(this.#wanted), RETRY);
    });
    on("runs", (observed) => this.#readFirst(this.fleet.replace(name, observed)));
    on("status", (observed) => {
      this.fleet.status(observed);
      if (observed.status === "active") this.read(observed.runId);
      this.dispatchEvent(new CustomEvent("status", { detail: observed }));
    });
    on("gone", ({ runId }) => this.fleet.gone(name, runId));
    on("closed", () => this.#opened(name, false));
  }

  #unfollow(name) {
    this.#sources.get(name)?.close();
    this.#sources.delete(name);
    this.#open.delete(name);
  }

  #opened(name, isOpen) {
    if (isOpen) this.#open.add(name);
    else this.#open.delete(name);
    const [first] = this.#wanted;
    if (name === first || first === undefined) this.#become(isOpen ? "live" : "reconnecting");
  }

  #become(state) {
    if (state === "reconnecting" && this.state === "connecting") return;
    if (state === this.state) return;
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }

  /**
   * Attach anew to feeds that a forward which leads nowhere holds up: it says nothing, and does not
   * end. After a silence these are all; else those that did not open, though others are answered.
   */
  #attachAgain() {
    for (const name of [...this.#sources.keys()]) {
      const isStuck = !this.#open.has(name) && Date.now() > this.#tried.get(name) + OPENS;
      if (this.#isBroken || isStuck) this.#unfollow(name);
    }
    this.#isBroken = false;
    this.follow(this.#wanted);
  }

  /** Read what no feed tells: the registered names, the current Assembly, and the other runs. */
  async #turn() {
    try {
      const health = await this.client.get("/healthz", { open: true, patience: HEARTBEAT });
      if (!this.fleet.isRead || health.hash !== this.#assembly) {
        this.fleet.register(await this.client.get("/workflows", { open: true }));
        this.#assembly = health.hash;
        this.dispatchEvent(new Event("assembly"));
      }
      for (const { name } of [...this.fleet.workflows.values()]) {
        if (this.#sources.has(name) || Date.now() < (this.#due.get(name) ?? 0)) continue;
        const observed = await this.client.get(path("workflows", name, "runs"), { open: true });
        if (this.#sources.has(name)) continue;
        this.#readFirst(this.fleet.replace(name, observed));
        this.#due.set(name, Date.now() + EVERY * (observed.length / FEW) - EVERY / 2);
      }
      this.#attachAgain();
      const [first] = this.#wanted;
      if (first === undefined || this.#open.has(first)) this.#become("live");
    } catch {
      this.#isBroken = true;
      this.#become("reconnecting");
    }
  }
}
