import { names } from "../api.js";
import { empty, h } from "../dom.js";
import { start } from "../frame.js";
import { growing } from "../list.js";
import { sheetCard } from "../sheet.js";

async function draw(sets) {
  if (!sets.length) return empty("No cards yet", "They are captured from a ", h("a", { href: "/models" }, "model"), ". The ", h("a", { href: "/" }, "overview"), " has a sample that makes some.");
  const named = await names(sets.map(({ model }) => model));
  return h("div", { class: "grid" }, sets.map((set) => sheetCard(set, named.get(set.model))));
}

const show = growing("/v1/flashcards", draw, () => ({}), 12);
start(async () => void (await show()), 6000);
