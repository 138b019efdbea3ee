// Small forms that queue a job and go to it.

import { post } from "./api.js";
import { h } from "./dom.js";
import { mayWrite } from "./frame.js";
import { address } from "./links.js";

let number = 0;

/** fields: {name, label, type, value, options, hint, min, max}; `send(values)` gives what to go to. */
export function form(fields, verb, send) {
  const problem = h("p", { class: "note", "data-tone": "bad", role: "alert", hidden: true });
  const submit = h("button", { type: "submit", class: "main", disabled: !mayWrite() }, verb);
  const drawn = fields.map((each) => field(each));
  const node = h("form", { class: "form", on: { submit: sent } }, ...drawn, problem,
    mayWrite() ? null : h("p", { class: "hint" }, "This key may read only."), h("div", {}, submit));
  async function sent(event) {
    event.preventDefault();
    submit.disabled = true;
    problem.hidden = true;
    try {
      await send(values(node, fields));
    } catch (error) {
      problem.replaceChildren(h("strong", {}, error.title ?? "That did not work"), error.detail ?? error.message);
      problem.hidden = false;
    }
    submit.disabled = false;
  }
  return node;
}

function field({ name, label, type = "text", value, options, hint, min, max, step, required = true }) {
  const id = `field-${name}-${(number += 1)}`;
  const shared = { id, name, "aria-describedby": hint ? `${id}-hint` : null };
  const told = hint ? h("p", { class: "hint", id: `${id}-hint` }, hint) : null;
  if (type === "checks")
    return h("fieldset", {}, h("legend", {}, label), options.map(([key, words, isOn]) =>
      h("label", { class: "check" }, h("input", { type: "checkbox", name, value: key, checked: isOn }), h("span", {}, h("bdi", {}, words)))), told);
  const control = type === "select"
    ? h("select", shared, options.map(([key, words]) => h("option", { value: key, selected: key === value }, words)))
    : h("input", { ...shared, type, value, min, max, step: type === "number" ? (step ?? 1) : null, required, maxlength: 200, autocomplete: "off" });
  return h("div", {}, h("label", { for: id }, label), control, told);
}

function values(node, fields) {
  const data = new FormData(node);
  return Object.fromEntries(fields.flatMap(({ name, type }) => {
    if (type === "checks") return [[name, data.getAll(name)]];
    const value = data.get(name);
    if (value === "" || value == null) return [];
    return [[name, type === "number" ? Number(value) : value]];
  }));
}

export const go = (id) => (location.href = address(id));
export const queue = async (spec) => go((await post("/v1/jobs", spec)).id);

export const STRATEGIES = [
  ["flashcards", "flashcards: replays cards"],
  ["naive", "naive: keeps nothing"],
  ["coreset", "coreset: keeps some images"],
  ["joint", "joint: keeps all images"],
  ["lwf", "lwf: keeps its old answers"],
  ["ewc", "ewc: holds weights that mattered"],
  ["si", "si: as ewc, gathered along the way"],
  ["vae_replay", "vae_replay: a generator beside it"],
];

const FOR_CLASSES = [
  ["imm", "imm: old and new weights, merged"],
  ["eeil", "eeil: keeps some images, balanced at the end"],
  ["agem", "agem: keeps some images, bends steps that would hurt them"],
];

export const SCENARIOS = [
  ["reconstruction", "reconstruction: gives images back"],
  ["denoising", "denoising: takes noise away"],
  ["task_incremental", "task_incremental: new classes a task"],
  ["new_instance", "new_instance: old classes, new images"],
];

/** Does what learns say what images show? */
export const classifies = (scenario) => ["task_incremental", "new_instance"].includes(scenario);
export const strategiesFor = (scenario) => (classifies(scenario) ? [...STRATEGIES, ...FOR_CLASSES] : STRATEGIES);

/** As many halvings as the sides of these images allow. */
export function fitting(shape, filters = 32) {
  const sides = shape.split("x").slice(0, 2).map(Number);
  const fits = (times) => sides.every((side) => side % 2 ** times === 0 && side >= 4 * 2 ** (times - 1));
  const blocks = [4, 3, 2, 1].find(fits);
  return blocks ? `blk_${blocks}_fil_${filters}` : "dense_ae_128_32";
}

export const networkField = (value) => ({ name: "architecture", label: "Architecture", value, hint: "blk_B_fil_F, vae_B_fil_F, conv_ae_…, dense_ae_…" });
export const epochsField = (value = 20) => ({ name: "epochs", label: "Epochs", type: "number", value, min: 1, max: 100000 });
