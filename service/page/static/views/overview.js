import { get } from "../api.js";
import { byId, empty, fill, h } from "../dom.js";
import { standing, start } from "../frame.js";
import { jobRows } from "../jobrow.js";
import { figures } from "../links.js";
import { sheetCard } from "../sheet.js";
import { firstSteps } from "../steps.js";
import { bytes, many, roughly } from "../words.js";

const MOST_WAITING = 8;

async function show() {
  const [running, waiting, queued, failed, cards, storage] = await Promise.all([
    get("/v1/jobs?state=running&limit=20"),
    get("/v1/jobs?state=waiting&limit=20"),
    get("/v1/jobs?state=queued&limit=200"),
    get("/v1/jobs?state=failed&limit=4"),
    get("/v1/flashcards?limit=4"),
    get("/v1/storage?limit=1"),
  ]);
  const next = await Promise.all(queued.items.slice(-MOST_WAITING).reverse().map((job) => get(`/v1/jobs/${job.id}`)));
  const now = [...running.items, ...waiting.items, ...next];
  const left = Math.max(...running.items.map((job) => job.progress.eta_seconds ?? 0), 0);
  fill(byId("figures"), ...figures([
    ["Running", `${running.items.length}${running.next_cursor ? "+" : ""}`, left ? `done in ${roughly(left)}` : null],
    ["In the queue", `${queued.items.length}${queued.next_cursor ? "+" : ""}`],
    ["Workers alive", standing.workers ?? "…"],
    ["Kept", bytes(storage.bytes), `in ${many(storage.files, "file")}`],
  ]).childNodes);
  fill(byId("now"), now.length ? jobRows(now) : empty("Nothing runs", "The workers wait for a job: train on a ", h("a", { href: "/datasets" }, "dataset"), ", or capture cards from a ", h("a", { href: "/models" }, "model"), "."));
  byId("failed-part").hidden = !failed.items.length;
  fill(byId("failed"), failed.items.length ? jobRows(failed.items) : null);
  byId("newest-part").hidden = !cards.items.length;
  fill(byId("newest"), ...cards.items.map((set) => sheetCard(set)));
  fill(byId("steps"), await firstSteps());
  document.title = `${running.items.length ? `(${running.items.length}) ` : ""}Overview · Flashcards`;
  return now.length ? 2000 : 4000;
}

start(show);
