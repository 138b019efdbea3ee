import { get, remove } from "../api.js";
import { datasetWork, imagesOf, labelsOf, shapesOf } from "../datasets.js";
import { button, byId, fill, h, part } from "../dom.js";
import { idHere, mayWrite, start } from "../frame.js";
import { facts } from "../links.js";
import { ago, bytes } from "../words.js";

const id = idHere();
let work = null;

async function gone() {
  if (!confirm("Delete this dataset? Models and cards that came of it stay.")) return;
  await remove(`/v1/datasets/${id}`);
  location.href = "/datasets";
}

start(async () => {
  const dataset = await get(`/v1/datasets/${id}`);
  work ??= datasetWork(dataset);
  document.title = `${dataset.name} · Flashcards`;
  const names = Object.values(dataset.splits).find(({ labels }) => labels)?.labels;
  fill(byId("dataset"),
    h("div", { class: "title" }, h("h1", {}, h("bdi", {}, dataset.name)),
      h("div", { class: "verbs" }, h("a", { class: "button", href: `/v1/datasets/${id}/file`, download: true }, "Download"), mayWrite() ? button("Delete", gone, { class: "danger" }) : null)),
    h("p", { class: "lead" }, `added ${ago(dataset.created_at)} · `, h("code", {}, id)),
    h("div", { class: "side" },
      h("div", { class: "panel" }, h("h2", {}, "What is in it"), facts([
        ["images", imagesOf(dataset)], ["shape", shapesOf(dataset)], ["labels", labelsOf(dataset)], ["called", names?.join(", ")],
        ["size", bytes(dataset.size)], ["format", dataset.format], ["prepared", dataset.preparation], ["digest", h("code", {}, dataset.digest)],
        ["expires", dataset.expires_at && new Date(dataset.expires_at).toLocaleString()],
      ])),
      h("div", { class: "panel" }, h("h2", {}, "Train an autoencoder on it"), work)),
    part("What it can be used for", h("p", { class: "soft" }, "Measure a ", h("a", { href: "/models" }, "model"), " on it, give it to a ", h("a", { href: "/learners" }, "learner"), " as its next task, or let strategies ", h("a", { href: "/compare" }, "compete"), " on it.")));
  return 30_000;
});
