import { get, maybe, names } from "../api.js";
import { bars } from "../bars.js";
import { chart } from "../chart.js";
import { sameAs } from "../copy.js";
import { byId, fill, h, part } from "../dom.js";
import { idHere, start } from "../frame.js";
import { bar, jobRows, stateBadge, verbs } from "../jobrow.js";
import { linkTo } from "../links.js";
import { pictures } from "../pictures.js";
import { ENDED, ago, bytes, figure, jobWords, joined, lasting, many, short } from "../words.js";

const id = idHere();
let learnt = null;
/** Which end of each column is the good one. */
const REST = [["bwt", "BWT", 1], ["fwt", "FWT", 1], ["memory", "Kept", -1], ["seconds", "Training", -1]];
const OF_CLASSES = [["average", "Accuracy", 1], ["average_without_task_id", "Without task id", 1], ...REST];
const columnsOf = ({ metric }) => (metric === "accuracy" ? OF_CLASSES : [["average", "Average MAE", -1], ...REST]);

async function show() {
  const job = await get(`/v1/jobs/${id}`);
  if (job.kind !== "compare") return void location.replace(`/jobs/${id}`);
  const isOver = ENDED.has(job.state);
  const [named, children, learners] = await Promise.all([
    names(job.spec.datasets), isOver ? { items: [] } : get(`/v1/jobs?parent=${id}&limit=200`), get(`/v1/learners?compare=${id}&limit=200`),
  ]);
  if (job.result) learnt ??= (await maybe(`/v1/jobs/${id}/artifacts/table.json`))?.learners ?? [];
  document.title = `Comparison ${short(id)} · Flashcards`;
  const csv = job.artifacts.find(({ name }) => name === "table.csv");
  const open = children.items.filter(({ state }) => state === "running" || state === "failed");
  fill(byId("comparison"),
    h("div", { class: "title" }, h("h1", {}, "Comparison ", h("span", { class: "soft" }, short(id))), stateBadge(job),
      h("div", { class: "verbs" }, isOver ? h("a", { class: "button", href: `/v1/jobs/${id}/report.html` }, "Report") : null, csv ? h("a", { class: "button", href: `/v1/jobs/${id}/artifacts/table.csv`, download: "table.csv" }, "CSV") : null, verbs(job))),
    h("p", { class: "lead" }, h("bdi", {}, job.spec.datasets.map((each) => named.get(each) ?? short(each)).join(" → ")), " · ",
      joined(many(job.spec.strategies.length, "strategy", "strategies"), many(job.spec.seeds.length, "seed"), `asked ${ago(job.created_at)}`, job.result?.seconds != null && `${lasting(job.result.seconds)} of training`)),
    job.error ? h("div", { class: "note", "data-tone": "bad" }, h("strong", {}, job.error.title), h("p", {}, job.error.detail)) : null,
    isOver ? null : h("div", { class: "panel stack" }, bar(job), h("p", { class: "small soft" }, jobWords(job))),
    job.result ? table(job.result) : null,
    job.result ? part("Side by side", h("div", { class: "two" }, averages(job.result), drawing(job.result, "bwt", "BWT: below zero, it forgot"), curves(job.result))) : null,
    part("Matrices", pictures(job, (name) => name === "matrices.png")),
    part("Notes", job.result?.notes.length ? h("ul", { class: "stack" }, job.result.notes.map((note) => h("li", { class: "note" }, note))) : null),
    part("At work", open.length ? jobRows(open.slice(0, 8)) : null),
    part("Its learners", learners.items.length ? h("ul", { class: "line" }, learners.items.map((learner) => h("li", {}, linkTo(learner.id, learner.name)))) : null),
    part("The same from a script", sameAs(job.spec)));
  return isOver ? 15_000 : 3000;
}

const valueOf = (row, name) => (row[name] == null ? null : typeof row[name] === "number" ? row[name] : row[name].mean);

function bestOf(rows, name, sign) {
  const known = rows.map((row) => valueOf(row, name)).filter((value) => value != null);
  return known.length > 1 ? known.reduce((one, other) => (sign * other > sign * one ? other : one)) : null;
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** After each task, on it and on those before it: the mean of all seeds that came to the end. */
function curves({ table: rows, tasks, metric }) {
  const lines = rows.map(({ label }) => {
    const own = learnt.filter(({ strategy, failed }) => strategy === label && !failed);
    const after = (place) => own.flatMap(({ matrix }) => (matrix[place] ?? []).slice(0, place + 1));
    const points = tasks.map((_, place) => [place + 1, after(place)]).filter(([, values]) => values.length && values.every(Number.isFinite));
    return { name: label, points: points.map(([place, values]) => [place, mean(values)]) };
  });
  return chart(`${metric === "accuracy" ? "Accuracy" : "Error"} on the tasks so far, after each`, lines, { xName: "task" });
}

const averages = (result) => (result.metric !== "accuracy" ? drawing(result, "average", "Average error after the last task (smaller is better)")
  : h("div", { class: "stack" }, drawing(result, "average", "Accuracy after the last task (larger is better)"), drawing(result, "average_without_task_id", "Accuracy without task id")));

function table(result) {
  const [rows, COLUMNS] = [result.table, columnsOf(result)];
  const best = Object.fromEntries(COLUMNS.map(([name, , sign]) => [name, bestOf(rows, name, sign)]));
  return h("div", { class: "table", role: "region", "aria-label": "Table of strategies", tabindex: 0 }, h("table", {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Strategy"), COLUMNS.map(([, words]) => h("th", { scope: "col", class: "num" }, words)), h("th", { scope: "col" }, "Images kept"), h("th", { scope: "col", class: "num" }, "Seeds"))),
    h("tbody", {}, rows.map((row) => h("tr", {},
      h("th", { scope: "row" }, row.label),
      COLUMNS.map(([name]) => h("td", { class: "num" }, cell(row, name, best[name]))),
      h("td", {}, row.keeps_data ? "yes" : "none"),
      h("td", { class: "num" }, row.seeds.length, row.failed.length ? h("span", { class: "why", title: row.failed.map(({ seed, reason }) => `${seed}: ${reason}`).join("; ") }, ` (${row.failed.length} failed)`) : null))))));
}

const inWords = (name, value) => (name === "memory" ? bytes(value) : name === "seconds" ? lasting(value) : figure(value));

function cell(row, name, best) {
  const value = valueOf(row, name);
  if (value == null) return "–";
  const words = inWords(name, value);
  const deviation = row[name].deviation;
  return [best != null && words === inWords(name, best) ? h("b", { class: "best" }, words) : words, deviation != null ? h("span", { class: "soft" }, ` ± ${figure(Number(deviation.toPrecision(2)))}`) : null];
}

function drawing({ table: rows, metric }, name, title) {
  const best = bestOf(rows, name, name === "average" && metric !== "accuracy" ? -1 : 1);
  return bars(title, rows.map((row) => ({ name: row.label, mean: row[name]?.mean, deviation: row[name]?.deviation, best: row[name]?.mean === best })));
}

start(show);
