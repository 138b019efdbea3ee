// Where a model came from and what came of it, from left to right.

import { h } from "./dom.js";
import { address, kindOf } from "./links.js";
import { short } from "./words.js";

const [BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y] = [176, 46, 56, 12];
const MOST = 6; // boxes above each other; of more, how many there are

/** nodes are ids; the lineage says what the newest of them are called. */
export function lineageGraph({ model, job, made_from: from, flashcards, used_by: users, names }, title) {
  const columns = [from, job ? [job] : [], [model], [...flashcards, ...users]].filter((ids) => ids.length);
  const shown = columns.map((ids) => (ids.length > MOST ? [...ids.slice(0, MOST - 1), `and ${ids.length - MOST + 1} more`] : ids));
  const tallest = Math.max(...shown.map((ids) => ids.length));
  const height = tallest * (BOX_HEIGHT + GAP_Y) - GAP_Y + 4;
  const places = shown.map((ids, column) => ids.map((id, row) => ({
    id, x: 2 + column * (BOX_WIDTH + GAP_X), y: 2 + (row + (tallest - ids.length) / 2) * (BOX_HEIGHT + GAP_Y),
  })));
  const width = shown.length * (BOX_WIDTH + GAP_X) - GAP_X + 4;
  const ways = places.slice(1).flatMap((column, place) => column.flatMap((end) => places[place].map((start) => way(start, end))));
  const node = h("div", { class: "graph", role: "region", "aria-label": "Lineage", tabindex: 0 },
    h("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": "What it was made from, and what was made of it" },
      ...ways, ...places.flat().map((place) => box(place, place.id === model, place.id === model ? title : names[place.id]))));
  const here = places.findIndex((column) => column.some(({ id }) => id === model));
  requestAnimationFrame(() => (node.scrollLeft = places[here][0].x + BOX_WIDTH / 2 - node.clientWidth / 2)); // where it is wider than the screen
  return node;
}

function way(start, end) {
  const [x1, y1, x2, y2] = [start.x + BOX_WIDTH, start.y + BOX_HEIGHT / 2, end.x, end.y + BOX_HEIGHT / 2];
  const middle = (x1 + x2) / 2;
  return h("path", { d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}` });
}

function box({ id, x, y }, isHere, called) {
  const [to, isJob] = [address(id), kindOf(id) === "job"];
  const name = (isJob ? null : called) ?? (to ? short(id) : id);
  const kind = (isJob ? called : null) ?? kindOf(id) ?? "";
  const drawn = [
    h("title", {}, `${kind} ${name}`),
    h("rect", { x, y, width: BOX_WIDTH, height: BOX_HEIGHT, rx: 9 }),
    h("text", { class: "kind", x: x + 12, y: y + 18 }, kind),
    h("text", { x: x + 12, y: y + 35 }, [...name].length > 22 ? `${[...name].slice(0, 21).join("")}…` : name),
  ];
  return to && !isHere
    ? h("svg:a", { href: to, "aria-label": `${kind} ${name}` }, ...drawn)
    : h("g", { class: isHere ? "here" : null }, ...drawn);
}
