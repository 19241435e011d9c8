// A form from a JSON Schema, and one send of it.
//
// A send that was lost may be repeated: the same answers go out under the same `Idempotency-Key`, so
// that nothing happens twice. Other answers are another request, and get another key.

import { el } from "./dom.js";
import { newKey } from "./http.js";
import { BadAnswer, fields, object, value } from "./schema.js";

let made = 0;

/**
 * Return a form. `send(text, key)` posts the JSON that the answers make, `done(answer)` is told of
 * what came back; a refusal stands in the form, and the answers stay.
 *
 * `fixed` is what the JSON has besides the answers.
 */
export function form({ schema, label, send, done, fixed = {}, cancel = null }) {
  made += 1;
  const asked = schema ? fields(schema) : null;
  const inputs = asked ? asked.map((one) => input(one, `f${made}`)) : null;
  const raw = inputs === null ? rawInput(`f${made}`) : null;
  const problem = el("p", { class: "problem", role: "alert" });
  const submit = el("button", { type: "submit", class: "primary" }, label);
  let last = { text: null, key: null };

  const own = el(
    "form",
    { class: "form", novalidate: true, on: { submit: onSubmit } },
    ...(inputs ?? [raw]).map((one) => one.node),
    problem,
    el("div", { class: "actions" }, cancel, submit),
  );
  return own;

  function answers() {
    if (raw !== null) return object(raw.read());
    const given = {};
    for (const one of inputs) put(given, one);
    return given;
  }

  async function onSubmit(event) {
    event.preventDefault();
    if (submit.disabled) return;
    problem.textContent = "";
    let text;
    try {
      const given = answers();
      if (Object.hasOwn(fixed, "type") && Object.hasOwn(given, "type")) {
        throw new BadAnswer('The payload may not hold "type": the button gives it');
      }
      text = JSON.stringify({ ...given, ...fixed });
    } catch (failed) {
      if (!(failed instanceof BadAnswer)) throw failed;
      problem.textContent = failed.message;
      return;
    }
    if (last.text !== text) last = { text, key: newKey() };
    submit.disabled = true;
    own.classList.add("sending");
    try {
      const answer = await send(text, last.key);
      last = { text: null, key: null };
      done?.(answer);
    } catch (failed) {
      problem.textContent = lost(failed) ? `${failed.message}. Send it again: it is done once.` : failed.message;
    } finally {
      submit.disabled = false;
      own.classList.remove("sending");
    }
  }
}

/** Whether nobody knows if a request was done, or it was put off. */
function lost(failed) {
  return failed.status === 0 || failed.status === 503 || failed.status === 507;
}

function put(given, one) {
  const answer = one.read();
  // `__proto__` is a name like another one.
  if (answer !== undefined) Object.defineProperty(given, one.name, { value: answer, enumerable: true, configurable: true, writable: true });
}

function input(asked, prefix) {
  made += 1;
  const id = `${prefix}-${made}`;
  if (asked.kind === "group") return group(asked, prefix);
  const control = CONTROLS[asked.kind](asked);
  control.id = id;
  if (asked.required && asked.kind !== "boolean") control.setAttribute("aria-required", "true");
  const hint = [asked.description, asked.kind === "json" ? "As JSON." : ""].filter((one) => one).join(" ");
  if (hint) control.setAttribute("aria-describedby", `${id}-hint`);
  const title = el("label", { for: id }, asked.title, asked.required ? el("span", { class: "required", "aria-hidden": "true" }, " *") : null);
  const node = el(
    "div",
    { class: `field ${asked.kind}` },
    ...(asked.kind === "boolean" ? [control, title] : [title, control]),
    hint ? el("p", { class: "hint", id: `${id}-hint` }, hint) : null,
  );
  const read = () => value(asked, asked.kind === "boolean" ? control.checked : control.value);
  return { name: asked.name, node, read };
}

function group(asked, prefix) {
  const inner = asked.fields.map((one) => input(one, prefix));
  const node = el("fieldset", {}, el("legend", {}, asked.title), ...inner.map((one) => one.node));
  const read = () => {
    // A group that may be left out is left out while nobody wrote into it.
    const touched = inner.some((one) => one.node.querySelector?.(":scope .touched, :scope.touched"));
    if (!asked.required && !touched && !node.querySelector(".touched")) return undefined;
    const given = {};
    for (const one of inner) put(given, one);
    return given;
  };
  node.addEventListener("input", (event) => event.target.classList.add("touched"));
  return { name: asked.name, node, read };
}

const CONTROLS = {
  text: (asked) => {
    const long = typeof asked.initial === "string" && (asked.initial.length > 60 || asked.initial.includes("\n"));
    const control = el(long ? "textarea" : "input", long ? { rows: "3" } : { type: "text", autocomplete: "off", spellcheck: "false" });
    if (typeof asked.initial === "string") control.value = asked.initial;
    return control;
  },
  integer: (asked) => number(asked, "1"),
  number: (asked) => number(asked, "any"),
  boolean: (asked) => {
    const control = el("input", { type: "checkbox" });
    control.checked = asked.initial === true;
    return control;
  },
  choice: (asked) => {
    const at = asked.options.findIndex((one) => one === asked.initial);
    const control = el(
      "select",
      {},
      asked.required && at >= 0 ? null : el("option", { value: "" }, asked.required ? "choose…" : "(left out)"),
      ...asked.options.map((one, number) => el("option", { value: number }, typeof one === "string" ? one : JSON.stringify(one))),
    );
    control.value = at >= 0 ? String(at) : asked.options.length === 1 && asked.required ? "0" : "";
    return control;
  },
  json: (asked) => {
    const control = el("textarea", { rows: "3", class: "code", spellcheck: "false" });
    if (asked.initial !== undefined && asked.initial !== null) control.value = JSON.stringify(asked.initial, null, 2);
    return control;
  },
};

function number(asked, step) {
  const control = el("input", { type: "number", step, autocomplete: "off", inputmode: "decimal" });
  if (typeof asked.initial === "number") control.value = String(asked.initial);
  return control;
}

function rawInput(prefix) {
  const id = `${prefix}-raw`;
  const control = el("textarea", { id, rows: "6", class: "code", spellcheck: "false", "aria-describedby": `${id}-hint` });
  const node = el(
    "div",
    { class: "field json" },
    el("label", { for: id }, "Input as JSON"),
    control,
    el("p", { class: "hint", id: `${id}-hint` }, "There is no schema for a form. An object, such as {\"message\": \"hi\"}; nothing at all is {}."),
  );
  return { name: "", node, read: () => control.value };
}
