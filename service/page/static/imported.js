// What the bundle says that brought a model or a learner here. Ids of another installation lead nowhere.

import { h } from "./dom.js";
import { facts } from "./links.js";
import { count } from "./words.js";

const those = (things, words) => (things.length
  ? h("span", {}, things.map((each, place) => [place ? ", " : "", h("bdi", {}, words(each)), " ", h("code", {}, each.id)])) : null);

export function story({ bundle, made_by: by, id: there, model, lineage: { jobs, datasets, models }, recipes }) {
  return h("div", { class: "panel" }, facts([
    ["was", h("code", {}, there)], ["came to be by", model?.origin], ["bundle", h("code", {}, bundle)], ["made by", by],
    ["jobs", those(jobs, (job) => job.kind)], ["data", those(datasets, (dataset) => dataset.name)],
    ["models", those(models, (each) => each.name)], ["flashcards", those(recipes, ({ recipe }) => `${count(recipe.count)} from ${recipe.source}`)],
  ]));
}
