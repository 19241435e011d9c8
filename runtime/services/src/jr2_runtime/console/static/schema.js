// What a form has to ask for, from a JSON Schema; and the JSON that its answers make. Pure.
//
// A field that has no form of its own, such as a list or a union, is asked for as JSON. What is left
// empty and is not required is left out, so that the other side's default holds.

const DEEPEST = 3;

/** Return the fields of an object's schema, or null when only raw JSON can be asked for. */
export function fields(schema, root = schema, depth = 0) {
  const own = resolve(schema, root);
  if (!own || own.type !== "object" || !own.properties || depth > DEEPEST) return null;
  // Names that the schema does not know can be given as JSON alone.
  if (depth === 0 && own.additionalProperties && Object.keys(own.properties).length === 0) return null;
  const required = new Set(own.required ?? []);
  return Object.entries(own.properties).map(([name, part]) =>
    field(name, part, root, required.has(name), depth),
  );
}

function field(name, part, root, required, depth) {
  const outer = resolve(part, root);
  const { schema, nullable } = unwrapped(outer, root);
  const told = {
    name,
    title: outer.title ?? schema.title ?? name,
    description: outer.description ?? schema.description ?? "",
    required,
    nullable,
    initial: outer.default ?? schema.default,
    schema,
  };
  if ("const" in schema) return { ...told, kind: "choice", options: [schema.const] };
  if (Array.isArray(schema.enum)) return { ...told, kind: "choice", options: schema.enum };
  if (schema.type === "boolean") return { ...told, kind: "boolean" };
  if (schema.type === "integer" || schema.type === "number") return { ...told, kind: schema.type };
  if (schema.type === "string") return { ...told, kind: "text" };
  const inner = nullable ? null : fields(schema, root, depth + 1);
  if (inner !== null) return { ...told, kind: "group", fields: inner };
  return { ...told, kind: "json" };
}

function resolve(schema, root) {
  let own = schema;
  for (let hops = 0; own && typeof own.$ref === "string" && hops < 16; hops += 1) {
    const found = own.$ref
      .replace(/^#\/?/, "")
      .split("/")
      .filter((part) => part !== "")
      .reduce((at, part) => at?.[part.replaceAll("~1", "/").replaceAll("~0", "~")], root);
    const { $ref, ...more } = own;
    own = found && typeof found === "object" ? { ...found, ...more } : more;
  }
  return own;
}

/** Return a schema without the `null` that it may be. */
function unwrapped(schema, root) {
  const among = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(among)) {
    const rest = among.map((one) => resolve(one, root)).filter((one) => one.type !== "null");
    if (rest.length === 1) return { schema: rest[0], nullable: rest.length < among.length };
    return { schema: {}, nullable: rest.length < among.length };
  }
  if (Array.isArray(schema.type)) {
    const rest = schema.type.filter((one) => one !== "null");
    const nullable = rest.length < schema.type.length;
    return { schema: rest.length === 1 ? { ...schema, type: rest[0] } : {}, nullable };
  }
  if (Array.isArray(schema.allOf) && schema.allOf.length === 1) {
    const { allOf, ...more } = schema;
    return { schema: { ...resolve(allOf[0], root), ...more }, nullable: false };
  }
  return { schema, nullable: false };
}

/** A text that a person wrote and that is not what the field takes. */
export class BadAnswer extends Error {}

/** Return what an answer to one field says; undefined leaves it out. Throws BadAnswer. */
export function value(asked, answer) {
  if (asked.kind === "boolean") return answer;
  if (asked.kind === "choice") {
    return answer === "" ? empty(asked) : asked.options[Number(answer)];
  }
  if (asked.kind === "text") {
    if (answer !== "") return answer;
    // An empty text is a text, where one is asked for.
    return asked.required && !asked.nullable ? "" : empty(asked);
  }
  if (answer.trim() === "") return empty(asked);
  if (asked.kind === "json") return parsed(answer, asked.title);
  const number = Number(answer);
  if (!Number.isFinite(number)) throw new BadAnswer(`${asked.title}: ${answer} is no number`);
  if (asked.kind === "integer" && !Number.isInteger(number)) {
    throw new BadAnswer(`${asked.title}: ${answer} is no whole number`);
  }
  if (Number.isInteger(number) && !Number.isSafeInteger(number)) {
    throw new BadAnswer(`${asked.title}: ${answer} has more digits than a browser keeps`);
  }
  return number;
}

function empty(asked) {
  if (!asked.required) return undefined;
  if (asked.nullable) return null;
  throw new BadAnswer(`${asked.title} is needed`);
}

function parsed(text, title) {
  try {
    return JSON.parse(text);
  } catch (failed) {
    throw new BadAnswer(`${title} is not JSON: ${failed.message}`);
  }
}

/** Return a text as the object that a body is. Throws BadAnswer. */
export function object(text) {
  if (text.trim() === "") return {};
  const given = parsed(text, "The input");
  if (given === null || typeof given !== "object" || Array.isArray(given)) {
    throw new BadAnswer('The input is not a JSON object, such as {"message": "hi"}');
  }
  return given;
}
