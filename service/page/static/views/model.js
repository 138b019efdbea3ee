import { get, maybe, remove } from "../api.js";
import { copyable } from "../copy.js";
import { button, byId, empty, fill, h, part } from "../dom.js";
import { form, queue } from "../forms.js";
import { idHere, mayWrite, painted, start } from "../frame.js";
import { lineageGraph } from "../graph.js";
import { facts, figures } from "../links.js";
import { pictures } from "../pictures.js";
import { sheetCard } from "../sheet.js";
import { ago, bytes, count, figure, many } from "../words.js";

const id = idHere();
let forms = null;

async function show() {
  const [model, lineage] = await Promise.all([get(`/v1/models/${id}`), get(`/v1/models/${id}/lineage`)]);
  const measuring = lineage.used_by.find((each) => lineage.names[each] === "evaluate job, succeeded");
  const exported = lineage.used_by.some((each) => lineage.names[each] === "export job, succeeded");
  const [job, evaluation, { items: sets }] = await Promise.all([
    model.job ? maybe(`/v1/jobs/${model.job}`) : null,
    measuring ? maybe(`/v1/jobs/${measuring}`) : null,
    get(`/v1/flashcards?model=${id}&limit=4`),
  ]);
  document.title = `${model.name} · Flashcards`;
  fill(byId("model"), head(model, exported), headline(model, evaluation?.result),
    part("Reconstructions", [job, evaluation].filter(Boolean).map((each) => pictures(each, (name) => name.startsWith("reconstructions"))).find(Boolean)
      ?? empty("No picture yet", "Evaluate the model on a dataset to see images and what it makes of them.")),
    part("Flashcards of it", sets.length ? h("div", { class: "grid" }, sets.map((set) => sheetCard(set))) : null),
    part("Lineage", h("div", { class: "panel" }, lineageGraph(lineage, model.name))),
    part("Before it came here", lineage.imported ? h("div", { class: "panel" }, story(lineage.imported)) : null),
    h("div", { class: "two part-gap" },
      part("Architecture", h("div", { class: "panel" }, facts([["name", model.architecture_name], ...Object.entries(model.architecture), ["images", model.input], ["values", `${model.range[0]} to ${model.range[1]}`], ["digest", h("code", {}, model.digest)], ["probe", model.probe ? "every use is checked against it" : "none: nothing proves that it runs here as at home"]]),
        model.mapping ? h("details", {}, h("summary", {}, "How its tensors were called"), facts(model.mapping)) : null)),
      part("Capsule", h("div", { class: "panel" }, capsule(model)))),
    mayWrite() ? part("What next", forms) : null);
  if (!forms && mayWrite()) {
    await painted();
    forms = work(await get("/v1/datasets?limit=100"));
    return 0;
  }
  return 8000;
}

/** What its bundle says. Ids of another installation lead nowhere here. */
function story({ bundle, made_by: by, id: there, model, lineage: { jobs, datasets, models }, recipes }) {
  const those = (things, words) => (things.length ? h("span", {}, things.map((each, place) => [place ? ", " : "", h("bdi", {}, words(each)), " ", h("code", {}, each.id)])) : null);
  return facts([
    ["was", h("code", {}, there)], ["came to be by", model?.origin], ["bundle", h("code", {}, bundle)], ["made by", by],
    ["jobs", those(jobs, (job) => job.kind)], ["data", those(datasets, (dataset) => dataset.name)],
    ["models", those(models, (each) => each.name)], ["flashcards", those(recipes, ({ recipe }) => `${count(recipe.count)} from ${recipe.source}`)],
  ]);
}

/** The file, once a job has made it; before, the job. */
const onnx = (exported) => exported
  ? h("a", { class: "button", href: `/v1/models/${id}/onnx`, download: true }, "ONNX")
  : mayWrite() ? button("Export as ONNX", () => queue({ kind: "export", model: id })) : null;

const head = (model, exported) => h("div", { "data-key": "head" },
  h("div", { class: "title" }, h("h1", {}, h("bdi", {}, model.name)), h("span", { class: "badge" }, model.origin),
    h("div", { class: "verbs" }, h("a", { class: "button", href: `/v1/models/${id}/weights`, download: true }, "Weights"), onnx(exported),
      h("a", { class: "button", href: `/v1/models/${id}/bundle`, download: true }, "Bundle"), mayWrite() ? button("Delete", gone, { class: "danger" }) : null)),
  h("p", { class: "lead" }, `added ${ago(model.created_at)} · `, h("code", {}, id)));

async function gone() {
  if (!confirm("Delete this model? Its flashcards have to go first.")) return;
  await remove(`/v1/models/${id}`);
  location.href = "/models";
}

const headline = (model, measured) => figures([
  ["Parameters", count(model.parameters)], ["Size", bytes(model.size)],
  ["Test MAE", measured?.mae != null ? figure(measured.mae) : null], ["PSNR", measured?.psnr != null ? `${figure(measured.psnr)} dB` : null],
  ["Smallest error ε₁", model.capsule ? figure(model.capsule.eps1) : null],
]);

function capsule({ capsule: found, architecture: { family } }) {
  if (!found)
    return [h("p", {}, "None. Where the data still is, measure one: better cards are drawn from it, and P1, P2 and FLSD can be told."),
      copyable(`flashcards capsule --model weights.${family === "onnx" ? "onnx" : "safetensors"} --data images.npz --attach ${id}`, "the command")];
  return facts([
    ["measured on", many(found.count, found.measured_on === "cards" ? "card" : "image")], ["latent", found.latent.join(" x ")],
    ["error", `${figure(found.eps1)} to ${figure(found.eps2)}, mean ${figure(found.mean_error)}`],
    ["quantiles", found.error_quantiles], ["channel mean", found.channel_mean], ["size", bytes(found.size)],
    ["file", h("a", { href: `/v1/models/${id}/capsule`, download: true }, "capsule.safetensors")],
  ]);
}

const SOURCES = ["auto", "capsule", "latent", "maze", "geometric", "noise"].map((name) => [name, name]);

function work({ items: datasets }) {
  const chosen = datasets.map((dataset) => [dataset.id, dataset.name]);
  return h("div", { class: "grid" },
    h("div", { class: "panel" }, h("h3", {}, "Capture its knowledge"), form([
      { name: "count", label: "Cards", type: "number", value: 256, min: 1, max: 1000000 },
      { name: "source", label: "Where they start", type: "select", value: "auto", options: SOURCES },
      { name: "r", label: "Passes r", value: "auto", hint: "auto, or a number: 10 to 20 for mazes." },
    ], "Capture", ({ r, ...values }) => queue({ kind: "capture", model: id, ...values, r: r === "auto" ? r : Number(r) }))),
    h("div", { class: "panel" }, h("h3", {}, "See every pass"), form([
      { name: "max_r", label: "Passes", type: "number", value: 20, min: 1, max: 1000 },
      { name: "count", label: "Cards to look at", type: "number", value: 64, min: 16, max: 20000 },
    ], "Analyze", (values) => queue({ kind: "analyze", model: id, ...values }))),
    chosen.length ? h("div", { class: "panel" }, h("h3", {}, "Measure it on images"), form([
      { name: "dataset", label: "Dataset", type: "select", options: chosen },
    ], "Evaluate", (values) => queue({ kind: "evaluate", model: id, ...values }))) : null);
}

start(show);
