import { empty, h } from "../dom.js";
import { start } from "../frame.js";
import { growing } from "../list.js";
import { sheetCard } from "../sheet.js";

function draw(sets) {
  if (!sets.length) return empty("No cards yet", "They are captured from a ", h("a", { href: "/models" }, "model"), ". The ", h("a", { href: "/" }, "overview"), " has a sample that makes some.");
  return h("div", { class: "grid sheets" }, sets.map(sheetCard));
}

const show = growing("/v1/flashcards", draw, () => ({}), 12);
start(async () => void (await show()), 6000);
