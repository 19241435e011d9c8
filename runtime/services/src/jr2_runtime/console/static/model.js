// What the page knows of the fleet: every registered Workflow, its live runs as the open feeds tell
// them, and the Gates of each, which only a token may read.
//
// A status is the whole status, so what comes last is right. A run leaves the list when a feed says
// `gone`; it stays, greyed, when this page saw it settle.

/** Settled runs that are kept for a Workflow. */
const MOST_SETTLED = 20;

export class Fleet extends EventTarget {
  /** By name, in the order of the names: `{name, registered, runs}`; `runs` is null until it is known. */
  workflows = new Map();
  /** The names have been read. */
  isRead = false;
  #gates = new Map();

  /** Return a Workflow, also one that no Assembly has: its address may be open. */
  workflow(name) {
    if (!this.workflows.has(name)) {
      this.workflows.set(name, { name, registered: false, runs: null });
      this.workflows = new Map([...this.workflows].sort(([a], [b]) => (a < b ? -1 : 1)));
    }
    return this.workflows.get(name);
  }

  /** Take the names that are registered now. */
  register(names) {
    this.isRead = true;
    for (const name of names) this.workflow(name);
    for (const each of this.workflows.values()) each.registered = names.includes(each.name);
    this.#changed();
  }

  /** Take the whole live set of a Workflow; return the runs whose Gates may be other ones now. */
  replace(name, observations) {
    const workflow = this.workflow(name);
    const before = workflow.runs ?? new Map();
    const runs = new Map();
    for (const one of before.values()) if (one.status !== "active") runs.set(one.runId, one);
    const changed = [];
    for (const one of observations) {
      const known = before.get(one.runId);
      const same = known && JSON.stringify(known) === JSON.stringify(one);
      if (!same) changed.push(one.runId);
      runs.set(one.runId, same ? known : one);
    }
    for (const id of before.keys()) if (!runs.has(id)) this.#gates.delete(id);
    workflow.runs = runs;
    this.#changed();
    return changed;
  }

  /** Take the status of one run. */
  status(observation) {
    const runs = this.#runs(observation.workflow);
    runs.set(observation.runId, observation);
    if (observation.status !== "active") {
      this.#gates.delete(observation.runId);
      const settled = [...runs.values()].filter((one) => one.status !== "active");
      for (const old of settled.slice(0, -MOST_SETTLED)) runs.delete(old.runId);
    }
    this.#changed();
  }

  /** A run left the live set; one that was seen to settle stays on the list. */
  gone(name, id) {
    const runs = this.#runs(name);
    if (runs.get(id)?.status === "active") runs.delete(id);
    this.#gates.delete(id);
    this.#changed();
  }

  /** Return what is known of a run. */
  run(name, id) {
    return this.workflows.get(name)?.runs?.get(id) ?? null;
  }

  /** Take the open Gates of a run. */
  open(id, workflow, gates) {
    if (gates.length > 0) this.#gates.set(id, { id, workflow, gates });
    else this.#gates.delete(id);
    this.#changed();
  }

  /** Return the open Gates of a run; a page without a token knows of none. */
  gatesOf(id) {
    return this.#gates.get(id)?.gates ?? [];
  }

  /** Return every open Gate that is known, with the run that waits at it. */
  attention() {
    const found = [];
    for (const { id, workflow, gates } of this.#gates.values()) {
      for (const gate of gates) found.push({ run: id, workflow, gate });
    }
    return found;
  }

  /** Forget what only a token may read. */
  forget() {
    this.#gates.clear();
    this.#changed();
  }

  #runs(name) {
    const workflow = this.workflow(name);
    workflow.runs ??= new Map();
    return workflow.runs;
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}

/** How many runs of a Workflow are live; null until it is known. */
export function liveCount(workflow) {
  if (workflow.runs === null) return null;
  let count = 0;
  for (const run of workflow.runs.values()) if (run.status === "active") count += 1;
  return count;
}

/** The name that a run has in lists. */
export function short(id) {
  return id.slice(0, 8);
}
