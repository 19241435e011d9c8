// Requests to the Orchestrator that served the page, and to nobody else.

/** An answer that is an error; `status` is 0 when there was no answer, and it `isCut` when that was seen. */
export class Refused extends Error {
  constructor(status, message, isCut = false) {
    super(message);
    this.status = status;
    this.isCut = isCut;
  }
}

const SILENT = "the Orchestrator does not answer";
/** How long an answer is waited for: a forward that leads nowhere any more may stay open for ever. */
export const PATIENCE = 30_000;
/** After so long, what got no answer is asked for again; the script in the page waits as long. */
export const RETRY = 2000;
/** When a write that was cut is sent again; a network that changes cuts more than once. */
const AGAIN = [300, 1000];
/** A feed without a byte for so long is broken; a live one says something every 15 seconds. */
const SILENCE = 45_000;

/** Return a path of segments, each of which may hold any text. */
export function path(...segments) {
  return `/${segments.map(encodeURIComponent).join("/")}`;
}

export class Client {
  /** `token()` gives the Instance token or "", `unauthorized()` is called when it opens nothing. */
  constructor(token, unauthorized) {
    this.token = token;
    this.unauthorized = unauthorized;
  }

  /** Read JSON; `open` sends no token. */
  async get(where, { open = false, patience = PATIENCE } = {}) {
    return read(await this.#ask(where, { signal: AbortSignal.timeout(patience) }, open));
  }

  /** Send JSON under a key: what is sent again, as when it was cut on its way, is done once. */
  async post(where, text, { key, gate }) {
    const headers = { "Content-Type": "application/json", "Idempotency-Key": key };
    if (gate) headers["If-Gate"] = gate;
    for (const pause of [...AGAIN, null]) {
      try {
        return await read(await this.#ask(where, { method: "POST", body: text, headers }));
      } catch (failed) {
        if (!failed.isCut || pause === null) throw failed;
        await new Promise((done) => setTimeout(done, pause));
      }
    }
  }

  /** Follow a feed that needs the token; returns when it has ended. */
  async follow(where, signal, hear) {
    const headers = { Accept: "text/event-stream" };
    const own = new AbortController();
    const end = () => own.abort();
    signal.addEventListener("abort", end);
    let silence;
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => own.abort(new Refused(0, SILENT)), SILENCE);
    };
    try {
      if (signal.aborted) end();
      heard();
      const response = await this.#ask(where, { signal: own.signal, headers });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const parse = frames(hear);
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        heard();
        parse(value);
      }
    } finally {
      clearTimeout(silence);
      signal.removeEventListener("abort", end);
    }
  }

  async #ask(where, options, open = false) {
    const token = open ? "" : this.token();
    const headers = { Accept: "application/json", ...options.headers };
    if (token) headers.Authorization = `Bearer ${token}`;
    let response;
    try {
      response = await fetch(where, {
        signal: AbortSignal.timeout(PATIENCE),
        ...options,
        headers,
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
      });
    } catch (failed) {
      if (failed.name === "AbortError") throw failed;
      throw new Refused(0, SILENT, failed.name !== "TimeoutError");
    }
    if (response.ok) return response;
    // An answer to a token that has been replaced since says nothing about the one that is there.
    if (response.status === 401 && token && token === this.token()) this.unauthorized();
    let said = "";
    try {
      said = (await response.json()).error;
    } catch {
      // Not our own error body: something stands between, and its status is all that is known.
    }
    throw new Refused(response.status, said || `the Orchestrator answered ${response.status}`);
  }
}

/** Return the JSON of an answer; one that was cut on its way is no answer. */
async function read(response) {
  try {
    return await response.json();
  } catch (failed) {
    if (failed.name === "AbortError") throw failed;
    throw new Refused(0, SILENT, failed.name !== "TimeoutError");
  }
}

/** Return what takes the pieces of a text of server-sent events; `hear` gets each event. */
export function frames(hear) {
  let rest = "";
  return (piece) => {
    const blocks = (rest + piece).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      let event = "message";
      const data = [];
      for (const line of block.split("\n")) {
        if (line.startsWith("event: ")) event = line.slice(7);
        else if (line.startsWith("data: ")) data.push(line.slice(6));
      }
      if (data.length > 0) hear(event, JSON.parse(data.join("\n")));
    }
  };
}

/** Return a new key for one write. */
export function newKey() {
  // `randomUUID` is for secure pages alone, and a Service's name over http is none.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `console-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
