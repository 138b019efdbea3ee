import { get, post } from "../api.js";
import { byId, empty, fill, h } from "../dom.js";
import { SCENARIOS, classifies, form, go } from "../forms.js";
import { painted, start } from "../frame.js";
import { growing } from "../list.js";
import { ago, bytes, many } from "../words.js";

const BEGIN_WITH = { task_incremental: "tasknet", new_instance: "resnet18" };
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
  const asked = form([
    { name: "name", label: "Name", value: "line 7" },
    { name: "scenario", label: "Scenario", type: "select", value: "reconstruction", options: SCENARIOS },
    { name: "model", label: "Begins with", type: "select", value: "", options: [["", "nothing"], ...models.map(({ id, name }) => [id, name])] },
    { name: "architecture", label: "Architecture, if it begins with nothing", value: "blk_2_fil_32" },
  ], "Begin", async ({ model, architecture, ...rest }) => go((await post("/v1/learners", model ? { model, ...rest } : { architecture, ...rest })).id));
  asked.elements.scenario.addEventListener("change", () => suit(asked.elements));
  return asked;
}

/** A learner of classes begins with nothing here: the two models that it could begin with are named in the API. */
function suit({ scenario, model, architecture }) {
  if (classifies(scenario.value)) model.value = "";
  model.disabled = classifies(scenario.value);
  architecture.value = BEGIN_WITH[scenario.value] ?? "blk_2_fil_32";
}

const show = growing("/v1/learners", draw, () => ({}), 15);
start(async () => {
  await show();
  await painted();
  if (!isReady) fill(byId("begin"), await begin());
  isReady = true;
  return 5000;
});
