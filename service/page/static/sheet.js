// A set of flashcards in a gallery: the cards first, words below.

import { h } from "./dom.js";
import { ago, many, short } from "./words.js";

export const titleOf = (set) => set.name ?? `${many(set.recipe.count, "card")} from ${set.recipe.source} ${short(set.id)}`;

export function sheetCard(set) {
  const { recipe } = set;
  return h("article", { class: "card sheet-card", "data-key": set.id },
    h("div", { class: "sheet" }, h("img", { class: "pixels", src: `/v1/flashcards/${set.id}/sheet.png`, loading: "lazy", decoding: "async", alt: `Contact sheet of ${titleOf(set)}` })),
    h("div", { class: "below" },
      h("a", { class: "open", href: `/flashcards/${set.id}` }, h("bdi", {}, titleOf(set))),
      h("p", { class: "small soft" }, `${many(recipe.count, "card")} · ${recipe.source} · r ${recipe.r} · ${recipe.input}`),
      h("p", { class: "small soft" }, ago(set.created_at))));
}
