// The matrix of a learner: a row a version, a column a task, the darker the worse.

import { h } from "./dom.js";
import { figure } from "./words.js";

const IS_NARROW = innerWidth < 760; // a row then has the number of its version alone
const [CELL_WIDTH, CELL_HEIGHT, LEFT, TOP] = IS_NARROW ? [90, 44, 36, 40] : [104, 44, 150, 40];
const LONGEST = IS_NARROW ? 12 : 15;
const STRONGEST = 0.62; // of the ink under a number, so that the number can still be read

export function heatmap({ tasks, versions, matrix, estimated, metric }) {
  const values = matrix.flat().filter((value) => value != null);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const isError = (metric ?? "mae") === "mae";
  const bad = (value) => (isError ? value - low : high - value) / (high - low);
  const depth = (value) => (high > low ? 0.08 + bad(value) * (STRONGEST - 0.08) : 0.2);
  const [width, height] = [LEFT + tasks.length * CELL_WIDTH + 4, TOP + versions.length * CELL_HEIGHT + 4];
  const cells = matrix.flatMap((row, i) => tasks.map((_, j) => cell(row[j], estimated?.[i]?.[j], i, j, depth)));
  const words = `${isError ? "Error (mae)" : "Accuracy"} on each task after each version`;
  return h("div", { class: "graph heat", role: "region", "aria-label": words, tabindex: 0 },
    h("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${words}. ${sentences(tasks, versions, matrix)}` },
      ...tasks.map((task, j) => h("text", { x: LEFT + (j + 0.5) * CELL_WIDTH, y: TOP - 14, "text-anchor": "middle" }, cut(task), h("title", {}, task))),
      ...versions.map((number, i) => h("text", { x: LEFT - 12, y: TOP + (i + 0.5) * CELL_HEIGHT + 4, "text-anchor": "end" },
        IS_NARROW ? `v${number}` : `v${number} ${cut(tasks[i] ?? "")}`, h("title", {}, tasks[i] ?? ""))),
      ...cells));
}

function cell(value, guess, i, j, depth) {
  const [x, y] = [LEFT + j * CELL_WIDTH, TOP + i * CELL_HEIGHT];
  const box = { x: x + 1, y: y + 1, width: CELL_WIDTH - 2, height: CELL_HEIGHT - 2, rx: 6 };
  const words = value != null ? figure(value) : guess != null ? `≈ ${figure(guess)}` : "";
  if (j > i && value == null && guess == null) return null;
  return h("g", {},
    h("rect", value == null ? { ...box, class: "none" } : { ...box, class: "cell", "fill-opacity": depth(value).toFixed(3) }),
    h("text", { class: "strong", x: x + CELL_WIDTH / 2, y: y + CELL_HEIGHT / 2 + 4, "text-anchor": "middle" }, words));
}

const sentences = (tasks, versions, matrix) =>
  matrix.map((row, i) => `Version ${versions[i]}: ${tasks.map((task, j) => (row[j] == null ? null : `${task} ${figure(row[j])}`)).filter(Boolean).join(", ")}`).join(". ");

const cut = (name) => (name.length > LONGEST ? `${[...name].slice(0, LONGEST - 1).join("")}…` : name);
