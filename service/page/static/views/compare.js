import { get } from "../api.js";
import { byId, empty, fill } from "../dom.js";
import { STRATEGIES, epochsField, fitting, form, networkField } from "../forms.js";
import { post } from "../api.js";
import { shapeOf } from "../datasets.js";
import { start } from "../frame.js";
import { jobRows } from "../jobrow.js";
import { growing } from "../list.js";

let isReady = false;

async function begin() {
  const { items: datasets } = await get("/v1/datasets?limit=100");
  if (datasets.length < 2) return empty("It takes two datasets", "Each is a task, learnt one after the other.");
  return form([
    { name: "datasets", label: "Tasks, from the first", type: "checks", options: datasets.map(({ id, name }) => [id, name, false]).reverse(), hint: "Two or more, with images of one shape." },
    { name: "strategies", label: "Strategies", type: "checks", options: STRATEGIES.map(([kind, words]) => [kind, words, ["flashcards", "naive", "joint"].includes(kind)]) },
    { name: "seeds", label: "Seeds", type: "number", value: 3, min: 1, max: 100, hint: "How many: they give the deviations." },
    networkField(fitting(shapeOf(datasets[0]))), epochsField(10),
  ], "Compare", async ({ strategies, seeds, ...values }) => {
    const spec = { kind: "compare", ...values, strategies: strategies.map((kind) => ({ kind })), seeds: [...Array(seeds).keys()] };
    location.href = `/compare/${(await post("/v1/jobs", spec)).id}`;
  });
}

const show = growing("/v1/jobs", (jobs) => (jobs.length ? jobRows(jobs) : empty("Nothing was compared yet", "Choose tasks and strategies here.")), () => ({ kind: "compare" }), 20);
start(async () => {
  await show();
  if (!isReady) fill(byId("begin"), await begin());
  isReady = true;
  return 5000;
});
