import { get, maybe, remove } from "../api.js";
import { copyable } from "../copy.js";
import { button, byId, empty, fill, h, part } from "../dom.js";
import { queue } from "../forms.js";
import { idHere, mayWrite, painted, start } from "../frame.js";
import { lineageGraph } from "../graph.js";
import { story } from "../imported.js";
import { facts, figures } from "../links.js";
import { modelWork } from "../modelwork.js";
import { pictures } from "../pictures.js";
import { sheetCard } from "../sheet.js";
import { ago, bytes, count, figure, joined, many } from "../words.js";

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
  fill(byId("model"), head(model, exported), headline(model, evaluation?.result), seen(model, job, evaluation),
    part("Flashcards of it", sets.length ? h("div", { class: "grid sheets" }, sets.map((set) => sheetCard(set))) : null),
    mayWrite() ? part("What next", forms) : null,
    part("Lineage", h("div", { class: "panel" }, lineageGraph(lineage, model.name))),
    part("Before it came here", lineage.imported ? story(lineage.imported) : null),
    h("div", { class: "two" }, part("Architecture", h("div", { class: "panel" }, architecture(model))),
      model.task === "classify" ? null : part("Capsule", h("div", { class: "panel" }, capsule(model)))));
  if (!forms && mayWrite()) {
    await painted();
    forms = modelWork(model, (await get("/v1/datasets?limit=100")).items);
    return 0;
  }
  return 8000;
}

/** What it makes of images, as the job saw it that made or measured it. */
function seen({ task }, job, evaluation) {
  const [title, wanted] = task === "classify" ? ["Answers", /^(confusion|calibration)/] : ["Reconstructions", /^reconstructions/];
  const found = [evaluation, job].filter(Boolean).map((each) => pictures(each, (name) => wanted.test(name))).find(Boolean);
  return part(title, found ?? empty("No picture yet", "Evaluate the model on a dataset to see images and what it makes of them."));
}

/** The file, once a job has made it; before, the job. Of a model that came as ONNX it is the file that came. */
function onnx({ architecture: { family } }, exported) {
  if (family.startsWith("onnx")) return h("a", { class: "button", href: `/v1/models/${id}/weights`, download: true }, "ONNX");
  const made = exported
    ? h("a", { class: "button", href: `/v1/models/${id}/onnx`, download: true }, "ONNX")
    : mayWrite() ? button("Export as ONNX", () => queue({ kind: "export", model: id })) : null;
  return [h("a", { class: "button", href: `/v1/models/${id}/weights`, download: true }, "Weights"), made];
}

const head = (model, exported) => h("div", { "data-key": "head" },
  h("div", { class: "title" }, h("h1", {}, h("bdi", {}, model.name)), h("span", { class: "badge" }, model.origin),
    h("div", { class: "verbs" }, onnx(model, exported),
      h("a", { class: "button", href: `/v1/models/${id}/bundle`, download: true }, "Bundle"), mayWrite() ? button("Delete", gone, { class: "danger" }) : null)),
  h("p", { class: "lead" }, `added ${ago(model.created_at)} · `, h("code", {}, id)));

async function gone() {
  if (!confirm("Delete this model? Its flashcards have to go first.")) return;
  await remove(`/v1/models/${id}`);
  location.href = "/models";
}

const headline = (model, measured) => figures([
  ["Parameters", count(model.parameters)], ["Size", bytes(model.size)],
  ["Accuracy", measured?.accuracy != null ? figure(measured.accuracy) : null],
  ["Test MAE", measured?.mae != null ? figure(measured.mae) : null], ["PSNR", measured?.psnr != null ? `${figure(measured.psnr)} dB` : null],
  ["Smallest error ε₁", model.capsule ? figure(model.capsule.eps1) : null],
]);

const PROOF = { upload: "none: nothing proves that it runs here as at home", import: "none: nothing proves that it runs here as there" };

function architecture(model) {
  const probe = model.probe ? "every use is checked against it" : PROOF[model.origin] ?? "not needed: it was made here";
  return [facts([["name", model.architecture_name], ...Object.entries(model.architecture), ["images", model.input], ["values", `${model.range[0]} to ${model.range[1]}`], ["digest", h("code", {}, model.digest)], ["probe", probe]]),
    model.mapping ? h("details", {}, h("summary", {}, "How its tensors were called"), facts(model.mapping)) : null];
}

function capsule({ capsule: found, architecture: { family } }) {
  if (!found)
    return [h("p", {}, "None. Where the data still is, measure one: better cards are drawn from it, and P1, P2 and FLSD can be told."),
      copyable(`flashcards capsule --model weights.${family === "onnx" ? "onnx" : "safetensors"} --data images.npz --attach ${id}`, "the command")];
  const shares = joined(...Object.entries(found.error_quantiles).map(([share, error]) => `${Number((100 * share).toFixed(1))} % below ${figure(error)}`));
  return facts([
    ["measured on", many(found.count, found.measured_on === "cards" ? "card" : "image")], ["latent", found.latent.join(" x ")],
    ["error", `${figure(found.eps1)} to ${figure(found.eps2)}, mean ${figure(found.mean_error)}`],
    ["of the images", shares], ["channel mean", found.channel_mean], ["size", bytes(found.size)],
    ["file", h("a", { href: `/v1/models/${id}/capsule`, download: true }, "capsule.safetensors")],
  ]);
}

start(show);
