// A learner's next task: from a dataset that is there, or from one that is dropped.

import { get, post } from "./api.js";
import { h } from "./dom.js";
import { classifies, epochsField, form, strategiesFor } from "./forms.js";
import { wake } from "./frame.js";
import { dropZone } from "./upload.js";

export async function taskForm(learner) {
  const { items } = await get("/v1/datasets?limit=100");
  const isOfClasses = classifies(learner.scenario);
  const fits = ({ shape, classes }) => (!learner.input || shape === learner.input) && (!isOfClasses || classes != null);
  const fitting = items.filter(({ splits }) => Object.values(splits).every(fits));
  const wanted = [learner.input && `images of ${learner.input}`, isOfClasses && "labels"].filter(Boolean).join(" and ");
  const asked = form([
    { name: "dataset", label: "Dataset", type: "select", options: fitting.map(({ id, name }) => [id, name]), hint: wanted ? `Those with ${wanted}.` : null },
    { name: "strategy", label: "Strategy", type: "select", value: "flashcards", options: strategiesFor(learner.scenario) },
    epochsField(),
  ], "Learn it", async ({ strategy, dataset, ...values }) => {
    if (!dataset) throw new Error("Drop a dataset below first.");
    await post(`/v1/learners/${learner.id}/tasks`, { dataset, ...values, strategy: { kind: strategy } });
    wake();
  });
  const select = asked.elements.dataset;
  const drop = dropZone({
    path: "/v1/datasets", packs: true, title: "Or drop a dataset", hint: "npz, zip of images, MNIST, CIFAR or SVHN files",
    fields: ({ name }) => ({ input: learner.input, name: name.replace(/\.[a-z.]{2,7}$/i, "").slice(0, 200) || name }),
    onDone: ({ id, name }) => {
      select.prepend(h("option", { value: id }, name));
      select.value = id;
    },
  });
  return h("div", { class: "stack" }, asked, drop);
}
