"use strict";
// What the API answers goes into the page as text and attribute values only: names in it are written by strangers.

const POLL_MS = 2000;
const MOST_STREAMS = 3; // a browser opens six connections to a host, and the polls need some of them
const MOST_ITEMS = 200; // what the API gives on a page
const CARD_BYTES = 64 * 1024 ** 2; // what it gives of a set of cards in one answer
const KEPT_LINES = 200; // of events, and of the log
const ENDED = new Set(["succeeded", "failed", "cancelled"]);

const lists = { jobs: { limit: 50 }, flashcards: { limit: 24 }, models: { limit: 50 }, datasets: { limit: 50 } };
const found = { jobs: new Map(), flashcards: new Map(), models: new Map(), datasets: new Map() };
const feeds = new Map();
const busy = new Set(); // jobs that a button was pressed for
let opened = null; // the job whose details are shown: {id, job, metrics}

const $ = (id) => document.getElementById(id);

// Templates: `{path}` and `{path:words}` in texts and attributes are filled from an item

/** Finds the holes of a piece of the page, once. */
function withHoles(root) {
  root.holes = [];
  for (const node of [root, ...root.querySelectorAll("*")])
    for (const place of [...node.attributes, ...node.childNodes])
      if (place.nodeValue?.includes("{")) root.holes.push([place, place.nodeValue]);
  return root;
}

function show(root, item) {
  for (const [place, pattern] of root.holes) {
    const text = pattern.replace(/\{([\w.]+)(?::(\w+))?\}/g, (_, path, as) => {
      const value = path.split(".").reduce((part, name) => part?.[name], item);
      return as ? words[as](value) : (value ?? "");
    });
    if (place.nodeValue !== text) place.nodeValue = text;
  }
}

/** Makes the children match the items by id. What stays is updated where it is, so focus and scroll stay as well. */
function sync(parent, template, items, update = show) {
  const nodes = new Map(Array.from(parent.children, (node) => [node.dataset.id, node]));
  const ids = new Set(items.map((item) => item.id));
  for (const [id, node] of nodes) if (!ids.has(id)) node.remove();
  items.forEach((item, place) => {
    const node = nodes.get(item.id) ?? withHoles($(template).content.firstElementChild.cloneNode(true));
    node.dataset.id = item.id;
    update(node, item);
    if (parent.children[place] !== node) parent.insertBefore(node, parent.children[place] ?? null);
  });
}

/** The fields of a record as items, without those that say nothing. */
function entries(record) {
  return Object.entries(record ?? {}).map(([id, value]) => ({ id, value })).filter(({ value }) => value !== null);
}

// Words for values

const count = (value) => value.toLocaleString("en");
const figure = (value) => (Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(4))));
const many = (value, one, several = `${one}s`) => `${count(value)} ${value === 1 ? one : several}`;
const joined = (...parts) => parts.filter(Boolean).join(" · ");

const words = {
  count,
  url: encodeURIComponent,
  short: (id) => (id ? `…${id.slice(-8)}` : ""),
  plain: (name) => name.replaceAll("_", " "),
  date: (time) => new Date(time).toLocaleString(),
  clock: (time) => (time ? new Date(time).toLocaleTimeString() : "now"),
  ago(time) {
    const seconds = (Date.now() - new Date(time)) / 1000;
    if (seconds > 86_400) return new Date(time).toLocaleDateString();
    return seconds < 10 ? "just now" : `${roughly(seconds)} ago`;
  },
  bytes(size) {
    const power = Math.min(4, Math.floor(Math.log10(Math.max(size, 1)) / 3));
    const value = size / 1000 ** power;
    return `${value.toFixed(power && value < 10 ? 1 : 0)} ${["B", "KB", "MB", "GB", "TB"][power]}`;
  },
  told(value) {
    if (value === "") return "–";
    if (typeof value === "number") return figure(value);
    if (typeof value === "boolean") return value ? "yes" : "no";
    if (Array.isArray(value)) return value.map(words.told).join(", ");
    if (typeof value === "object") return joined(...entries(value).map((of) => `${of.id} ${words.told(of.value)}`));
    const known = found.models.get(value) ?? found.datasets.get(value) ?? found.flashcards.get(value);
    return known?.name ? `${value} (${known.name})` : String(value);
  },
};

function lasting(seconds) {
  if (seconds < 60) return `${Math.max(0, seconds).toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

const roughly = (seconds) => lasting(Math.round(seconds)).replace(".0", "").split(" ", 2).join(" ");

function progressWords({ epoch, step, steps, loss, rate, unit, eta_seconds: left }) {
  const done = `${count(step)}${steps ? ` / ${count(steps)}` : ""}`;
  return joined(
    epoch != null && `epoch ${count(epoch)}`,
    unit === "cards" || unit === "tasks" ? `${done} ${unit}` : `step ${done}`,
    loss != null && `loss ${figure(loss)}`,
    rate != null && `${figure(Math.round(rate))} ${unit ?? "images"}/s`,
    left != null && `${roughly(left)} left`,
  );
}

const soFar = (progress) => ({ ...progress, rate: null, eta_seconds: null });

function resultWords(result) {
  const { validation_mae: error, constant_mae: bar, epochs, recipe, mae, psnr, ssim } = result;
  const { recommended_r: best, compared, flsd, precision, recall, table } = result;
  if (best != null) return `recommends r ${best}`;
  if (table) {
    const measured = table.filter((row) => row.average).sort((one, other) => one.average.mean - other.average.mean);
    return joined(...measured.map(({ label, average }) => `${label} ${figure(average.mean)}`)) || "done";
  }
  if (compared) {
    const { child_mae: own, ratio, on } = compared.at(-1);
    return `MAE ${figure(own)} on ${on}, ${figure(ratio)} times its parent's`;
  }
  if (precision != null) return `FLSD ${figure(flsd)} · precision ${figure(precision)} · recall ${figure(recall)}`;
  if (recipe) return `${many(recipe.count, "card")} from ${recipe.source} · r ${recipe.r} · seed ${recipe.seed}`;
  if (psnr != null) return `MAE ${figure(mae)} · PSNR ${figure(psnr)} dB · SSIM ${figure(ssim)}`;
  if (error == null) return "done";
  return `validation MAE ${figure(error)} (best constant image ${figure(bar)}) · ${many(epochs, "epoch")}`;
}

function jobWords({ state, result, progress, queue_position: position }) {
  if (state === "succeeded") return resultWords(result ?? {});
  if (state === "queued") return position > 1 ? `${position - 1} ahead of it` : "waiting for a worker";
  if (state === "waiting" && !progress.step) return "waiting for its tasks";
  if (!progress.step) return ENDED.has(state) ? "stopped before the first step" : "starting";
  return ENDED.has(state) ? `stopped at ${progressWords(soFar(progress))}` : progressWords(progress);
}

function eventWords({ kind, data, attempt }) {
  if (kind === "progress") return joined(`${Math.round(data.fraction * 100)} %`, progressWords(soFar(data)));
  const number = data.state === "running" && `attempt ${attempt}`;
  if (kind === "state") return joined(data.state, number, data.error?.title, data.reason);
  return kind === "resume_point" ? `kept at step ${count(data.step)}` : (data.text ?? JSON.stringify(data));
}

// The lists: what a template needs beside the item's own fields

const views = {
  jobs(job) {
    const feed = feeds.get(job.id);
    if ((job.state === "running" || job.state === "waiting") && feed?.state === job.state) {
      const isNewer = feed.progress?.step >= job.progress.step;
      job = { ...job, progress: isNewer ? feed.progress : soFar(job.progress) }; // the pace is of an earlier attempt
    }
    const isStopping = job.cancel_requested && job.state === "running";
    const verb = { succeeded: "", failed: "retry", cancelled: "retry" }[job.state] ?? "cancel";
    const fraction = job.state === "succeeded" ? 1 : job.progress.fraction;
    const until = job.ended_at ? new Date(job.ended_at) : Date.now();
    const ran = job.started_at && lasting((until - new Date(job.started_at)) / 1000);
    return {
      ...job, fraction, verb, percent: Math.round(fraction * 100), told: jobWords(job),
      ran: ran && job.state !== "queued" ? `${job.ended_at ? "took" : "running"} ${ran}` : "",
      isBusy: isStopping || busy.has(job.id), stateWords: isStopping ? "cancelling" : job.state,
      verbWords: verb === "retry" ? "Retry" : isStopping ? "Cancelling…" : "Cancel",
    };
  },
  flashcards(set) {
    const cardBytes = set.recipe.input.split("x").reduce((product, side) => product * side, 4);
    const atOnce = Math.min(set.recipe.count, 100_000, Math.floor(CARD_BYTES / cardBytes));
    return {
      ...set, atOnce, title: set.name ?? `Cards ${words.short(set.id)}`,
      modelName: found.models.get(set.model)?.name ?? words.short(set.model),
      fileWords: atOnce < set.recipe.count ? `First ${count(atOnce)} as npz` : "Download npz",
    };
  },
  datasets(dataset) {
    const distinct = (tell) => [...new Set(Object.values(dataset.splits).map(tell))].join(", ");
    return {
      ...dataset, images: joined(...entries(dataset.splits).map(({ id, value }) => `${id} ${count(value.count)}`)),
      shape: distinct((split) => `${split.shape} ${split.dtype}`),
      labels: distinct((split) => (split.classes == null ? "none" : many(split.classes, "class", "classes"))),
    };
  },
};

function updateJob(node, job) {
  show(node, views.jobs(job));
  const labels = entries(job.labels).map(({ id, value }) => ({ id, value: value && `: ${value}` }));
  sync(node.querySelector(".labels"), "chip", labels);
}

function showList(name) {
  const [empty, items, more] = [".empty", ".items", ".more"].map((selector) => $(name).querySelector(selector));
  empty.hidden = found[name].size > 0;
  (items.closest(".table") ?? items).hidden = !empty.hidden;
  const update = name === "jobs" ? updateJob : (node, item) => show(node, views[name]?.(item) ?? item);
  sync(items, `${name}-item`, [...found[name].values()], update);
  const advice = [...empty.querySelectorAll("[data-command]")];
  const chosen = advice.find((each) => commands[each.dataset.command]());
  for (const each of advice) each.hidden = each !== chosen;
  show(empty, { line: commands[chosen.dataset.command]() });
  more.hidden = !lists[name].hasMore;
  if (lists[name].limit === MOST_ITEMS) more.textContent = `The newest ${MOST_ITEMS}. The rest: /v1/${name}?cursor=…`;
}

function showCounts() {
  const inState = (state) => [...found.jobs.values()].filter((job) => job.state === state).length;
  const atLeast = (number, name) => `${number}${lists[name].hasMore ? "+" : ""}`;
  const queued = atLeast(inState("queued"), "jobs");
  const states = [{ id: "running", value: inState("running") }, { id: "queued", value: queued }];
  const sizes = entries(found).map(({ id, value }) => ({ id, value: atLeast(value.size, id) }));
  sync($("counts"), "count", [...states, ...sizes]);
  document.title = inState("running") ? `Flashcards (${inState("running")} running)` : "Flashcards";
}

const HOME = location.origin;
const post = (body) => `curl "${HOME}/v1/jobs" -H "Content-Type: application/json" -d '${JSON.stringify(body)}'`;
const upload = (file, path) => `curl -X POST -T ${file} "${HOME}${path}"`;
const WAVES =
  `python3 -c "import numpy as n; a = n.random.default_rng(0).random((2, 600, 1, 1)); y, x = n.mgrid[:16, :16]; ` +
  `n.savez('waves.npz', x=(127 + 127 * n.sin(x * a[0] + y * a[1])).astype('uint8'))"`;

/** Lines that work when they are pasted, or nothing while they could not. */
const commands = {
  train() {
    for (const { id, splits: { train } } of found.datasets.values()) {
      const sides = train?.shape.split("x").slice(0, 2).map(Number) ?? [1];
      const halves = (side, times) => side % 2 ** times === 0 && (times === 1 || side >= 4 * 2 ** times);
      const blocks = [4, 3, 2, 1].find((times) => sides.every((side) => halves(side, times)));
      if (blocks && train.count > 1 && (train.dtype === "uint8" || (train.low >= 0 && train.high <= 1)))
        return post({ kind: "train", dataset: id, architecture: `blk_${blocks}_fil_32`, epochs: 10 });
    }
  },
  capture: () => found.models.size && post({ kind: "capture", model: found.models.keys().next().value, count: 256 }),
  waves: () => `${WAVES}\n${upload("waves.npz", "/v1/datasets?name=waves")}`,
  model: () => upload("model.safetensors", "/v1/models?name=mine&architecture=blk_4_fil_64&input=32x32x3"),
  dataset: () => upload("images.npz", "/v1/datasets?name=images"),
};

// A job's details

function open(id) {
  if (opened?.id === id) return;
  opened = { id, job: null, metrics: {} };
  $("details").scrollTop = 0;
  if (!$("details").open) $("details").showModal();
  showDetails();
  refresh();
}

async function loadDetails() {
  const mine = opened;
  const { ok, body } = await ask(`/v1/jobs/${mine.id}`);
  if (ok && !(ENDED.has(body.state) && mine.job?.state === body.state))
    mine.metrics = (await ask(`/v1/jobs/${mine.id}/metrics`)).body.metrics;
  if (opened !== mine) return;
  opened.job = body;
  if (ok) return showDetails();
  opened = null;
  $("details").close();
  complain(body.detail);
}

function showDetails() {
  const part = (name, isThere, selector) => {
    const section = $("details").querySelector(`[data-part=${name}]`);
    section.hidden = !isThere;
    return section.querySelector(selector);
  };
  const job = opened.job ?? found.jobs.get(opened.id);
  $("details").querySelector(".inside").hidden = !job;
  if (!job) return show($("details"), { id: opened.id, kind: "Job" });
  const { result, spec, artifacts = [], attempts = [] } = job;
  const feed = feeds.get(job.id) ?? new Feed(job.id);
  const log = part("log", feed.log.length, "pre");
  const isAtEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
  show($("details"), { ...views.jobs(job), log: feed.log.join("\n") });
  if (isAtEnd) log.scrollTop = log.scrollHeight;

  const isNumber = (value) => typeof value === "number";
  const isCurve = ({ value }) => Array.isArray(value) && value.length > 1 && value.every(isNumber);
  const curves = entries(opened.metrics);
  for (const { id, value } of entries(result).filter(isCurve))
    curves.push({ id, value: value.map((each, place) => ({ step: place + 1, value: each })) });
  sync(part("metrics", curves.length, ".charts"), "chart", curves, showChart);
  sync(part("result", result, "dl"), "pair", entries(result).filter((pair) => !isCurve(pair)));
  sync(part("spec", spec, "dl"), "pair", entries(spec).filter(({ id }) => id !== "kind" && id !== "labels"));
  const files = artifacts.map((file) => ({ ...file, id: file.digest + file.name, job: job.id }));
  const pictures = files.filter((file) => file.media_type === "image/png");
  sync(part("artifacts", files.length, ".pictures"), "picture", pictures);
  sync(part("artifacts", files.length, "tbody"), "artifact", files);
  const outcomeWords = ({ outcome, reason }) => joined(outcome ?? "running", reason);
  const tries = attempts.map((each) => ({ ...each, id: String(each.number), outcomeWords: outcomeWords(each) }));
  sync(part("attempts", tries.length, "tbody"), "attempt", tries);
  const events = feed.events.map((event) => ({ ...event, words: eventWords(event) }));
  sync(part("events", events.length, "ol"), "event", events.reverse());
}

function showChart(node, { id, value: points }) {
  const [first, last] = [points[0], points.at(-1)];
  const sorted = points.map(({ value }) => value).sort((one, other) => one - other);
  const [low, high] = [sorted[0], sorted.at(-1)];
  const x = (step) => (4 + (292 * (step - first.step)) / (last.step - first.step || 1)).toFixed(1);
  const y = (value) => (high === low ? 44 : 82 - (76 * (value - low)) / (high - low)).toFixed(1);
  show(node, { id, first, last, low, high });
  const path = node.querySelector("path");
  path.classList.toggle("dot", points.length === 1);
  path.setAttribute("d", `M${points.map(({ step, value }) => `${x(step)} ${y(value)}`).join("L")}h0.1`);
}

// Events as they happen

class Feed {
  seq = 0;
  events = [];
  log = [];
  isComplete = false;

  constructor(id) {
    this.id = id;
  }

  open() {
    if (this.source) return;
    this.source = new EventSource(`/v1/jobs/${this.id}/events?after=${this.seq}`);
    for (const kind of ["state", "progress", "log", "resume_point", "note"])
      this.source.addEventListener(kind, (message) => this.hear(JSON.parse(message.data)));
    // The service ends a stream once the job has ended and all is said; left alone, a browser would ask again for ever.
    this.source.addEventListener("error", () => {
      this.isComplete = ENDED.has(this.state);
      if (this.isComplete || this.source?.readyState === EventSource.CLOSED) this.close();
    });
  }

  close() {
    this.source?.close();
    this.source = null;
  }

  hear(event) {
    if (event.seq <= this.seq) return;
    this.seq = event.seq;
    if (event.kind === "log") {
      this.log = [...this.log.slice(1 - KEPT_LINES), event.data.line];
    } else {
      const isNextOfRow = event.kind === "progress" && this.events.at(-1)?.kind === "progress";
      const id = isNextOfRow ? this.events.pop().id : String(event.seq); // progress in a row is one line that moves
      this.events = [...this.events.slice(1 - KEPT_LINES), { ...event, id }];
    }
    if (event.kind === "progress") this.progress = event.data;
    if (event.kind === "state") {
      this.state = event.data.state;
      this.progress = null;
      refreshIn(100);
    }
    repaint();
  }
}

/** Streams for the job that is open and for the newest that run, for nothing else, and for none in a hidden tab. */
function tend() {
  const wanted = new Set(opened ? [opened.id] : []);
  for (const { id, state } of found.jobs.values())
    if ((state === "running" || state === "waiting") && wanted.size < MOST_STREAMS) wanted.add(id);
  if (document.hidden) wanted.clear();
  for (const [id, feed] of feeds) {
    if (!wanted.has(id)) feed.close();
    if (!wanted.has(id) && !found.jobs.has(id)) feeds.delete(id);
  }
  for (const id of wanted) {
    if (!feeds.has(id)) feeds.set(id, new Feed(id));
    const state = found.jobs.get(id)?.state ?? opened?.job?.state;
    if (!feeds.get(id).isComplete || !ENDED.has(state)) feeds.get(id).open();
  }
}

let isPainting = false;
function repaint() {
  if (isPainting) return;
  isPainting = true;
  requestAnimationFrame(() => {
    isPainting = false;
    for (const node of $("jobs").querySelector(".items").children) {
      const job = found.jobs.get(node.dataset.id);
      if (job && (busy.has(job.id) || feeds.get(job.id)?.source)) updateJob(node, job);
    }
    if (opened) showDetails();
  });
}

// Every two seconds

class KeyNeeded extends Error {}

async function ask(path) {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(15_000) });
  if (answer.status === 401) throw new KeyNeeded();
  // A seed may be larger than the numbers of JavaScript are exact: it stays as it is written.
  const exact = (key, value, context) => (key === "seed" ? (context?.source ?? value) : value);
  return { ok: answer.ok, body: JSON.parse(await answer.text(), exact) };
}

async function load(name) {
  const paths = [`/v1/${name}?limit=${lists[name].limit}`];
  // One that runs, or waits for its tasks, may be older than many that are queued.
  if (name === "jobs") paths.push("/v1/jobs?state=running", "/v1/jobs?state=waiting");
  const pages = (await Promise.all(paths.map(ask))).map((answer) => answer.body);
  lists[name].hasMore = pages[0].next_cursor !== null;
  const newestFirst = pages.flatMap((page) => page.items).sort((one, other) => (one.id < other.id ? 1 : -1));
  found[name] = new Map(newestFirst.map((item) => [item.id, item]));
}

async function showReadiness() {
  const { ready, checks } = (await ask("/readyz")).body;
  const missing = Object.keys(checks).filter((name) => !checks[name]);
  showState(ready ? "ready" : "unready", ready ? "ready" : `not ready: no ${missing.join(", no ")}`);
}

function showState(state, text) {
  $("ready").dataset.state = state;
  if ($("ready").textContent !== text) $("ready").textContent = text; // said aloud only when it changes
}

let timer = null;
let isAsking = false;
let pause = POLL_MS;
function refreshIn(milliseconds) {
  pause = Math.min(pause, milliseconds);
  clearTimeout(timer);
  timer = setTimeout(refresh, pause);
}

async function refresh() {
  clearTimeout(timer);
  if (document.hidden) return;
  if (isAsking) return void (pause = 0);
  [isAsking, pause] = [true, POLL_MS];
  try {
    await Promise.all([showReadiness(), ...Object.keys(lists).map(load)]);
    Object.keys(lists).forEach(showList);
    showCounts();
    if (opened) await loadDetails();
    tend();
  } catch (error) {
    const locked = error instanceof KeyNeeded;
    showState("away", locked ? "this service takes a key: use the command line or the API" : "not reachable, trying again");
    console.warn(error);
  }
  isAsking = false;
  refreshIn(pause);
}

// What a user does

async function act({ job, verb }) {
  if (busy.has(job)) return;
  busy.add(job);
  repaint();
  try {
    const answer = await fetch(`/v1/jobs/${job}/${verb}`, { method: "POST" });
    if (!answer.ok) complain((await answer.json()).detail);
  } catch {
    complain("The service did not answer. Look at the job before you try again.");
  }
  busy.delete(job);
  refresh();
}

function complain(text) {
  const toast = $("toast");
  (opened ? $("details") : document.body).append(toast); // under an open dialog nobody would see it
  toast.textContent = text;
  toast.hidden = false;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => (toast.hidden = true), 7000);
}

async function copy(button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = before), 1500);
  } catch {
    complain(`The browser does not let this page copy. Here it is: ${button.dataset.copy}`);
  }
}

function route() {
  const id = location.hash.slice(1);
  if (/^job_[0-9a-f]{32}$/.test(id)) open(id);
  else if ($("details").open) $("details").close();
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest("button");
  if (button?.dataset.verb && button.ariaDisabled !== "true") act(button.dataset);
  if (button?.dataset.copy) copy(button);
  if (button?.dataset.more) {
    lists[button.dataset.more].limit = Math.min(MOST_ITEMS, lists[button.dataset.more].limit * 2);
    refresh();
  }
  if (target === $("close") || target === $("details")) $("details").close(); // the second is the backdrop
});
$("details").addEventListener("close", () => {
  if (location.hash) history.pushState(null, "", location.pathname);
  opened = null;
  tend();
});
document.addEventListener("visibilitychange", () => (document.hidden ? tend() : refresh()));
addEventListener("hashchange", route);
for (const piece of [$("details"), ...document.querySelectorAll(".empty[hidden]")]) withHoles(piece);
refresh();
route();
