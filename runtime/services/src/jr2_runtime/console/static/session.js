// The Instance token of this tab: kept in `sessionStorage`, never in a cookie, and believed only
// after a guarded read has opened with it.

import { PATIENCE, RETRY } from "./http.js";

const KEPT = "jr2.token";

/** States of a token, as the badge says them. */
export const STATES = ["none", "checking", "live", "invalid"];

export class Session extends EventTarget {
  #token = "";
  state = "none";

  /** The token to send; "" while there is none that opened something. */
  token() {
    return this.state === "live" ? this.#token : "";
  }

  get isLive() {
    return this.state === "live";
  }

  /** Take up what this tab held before it was loaded again. */
  resume() {
    const kept = sessionStorage.getItem(KEPT);
    if (kept) this.check(kept);
  }

  /** Try a token: a read that needs it decides, and its answer is not waited for to the end. */
  async check(token) {
    this.#token = token;
    // One that was live stays, also while nobody answers: the page may be read again meanwhile.
    if (sessionStorage.getItem(KEPT) !== token) sessionStorage.removeItem(KEPT);
    if (token === "") {
      this.#become("none");
      return;
    }
    this.#become("checking");
    let state;
    try {
      const response = await fetch("/runs", {
        headers: { Accept: "application/json", Authorization: `Bearer ${token}` },
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
        signal: AbortSignal.timeout(PATIENCE),
      });
      await response.body?.cancel();
      state = response.ok ? "live" : response.status === 401 || response.status === 403 ? "invalid" : null;
    } catch (failed) {
      // A text that no header can carry is no token; else nobody answered.
      state = failed instanceof TypeError && !/^[\x21-\x7e]+$/.test(token) ? "invalid" : null;
    }
    if (this.#token !== token) return;
    if (state === null) {
      setTimeout(() => this.#token === token && this.state === "checking" && this.check(token), RETRY);
      return;
    }
    if (state === "live") sessionStorage.setItem(KEPT, token);
    else {
      this.#token = "";
      sessionStorage.removeItem(KEPT);
    }
    this.#become(state);
  }

  /** The token opens nothing any more: go on as an observer. */
  drop() {
    if (this.state !== "live") return;
    this.#token = "";
    sessionStorage.removeItem(KEPT);
    this.#become("invalid");
  }

  #become(state) {
    this.state = state;
    this.dispatchEvent(new Event("change"));
  }
}
