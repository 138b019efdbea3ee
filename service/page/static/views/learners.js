import { get, post } from "../api.js";
import { byId, empty, fill, h } from "../dom.js";
import { form, go } from "../forms.js";
import { start } from "../frame.js";
import { growing } from "../list.js";
import { ago, bytes, many } from "../words.js";

let isReady = false;

function draw(learners) {
  if (!learners.length) return empty("No learners yet", "Begin one here: from a model that you have, or from nothing.");
  return h("ol", { class: "rows" }, learners.map((learner) => h("li", { "data-key": learner.id },
    h("div", {}, h("a", { class: "open", href: `/learners/${learner.id}` }, h("bdi", {}, learner.name))),
    h("div", {}, h("p", {}, learner.tasks.length ? h("bdi", {}, learner.tasks.join(" → ")) : h("span", { class: "soft" }, "knows nothing yet")),
      h("p", { class: "small soft" }, `${learner.architecture_name} · ${learner.scenario} · ${many(learner.tasks.length, "task")}`,
        learner.memory ? ` · keeps ${bytes(Object.values(learner.memory).reduce((sum, each) => sum + each, 0))}` : "", learner.keeps_data ? " · keeps images" : "")),
    h("div", { class: "when" }, ago(learner.created_at)))));
}

async function begin() {
  const { items: models } = await get("/v1/models?limit=100");
  return form([
    { name: "name", label: "Name", value: "line 7" },
    { name: "model", label: "Begins with", type: "select", value: "", options: [["", "nothing: an architecture that knows nothing"], ...models.map(({ id, name }) => [id, name])] },
    { name: "architecture", label: "Architecture, if it begins with nothing", value: "blk_2_fil_32" },
    { name: "scenario", label: "Scenario", type: "select", value: "reconstruction", options: [["reconstruction", "reconstruction"], ["denoising", "denoising"]] },
  ], "Begin", async ({ model, architecture, ...rest }) => go((await post("/v1/learners", model ? { model, ...rest } : { architecture, ...rest })).id));
}

const show = growing("/v1/learners", draw);
start(async () => {
  await show();
  if (!isReady) fill(byId("begin"), await begin());
  isReady = true;
  return 5000;
});
