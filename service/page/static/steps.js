// The first steps: a sample on real digits that anybody can run with a click, told by the label of its jobs.

import { get, post, query } from "./api.js";
import { button, h } from "./dom.js";
import { mayWrite, wake } from "./frame.js";
import { jobWords } from "./words.js";

const LABEL = { sample: "digits" };
const NETWORK = { architecture: "blk_2_fil_16", epochs: 20, learning_rate: 3e-3, batch_size: 32 };
const FIRST = 20; // whoever has asked for more jobs than that has taken their first steps
const UNFINISHED = new Set(["waiting", "queued", "running"]);

/** Null once somebody has gone their own way. */
export async function firstSteps() {
  const { items, next_cursor: more } = await get(`/v1/jobs?limit=${FIRST}`);
  if (more) return null;
  const mine = items.filter(({ labels }) => labels.sample === LABEL.sample);
  const find = (kind) => mine.find((job) => job.kind === kind);
  const [train, capture, analyze] = ["train", "capture", "analyze"].map(find);
  if (!mine.length && items.length) return null;
  if (analyze && !UNFINISHED.has(analyze.state) && Date.now() - new Date(analyze.created_at) > 3_600_000) return null;
  if (train?.state === "succeeded" && !capture && mayWrite()) await goOn(train);
  const learnt = train?.state === "succeeded";
  return h("section", { class: "part panel", "aria-labelledby": "steps-title" },
    h("h2", { id: "steps-title" }, "First steps"),
    h("ol", { class: "steps" },
      step("Real digits come in", "1,797 handwritten digits that ship with this service become a dataset.", mine.length > 0, !mine.length),
      step("A network learns them", train && !learnt ? said(train) : "An autoencoder of 14,000 weights, trained in about a minute.", learnt, train && !learnt),
      step("Its knowledge is captured", capture && capture.state !== "succeeded" ? said(capture) : "Cards come out of the network alone: no digit is looked at any more.", capture?.state === "succeeded", learnt && capture?.state !== "succeeded"),
      step("See what it knows", capture?.state === "succeeded"
        ? h("a", { href: `/flashcards/${capture.result.flashcards}` }, "Look at the cards")
        : "A sheet of cards, and mazes that turn into digits pass by pass.", analyze?.state === "succeeded", capture?.state === "succeeded")),
    mine.length || !mayWrite() ? null : h("p", { class: "line run-sample" }, button("Run the sample", begin, { class: "main", id: "run-sample" }),
      h("span", { class: "small soft" }, "or drop your own on "), h("a", { href: "/models" }, "Models"), h("span", { class: "small soft" }, "and"), h("a", { href: "/datasets" }, "Datasets")));
}

const said = (job) => (job.error ? `${job.error.title}. ${job.error.detail}` : `${job.state}: ${jobWords(job)}`);

function step(title, words, isDone, isNow) {
  return h("li", { "data-done": String(Boolean(isDone)), "data-now": String(Boolean(isNow) && !isDone) },
    h("div", {}, h("strong", {}, title), h("span", { class: "small soft" }, words)));
}

async function begin(pressed) {
  pressed.textContent = "Sending the digits…";
  const digits = await (await fetch("/page/digits.npz")).blob();
  const name = "handwritten digits (sample)";
  const answer = await fetch(`/v1/datasets${query({ name, input: "16x16x1" })}`, { method: "POST", body: digits });
  const dataset = await answer.json();
  if (!answer.ok) throw dataset;
  await post("/v1/jobs", { kind: "train", dataset: dataset.id, name: "digits (sample)", labels: LABEL, ...NETWORK });
  wake();
}

/** The page goes on where the sample stands, also after it was closed in between, and once if it is open twice. */
async function goOn({ id, result: { model } }) {
  const next = [
    { kind: "capture", model, count: 256, name: "digits (sample)" },
    { kind: "analyze", model, max_r: 20, count: 64 },
    { kind: "capture", model, count: 256, source: "maze", r: 10, name: "digits from mazes (sample)" },
  ];
  for (const [place, spec] of next.entries()) await post("/v1/jobs", { ...spec, labels: LABEL }, `${id}-${place}`);
}
