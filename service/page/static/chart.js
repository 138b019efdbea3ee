// Curves as SVG, drawn from numbers. Each has its figures in words for those who do not see it.

import { h } from "./dom.js";
import { count, figure, plain } from "./words.js";

// A narrow screen gets a narrow drawing, and not a small one: its words stay as large.
const WIDTH = innerWidth < 760 ? 330 : 560;
const [HEIGHT, LEFT, BOTTOM, TOP] = [220, 54, 26, 8];
const MOST_POINTS = 400;

/** lines: [{name, points: [[x, y], ...]}]; marks: [{y, name}] are levels, {x, name} are places. */
export function chart(title, lines, { marks = [], log = false, xName = "step", value } = {}) {
  lines = lines.map((line) => ({ ...line, points: thin(line.points.filter(([, y]) => Number.isFinite(y) && !(log && y <= 0))) }));
  lines = lines.filter(({ points }) => points.length);
  if (!lines.length) return null;
  const scale = scales(lines, marks, log);
  const words = lines.map(({ name, points }) => `${name}: from ${figure(points[0][1])} to ${figure(points.at(-1)[1])}`).join("; ");
  return h("figure", { class: "chart", "data-key": `chart-${title}` },
    h("figcaption", {}, title, h("span", {}, value ?? (lines.length === 1 ? figure(lines[0].points.at(-1)[1]) : ""))),
    h("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}. ${words}` },
      ...rules(scale, xName), ...marks.map((mark) => drawnMark(mark, scale)), ...lines.map((line, place) => curve(line, place, scale))),
    lines.length > 1 && h("p", { class: "legend" }, lines.map(({ name }, place) => h("span", { class: `s${place % 8}` }, name))));
}

function thin(points) {
  if (points.length <= MOST_POINTS) return points;
  const step = (points.length - 1) / (MOST_POINTS - 1);
  return Array.from({ length: MOST_POINTS }, (_, place) => points[Math.round(place * step)]);
}

function scales(lines, marks, log) {
  const all = lines.flatMap(({ points }) => points);
  const levels = [...all.map(([, y]) => y), ...marks.filter((mark) => mark.y > 0 || (mark.y != null && !log)).map(({ y }) => y)];
  const at = log ? Math.log10 : (value) => value;
  let [low, high] = [Math.min(...levels.map(at)), Math.max(...levels.map(at))];
  if (low === high) [low, high] = log ? [low - 1, high + 1] : [low - Math.abs(low || 1) / 2, high + Math.abs(high || 1) / 2];
  const [first, last] = [Math.min(...all.map(([x]) => x)), Math.max(...all.map(([x]) => x))];
  return {
    low, high, first, last, log,
    x: (value) => LEFT + ((value - first) / (last - first || 1)) * (WIDTH - LEFT - 10),
    y: (value) => TOP + (1 - (at(value) - low) / (high - low)) * (HEIGHT - TOP - BOTTOM),
  };
}

function rules(scale, xName) {
  const { low, high, first, last, log } = scale;
  const drawn = [0, 1 / 3, 2 / 3, 1].map((share) => {
    const level = low + share * (high - low);
    const [value, y] = [log ? 10 ** level : level, TOP + (1 - share) * (HEIGHT - TOP - BOTTOM)];
    return [
      h("line", { class: "rule", x1: LEFT, x2: WIDTH - 10, y1: y, y2: y }),
      h("text", { x: LEFT - 8, y: y + 4, "text-anchor": "end" }, Number(value.toPrecision(2)).toString()),
    ];
  });
  return [
    ...drawn.flat(),
    h("text", { x: LEFT, y: HEIGHT - 6 }, count(first)),
    h("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, xName),
    h("text", { x: WIDTH - 10, y: HEIGHT - 6, "text-anchor": "end" }, count(last)),
  ];
}

function drawnMark({ x, y, name }, scale) {
  if (y != null) {
    const level = scale.y(y);
    if (!Number.isFinite(level)) return null;
    return [
      h("line", { class: "mark", x1: LEFT, x2: WIDTH - 10, y1: level, y2: level }),
      h("text", { x: WIDTH - 12, y: level - 5, "text-anchor": "end" }, name),
    ];
  }
  const place = scale.x(x);
  const atEnd = place > WIDTH * 0.7;
  return [
    h("line", { class: "mark", x1: place, x2: place, y1: TOP, y2: HEIGHT - BOTTOM }),
    h("text", { x: place + (atEnd ? -5 : 5), y: TOP + 12, "text-anchor": atEnd ? "end" : "start" }, name),
  ];
}

function curve({ points }, place, { x, y }) {
  const [lastX, lastY] = points.at(-1);
  const way = points.map(([px, py], index) => `${index ? "L" : "M"}${x(px).toFixed(1)} ${y(py).toFixed(1)}`).join("");
  const dots = points.length <= 12 ? points : [[lastX, lastY]];
  return [
    h("path", { class: `curve s${place % 8}`, d: way }),
    ...dots.map(([px, py]) => h("circle", { class: `s${place % 8}`, cx: x(px).toFixed(1), cy: y(py).toFixed(1), r: 3.5 })),
  ];
}

/** The metrics of a job: those that belong together in one drawing. */
export function metricCharts(metrics) {
  const groups = new Map();
  for (const [name, points] of Object.entries(metrics)) {
    const sort = name.replace(/^(train|validation|test|held_out)_/, "");
    groups.set(sort, [...(groups.get(sort) ?? []), { name: plain(name), points: points.map(({ step, value }) => [step, value]) }]);
  }
  return [...groups].map(([sort, lines]) => chart(plain(lines.length > 1 ? sort : lines[0].name), lines));
}
