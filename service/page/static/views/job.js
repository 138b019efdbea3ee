import { get, idsIn, maybe, names, remove } from "../api.js";
import { metricCharts } from "../chart.js";
import { sameAs } from "../copy.js";
import { button, byId, fill, h, part } from "../dom.js";
import { idHere, mayWrite, start, wake } from "../frame.js";
import { bar, jobRows, stateBadge, took, verbs } from "../jobrow.js";
import { facts, linkTo } from "../links.js";
import { follow } from "../live.js";
import { pictures } from "../pictures.js";
import { more, resultPart } from "../results.js";
import { ENDED, ago, bytes, clock, date, eventWords, figure, jobWords, joined, plain, roughly, short } from "../words.js";

const KEPT = 300; // lines of the log and of the events that are shown
const TEACHING = new Set(["train", "distill", "learn"]);
const id = idHere();
const seen = { job: null, metrics: {}, events: [], shards: [], last: 0, named: new Map(), isLive: false, readAt: 0 };
let close = null;

async function show() {
  const before = seen.job?.state;
  seen.job = await get(`/v1/jobs/${id}`);
  if (seen.job.kind === "compare") return void location.replace(`/compare/${id}`);
  if (before !== seen.job.state) seen.named = await names(idsIn([seen.job.spec, seen.job.result]));
  await readMetrics(before !== seen.job.state);
  if (seen.job.kind === "capture" && (seen.job.state === "waiting" || before !== seen.job.state)) seen.shards = (await get(`/v1/jobs?parent=${id}&order=oldest&limit=100`)).items;
  if (!close) listen();
  draw();
  return ENDED.has(seen.job.state) ? 10_000 : 4000;
}

async function readMetrics(now = false) {
  if (!now && Date.now() - seen.readAt < 1500) return;
  seen.readAt = Date.now();
  seen.metrics = (await maybe(`/v1/jobs/${id}/metrics`))?.metrics ?? {};
}

/** Also of a job that has ended: its events are read by the same line, which then ends. */
function listen() {
  const stop = follow(id, seen.last, { onEvent: heard, onLine: (isOpen) => (seen.isLive = isOpen) });
  close = () => (stop(), (close = null));
}

function heard(event) {
  seen.last = event.seq;
  seen.events.push(event);
  if (event.kind === "progress") seen.job.progress = { ...seen.job.progress, ...event.data };
  if (event.kind === "state" && event.data.state !== seen.job.state) wake();
  if (event.kind === "state" && ENDED.has(event.data.state)) close = null;
  requestDraw();
}

let isDrawing = false;
function requestDraw() {
  if (isDrawing) return;
  isDrawing = true;
  setTimeout(async () => {
    isDrawing = false;
    if (!ENDED.has(seen.job.state)) await readMetrics().catch(() => null);
    draw();
  }, 250);
}

function draw() {
  const { job, named } = seen;
  document.title = `${ENDED.has(job.state) ? "" : `${Math.round(job.progress.fraction * 100)} % `}${job.kind} ${short(id)} · Flashcards`;
  const files = job.artifacts.filter((file) => file.media_type !== "image/png");
  const logs = seen.events.filter(({ kind }) => kind === "log");
  const log = byId("log");
  const isAtEnd = !log || log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
  fill(byId("job"), head(job), standing(job),
    part("Result", resultPart(job, named)),
    part("Shards", seen.shards.length ? jobRows(seen.shards) : null),
    part("Pictures", pictures(job)),
    part("Curves", Object.keys(seen.metrics).length ? h("div", { class: "two" }, metricCharts(seen.metrics)) : null),
    part("Files", files.length ? fileTable(files) : null),
    part("What was asked for", more("Every field of it", false, facts(Object.entries(job.spec).filter(([name]) => name !== "kind" && name !== "labels"), named))),
    job.kind === "shard" ? null : part("The same from a script", sameAs(job.spec)),
    part("Attempts", job.attempts.length ? attemptTable(job.attempts) : null),
    part("Events", seen.events.length ? eventList() : null),
    part("Log", logs.length ? h("pre", { class: "log", id: "log", tabindex: 0, role: "region", "aria-label": "Log" }, logs.slice(-KEPT).map(({ data }) => data.line ?? data.text).join("\n")) : null,
      logs.length ? h("a", { class: "small", href: `/v1/jobs/${id}/logs` }, "The whole log") : null));
  if (isAtEnd && byId("log")) byId("log").scrollTop = byId("log").scrollHeight;
}

function head(job) {
  const labels = Object.entries(job.labels).map(([name, value]) => h("span", { class: "chip" }, h("bdi", {}, `${name}: ${value}`)));
  const isEnded = ENDED.has(job.state);
  return h("div", { "data-key": "head" },
    h("div", { class: "title" }, h("h1", {}, `${job.kind[0].toUpperCase()}${plain(job.kind.slice(1))} `, h("span", { class: "soft" }, short(id))), stateBadge(job), ...labels,
      h("div", { class: "verbs" }, isEnded ? h("a", { class: "button", href: `/v1/jobs/${id}/report.html` }, "Report") : null, verbs(job), isEnded && mayWrite() && !job.parent ? button("Delete", gone, { class: "danger" }) : null)),
    h("p", { class: "lead" }, h("time", { datetime: job.created_at, title: date(job.created_at) }, joined(`asked ${ago(job.created_at)}`, took(job))),
      job.parent ? [" · part of ", linkTo(job.parent)] : null, " · ", h("code", {}, id)));
}

async function gone() {
  if (!confirm("Delete this job, its events and files? Models and flashcards that it made stay.")) return;
  await remove(`/v1/jobs/${id}`);
  location.href = "/jobs";
}

function standing(job) {
  if (job.error)
    return h("div", { class: "note", "data-tone": "bad", "data-key": "error" }, h("strong", {}, job.error.title), h("p", {}, job.error.detail),
      h("p", { class: "small soft" }, job.error.type));
  if (ENDED.has(job.state)) return h("p", { class: "note", "data-tone": job.state === "succeeded" ? "good" : "warn", "data-key": "end" }, jobWords(job));
  const { progress } = job;
  return h("div", { class: "panel stack", "data-key": "progress", id: "progress" }, bar(job),
    h("dl", { class: "figures" }, [
      ["Done", `${Math.floor(progress.fraction * 100)} %`],
      ["Rate", progress.rate != null ? `${figure(Math.round(progress.rate))} ${progress.unit ?? "images"}/s` : "–"],
      ["Left", progress.eta_seconds != null ? roughly(progress.eta_seconds) : "–"],
      ...(TEACHING.has(job.kind) ? [["Loss", progress.loss != null ? figure(progress.loss) : "–"]] : []),
    ].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    h("p", { class: "small soft" }, jobWords(job), " · ", seen.isLive ? "live" : "not live: connecting again"));
}

const fileTable = (files) => h("div", { class: "table folds" }, h("table", {},
  h("thead", {}, h("tr", {}, ["File", "Type", "Size"].map((name) => h("th", { scope: "col" }, name)))),
  h("tbody", {}, files.map((file) => h("tr", {},
    h("td", { "data-name": "File" }, h("a", { href: `/v1/jobs/${id}/artifacts/${encodeURIComponent(file.name)}`, download: file.name }, file.name)),
    h("td", { "data-name": "Type" }, file.media_type), h("td", { "data-name": "Size" }, bytes(file.size)))))));

const attemptTable = (attempts) => h("div", { class: "table folds" }, h("table", {},
  h("thead", {}, h("tr", {}, ["Attempt", "Worker", "From", "To", "Outcome"].map((name) => h("th", { scope: "col" }, name)))),
  h("tbody", {}, attempts.map((each) => h("tr", {},
    h("td", { "data-name": "Attempt" }, each.number), h("td", { "data-name": "Worker" }, short(each.worker)),
    h("td", { "data-name": "From" }, clock(each.started_at)), h("td", { "data-name": "To" }, each.ended_at ? clock(each.ended_at) : "now"),
    h("td", { "data-name": "Outcome" }, joined(each.outcome ?? "running", each.reason)))))));

const eventList = () => h("ol", { class: "events", tabindex: 0, "aria-label": "Events, newest first" },
  seen.events.filter(({ kind }) => kind !== "log").slice(-KEPT).reverse().map((event) => h("li", { "data-key": event.seq, "data-seq": event.seq },
    h("span", {}, clock(event.at)), h("span", {}, plain(event.kind)), h("span", {}, eventWords(event)))));

start(show);
