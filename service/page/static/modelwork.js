// What may be asked of a model: of an autoencoder its cards, of a classifier its answers, of both how good it is.

import { h } from "./dom.js";
import { form, queue } from "./forms.js";

const SOURCES = ["auto", "capsule", "latent", "maze", "geometric", "noise"].map((name) => [name, name]);
const panel = (title, fields, verb, send) => h("div", { class: "panel" }, h("h3", {}, title), form(fields, verb, send));

export function modelWork({ id, task, input }, datasets) {
  const suits = ({ splits }) => Object.values(splits).every(({ shape, classes }) => shape === input && (task !== "classify" || classes != null));
  const chosen = { name: "dataset", label: "Dataset", type: "select", options: datasets.filter(suits).map((dataset) => [dataset.id, dataset.name]) };
  const withImages = chosen.options.length ? [
    panel("Measure it on images", [chosen], "Evaluate", (values) => queue({ kind: "evaluate", model: id, ...values })),
    task === "classify" ? panel("Let it answer", [chosen, { name: "limit", label: "Images", type: "number", value: 16, min: 1, max: 1000 }], "Predict", (values) => queue({ kind: "predict", model: id, ...values })) : null,
  ] : [h("div", { class: "panel" }, h("h3", {}, "Measure it on images"), h("p", { class: "soft" }, `No dataset has images of ${input}${task === "classify" ? " with labels" : ""}. `, h("a", { href: "/datasets" }, "Drop one"), "."))];
  return h("div", { class: "grid fit" }, task === "classify" ? null : capturing(id), withImages);
}

const capturing = (model) => [
  panel("Capture its knowledge", [
    { name: "count", label: "Cards", type: "number", value: 256, min: 1, max: 1000000 },
    { name: "source", label: "Where they start", type: "select", value: "auto", options: SOURCES },
    { name: "r", label: "Passes r", value: "auto", hint: "auto, or a number: 10 to 20 for mazes." },
  ], "Capture", ({ r, ...values }) => queue({ kind: "capture", model, ...values, r: r === "auto" ? r : Number(r) })),
  panel("See every pass", [
    { name: "max_r", label: "Passes", type: "number", value: 20, min: 1, max: 1000 },
    { name: "count", label: "Cards to look at", type: "number", value: 64, min: 16, max: 20000 },
  ], "Analyze", (values) => queue({ kind: "analyze", model, ...values })),
];
