// Lines to take along: the same thing for a shell and for Python.

import { button, h } from "./dom.js";
import { isLocked } from "./frame.js";

/** What every kind that has such a field takes by itself; tests hold it against the contract. */
const DEFAULTS = { device: "auto", max_attempts: 3, optimizer: "adam", decay: 0.5, validation_share: 0.1, patience: 20, materialise: true };
const LONG = 88; // letters of a line

/** Text with a button that copies it. */
export function copyable(text, what) {
  const copy = button("Copy", async (node) => {
    try {
      await navigator.clipboard.writeText(text);
      node.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(node.previousElementSibling);
      node.textContent = "Selected";
    }
    setTimeout(() => (node.textContent = "Copy"), 1500);
  }, { "aria-label": `Copy ${what}` });
  return h("div", { class: "copy" }, h("pre", { tabindex: 0, role: "region", "aria-label": what }, text), copy);
}

/** What was asked for, without what would be so anyway; the kind first. */
export function asked({ kind, ...spec }) {
  const said = Object.entries(spec).filter(([name, value]) => value != null && DEFAULTS[name] !== value && !(name === "labels" && !Object.keys(value).length));
  return { kind, ...Object.fromEntries(said.map(([name, value]) => [name, name === "architecture" ? briefly(value) : value])) };
}

/** By its name, where the name says all. */
function briefly(architecture) {
  const { family, blocks, filters, activation, head } = architecture;
  return family === "blk" && activation === "tanh" && head === "linear" ? `blk_${blocks}_fil_${filters}` : architecture;
}

export function asCurl(path, body) {
  const key = isLocked() ? ` \\\n  -H "Authorization: Bearer $FLASHCARDS_KEY"` : "";
  const text = JSON.stringify(body, null, 1).replaceAll(/\n */g, " ").replaceAll("'", "'\\''");
  return `curl "${location.origin}${path}" -H "Content-Type: application/json"${key} \\\n  -d '${text}'`;
}

const KNOWN = new Set(["train", "capture", "analyze", "distill", "evaluate", "compare"]);

export function asPython({ kind, ...fields }) {
  const lines = ["from flashcards import Client", "", `client = Client("${location.origin}")`];
  const words = (entries) => entries.map(([name, value]) => `${name}=${python(value)}`);
  const call = (name, given) => {
    const line = `job = client.${name}(${given.join(", ")})`;
    return line.length <= LONG ? line : [`job = client.${name}(`, ...given.map((each) => `    ${each},`), ")"].join("\n");
  };
  if (kind === "learn") {
    const { learner, ...task } = fields;
    lines.push(call("learners.learn", [python(learner), ...words(Object.entries(task))]));
  } else if (KNOWN.has(kind)) lines.push(call(kind, words(Object.entries(fields))));
  else lines.push(call("submit", [python({ kind, ...fields })]));
  return [...lines, "client.jobs.wait(job.id)"].join("\n");
}

function python(value) {
  if (value === true) return "True";
  if (value === false) return "False";
  if (value == null) return "None";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${python(each)}`).join(", ")}}`;
  return JSON.stringify(value);
}

/** Both, for a body that is sent to /v1/jobs. */
export function sameAs(spec) {
  const body = asked(spec);
  return h("div", { class: "two" },
    h("div", {}, h("h3", {}, "As curl"), copyable(asCurl("/v1/jobs", body), "curl")),
    h("div", {}, h("h3", {}, "As Python"), copyable(asPython(body), "Python")));
}
