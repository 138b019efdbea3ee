// A learner's next task: from a dataset that is there, or from one that is dropped.

import { get, post } from "./api.js";
import { h } from "./dom.js";
import { STRATEGIES, epochsField, form } from "./forms.js";
import { wake } from "./frame.js";
import { dropZone } from "./upload.js";

export async function taskForm(learner) {
  const { items } = await get("/v1/datasets?limit=100");
  const fitting = items.filter(({ splits }) => !learner.input || Object.values(splits).every(({ shape }) => shape === learner.input));
  const asked = form([
    { name: "dataset", label: "Dataset", type: "select", options: fitting.map(({ id, name }) => [id, name]), hint: learner.input ? `Those with images of ${learner.input}.` : null },
    { name: "strategy", label: "Strategy", type: "select", value: "flashcards", options: STRATEGIES },
    epochsField(),
  ], "Learn it", async ({ strategy, dataset, ...values }) => {
    if (!dataset) throw new Error("Drop a dataset below first.");
    await post(`/v1/learners/${learner.id}/tasks`, { dataset, ...values, strategy: { kind: strategy } });
    wake();
  });
  const select = asked.elements.dataset;
  const drop = dropZone({
    path: "/v1/datasets", packs: true, title: "Or drop a dataset", hint: "npz, zip of images, MNIST, CIFAR or SVHN files",
    fields: () => ({ input: learner.input }),
    onDone: ({ id, name }) => {
      select.prepend(h("option", { value: id }, name));
      select.value = id;
    },
  });
  return h("div", { class: "stack" }, asked, drop);
}
