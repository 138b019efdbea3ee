import { get } from "../api.js";
import { byId, empty, fill, h } from "../dom.js";
import { standing, start } from "../frame.js";
import { jobRows } from "../jobrow.js";
import { figures } from "../links.js";
import { sheetCard } from "../sheet.js";
import { firstSteps } from "../steps.js";
import { bytes, many, roughly } from "../words.js";

const MOST_WAITING = 8;
const PLACES = 3; // whose place in the queue is asked for
const MANY_FILES = 1000; // counting them takes longer the more there are
const kept = { storage: null, askedAt: 0 };

async function show() {
  const [running, waiting, queued, failed, cards] = await Promise.all([
    get("/v1/jobs?state=running&limit=20"),
    get("/v1/jobs?state=waiting&limit=20"),
    get(`/v1/jobs?state=queued&order=oldest&limit=20`),
    get("/v1/jobs?state=failed&limit=4"),
    get("/v1/flashcards?limit=4"),
  ]);
  const own = queued.items.filter(({ parent }) => !parent); // the comparison itself stands for its tasks
  const next = await Promise.all(own.slice(0, MOST_WAITING).map((job, place) => (place < PLACES ? get(`/v1/jobs/${job.id}`) : job)));
  const now = [...running.items, ...waiting.items, ...next];
  drawFigures(running, queued);
  fill(byId("now"), now.length ? jobRows(now) : empty("Nothing runs", "The workers wait for a job: train on a ", h("a", { href: "/datasets" }, "dataset"), ", or capture cards from a ", h("a", { href: "/models" }, "model"), "."));
  byId("failed-part").hidden = !failed.items.length;
  fill(byId("failed"), failed.items.length ? jobRows(failed.items) : null);
  byId("newest-part").hidden = !cards.items.length;
  fill(byId("newest"), ...cards.items.map((set) => sheetCard(set)));
  fill(byId("steps"), await firstSteps());
  document.title = `${running.items.length ? `(${running.items.length}) ` : ""}Overview · Flashcards`;
  if (Date.now() - kept.askedAt > (kept.storage?.files > MANY_FILES ? 60_000 : 5_000)) {
    kept.askedAt = Date.now();
    get("/v1/storage?limit=1").then((storage) => ((kept.storage = storage), drawFigures(running, queued)), () => null);
  }
  return now.length ? 2000 : 4000;
}

function drawFigures(running, queued) {
  const left = running.items.map((job) => job.progress.eta_seconds).filter((each) => each != null);
  const isFull = standing.workers != null && running.items.length >= standing.workers;
  fill(byId("figures"), ...figures([
    ["Running", `${running.items.length}${running.next_cursor ? "+" : ""}`, left.length ? `done in ${roughly(Math.max(...left))}` : null],
    ["In the queue", `${queued.items.length}${queued.next_cursor ? "+" : ""}`, queued.items.length && isFull && left.length ? `next in ${roughly(Math.min(...left))}` : null],
    ["Workers alive", standing.workers ?? "…"],
    ["Kept", kept.storage ? bytes(kept.storage.bytes) : "…", kept.storage ? `in ${many(kept.storage.files, "file")}` : null],
  ]).childNodes);
}

start(show);
