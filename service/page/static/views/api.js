import { get } from "../api.js";
import { byId, fill, h } from "../dom.js";
import { start } from "../frame.js";
import { plain } from "../words.js";

const TAGS = ["models", "datasets", "jobs", "flashcards", "learners", "bundles", "webhooks", "submissions", "storage", "keys", "health"];
let spec = null;

async function show() {
  spec ??= await get("/openapi.json");
  draw();
  return 3_600_000;
}

function draw() {
  const wanted = byId("find").value.trim().toLowerCase();
  const all = Object.entries(spec.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })));
  const found = all.filter(({ path, method, operationId, description }) => `${method} ${path} ${operationId} ${description ?? ""}`.toLowerCase().includes(wanted));
  const tags = [...new Set([...TAGS, ...found.flatMap(({ tags: each }) => each ?? [])])].filter((tag) => found.some((each) => each.tags?.includes(tag)));
  fill(byId("api"), found.length ? tags.map((tag) => h("section", { class: "part", "data-key": tag, "aria-labelledby": `tag-${tag}` },
    h("div", { class: "head" }, h("h2", { id: `tag-${tag}` }, plain(tag))),
    h("div", { class: "panel" }, found.filter((each) => each.tags?.includes(tag)).map(operationNode)))) : h("p", { class: "empty" }, "No route is like that."));
}

function operationNode({ path, method, summary, description, parameters = [], requestBody, responses }) {
  const body = Object.values(requestBody?.content ?? {})[0]?.schema;
  return h("details", { class: "operation", "data-key": `${method} ${path}` },
    h("summary", {}, h("span", { class: "method" }, method.toUpperCase()), h("code", {}, path), h("span", { class: "small soft" }, summary ?? "")),
    h("div", { class: "stack" },
      description ? h("p", {}, description) : null,
      parameters.length ? fieldTable("Parameters", parameters.map(({ name, in: place, required, schema, description: words }) => [name, `${place}${required ? ", required" : ""}`, typeOf(schema), words ?? schema?.description])) : null,
      body ? bodyNode(body) : null,
      fieldTable("Answers", Object.entries(responses).map(([code, answer]) => [code, "", typeOf(Object.values(answer.content ?? {})[0]?.schema), answer.description]))));
}

const fieldTable = (title, rows) => h("div", { class: "table" }, h("table", {}, h("caption", {}, title),
  h("tbody", {}, rows.map(([name, place, type, words]) => h("tr", {}, h("th", { scope: "row" }, h("code", {}, name)), h("td", { class: "soft" }, place), h("td", {}, type), h("td", {}, words ?? ""))))));

/** One table a kind, where the body is one of several. */
function bodyNode(schema) {
  const kinds = resolve(schema).oneOf ?? [schema];
  return kinds.map((each) => {
    const { properties = {}, required = [], title, format } = resolve(each);
    if (!Object.keys(properties).length) return h("p", { class: "soft" }, `Body: ${format === "binary" || !title ? "the file itself" : title}`);
    return fieldTable(`Body: ${title}`, Object.entries(properties).map(([name, field]) => [name, required.includes(name) ? "required" : defaultOf(field), typeOf(field), field.description]));
  });
}

const defaultOf = ({ default: value }) => (value === undefined ? "" : JSON.stringify(value));
const resolve = (schema) => (schema.$ref ? spec.components.schemas[schema.$ref.split("/").at(-1)] : schema);

function typeOf(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.join(" | ");
  const several = schema.anyOf ?? schema.oneOf;
  if (several) return several.map(typeOf).filter((type) => type !== "null").join(" | ");
  return schema.type === "array" ? `list of ${typeOf(schema.items)}` : (schema.type ?? "");
}

byId("find").addEventListener("input", () => spec && draw());
start(show);
