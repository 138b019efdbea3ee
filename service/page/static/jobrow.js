// A job in a list, and its buttons.

import { post } from "./api.js";
import { button, h } from "./dom.js";
import { mayWrite, wake } from "./frame.js";
import { ENDED, ago, date, jobWords, joined, lasting, short, tone } from "./words.js";

export function stateBadge({ state, cancel_requested: isStopping }) {
  const words = isStopping && !ENDED.has(state) ? "cancelling" : state;
  return h("span", { class: "badge", "data-tone": tone(state) }, words);
}

export const place = (job) => (job.kind === "compare" ? `/compare/${job.id}` : `/jobs/${job.id}`);

export function verbs(job) {
  if (!mayWrite()) return null;
  const act = (verb) => async () => {
    await post(`/v1/jobs/${job.id}/${verb}`);
    wake();
  };
  const name = `${job.kind} ${short(job.id)}`;
  if (job.state === "failed" || job.state === "cancelled")
    return button("Retry", act("retry"), { "aria-label": `Retry ${name}`, "data-key": `retry-${job.id}` });
  if (ENDED.has(job.state)) return null;
  return button(job.cancel_requested ? "Cancelling…" : "Cancel", act("cancel"), {
    class: "danger", disabled: job.cancel_requested, "aria-label": `Cancel ${name}`, "data-key": `cancel-${job.id}`,
  });
}

export function bar(job) {
  if (job.state !== "running" && job.state !== "waiting") return null;
  return h("progress", { max: 1, value: job.progress.fraction, "aria-label": `Progress of ${job.kind} ${short(job.id)}` });
}

export function took({ started_at: from, ended_at: to, state }) {
  if (!from || state === "queued") return "";
  return `${to ? "took" : "for"} ${lasting((new Date(to ?? Date.now()) - new Date(from)) / 1000)}`;
}

export function jobRow(job) {
  const labels = Object.entries(job.labels ?? {}).map(([name, value]) => h("span", { class: "chip" }, h("bdi", {}, value ? `${name}: ${value}` : name)));
  if (job.parent) labels.push(h("span", { class: "chip" }, job.kind === "shard" ? "of a capture" : "of a comparison"));
  return h("li", { "data-key": job.id },
    h("div", {}, h("div", { class: "line" }, h("a", { class: "open", href: place(job) }, job.kind, h("span", { class: "unseen" }, ` ${short(job.id)}`)), stateBadge(job)),
      labels.length ? h("div", { class: "line" }, labels) : null),
    h("div", {}, bar(job), job.error
      ? h("p", { class: "small clamp" }, h("strong", { class: "why" }, `${job.error.title}. `), job.error.detail)
      : h("p", { class: "small soft" }, jobWords(job))),
    h("div", { class: "line when" },
      h("span", {}, h("time", { datetime: job.created_at, title: date(job.created_at) }, joined(ago(job.created_at), job.ended_at && took(job)))),
      ENDED.has(job.state) && job.state !== "failed" ? null : verbs(job)));
}

export const jobRows = (jobs) => h("ol", { class: "rows" }, jobs.map(jobRow));
