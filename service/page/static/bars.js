// Means with their deviations, side by side.

import { h } from "./dom.js";
import { figure } from "./words.js";

const [WIDTH, ROW, LEFT, RIGHT] = innerWidth < 760 ? [330, 34, 96, 70] : [560, 34, 150, 90];
const LONGEST = Math.floor((LEFT - 12) / 7);

/** rows: [{name, mean, deviation, best}]; a mean below zero grows to the left of the line. */
export function bars(title, rows) {
  const known = rows.filter(({ mean }) => mean != null);
  if (!known.length) return null;
  const ends = known.flatMap(({ mean, deviation }) => [mean - (deviation ?? 0), mean + (deviation ?? 0), 0]);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const x = (value) => LEFT + ((value - low) / (high - low || 1)) * (WIDTH - LEFT - RIGHT);
  const words = known.map(({ name, mean, deviation }) => `${name} ${figure(mean)}${deviation == null ? "" : ` ± ${figure(deviation)}`}`);
  return h("figure", { class: "chart" }, h("figcaption", {}, title),
    h("svg", { class: "bars", viewBox: `0 0 ${WIDTH} ${known.length * ROW + 6}`, role: "img", "aria-label": `${title}. ${words.join("; ")}` },
      ...known.flatMap((row, place) => bar(row, place * ROW, x)),
      h("line", { class: "rule", x1: x(0), x2: x(0), y1: 0, y2: known.length * ROW + 4 })));
}

function bar({ name, mean, deviation, best }, top, x) {
  const [start, end] = [Math.min(x(0), x(mean)), Math.max(x(0), x(mean))];
  const middle = top + ROW / 2;
  const label = name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name;
  return [
    h("text", { x: LEFT - 10, y: middle + 4, "text-anchor": "end", class: best ? "strong" : null }, label, h("title", {}, name)),
    h("rect", { class: best ? "best" : "other", x: start, y: top + 7, width: Math.max(1, end - start), height: ROW - 14, rx: 4 }),
    deviation ? h("line", { class: "whisker", x1: x(mean - deviation), x2: x(mean + deviation), y1: middle, y2: middle }) : null,
    h("text", { x: WIDTH - RIGHT + 12, y: middle + 4, class: best ? "strong" : null }, figure(mean)),
  ];
}
