// The sample: what the first steps ask the service for, told by the label of its jobs.

import { get, post, query } from "./api.js";

const LABEL = { sample: "digits" };
// Small batches: as many steps as twice the epochs would take with batches of 32, in half the time.
const LESSON = { epochs: 10, learning_rate: 4e-3, batch_size: 16 };
const ARCHITECTURE = "blk_2_fil_16";
const DIGITS = "handwritten digits (sample)";
const NEGATIVES = "their negatives (sample)";

/** Its jobs among these, the newest first, by what they are for; null where there are none. */
export function parts(jobs) {
  const mine = jobs.filter(({ labels }) => labels.sample === LABEL.sample);
  const [trained, captured, analyzed, lessons] = ["train", "capture", "analyze", "learn"].map((wanted) => mine.filter(({ kind }) => kind === wanted).reverse());
  return mine.length ? { train: trained[0], cards: captured[0], mazes: captured[1], analyze: analyzed[0], lessons } : null;
}

async function upload(name, invert) {
  const digits = await (await fetch("/page/digits.npz")).blob();
  const answer = await fetch(`/v1/datasets${query({ name, input: "16x16x1", invert })}`, { method: "POST", body: digits });
  const dataset = await answer.json();
  if (!answer.ok) throw dataset;
  return dataset.id;
}

export async function begin(pressed) {
  pressed.textContent = "Sending the digits…";
  const dataset = await upload(DIGITS);
  await post("/v1/jobs", { kind: "train", dataset, name: "digits (sample)", labels: LABEL, architecture: ARCHITECTURE, ...LESSON });
}

/** The page goes on where the sample stands, also after it was closed in between, and once if it is open twice. */
export async function goOn({ id, result: { model } }) {
  const next = [
    { kind: "capture", model, count: 256, name: "digits (sample)" },
    { kind: "capture", model, count: 256, source: "maze", r: 10, name: "digits from mazes (sample)" },
    { kind: "analyze", model, max_r: 20, count: 64 },
  ];
  for (const [place, spec] of next.entries()) await post("/v1/jobs", { ...spec, labels: LABEL }, `${id}-${place}`);
}

/** Two tasks that have little in common, one after the other: what is left of the first is what replay kept. */
export async function teach(pressed) {
  pressed.textContent = "Sending the negatives…";
  const { items } = await get("/v1/datasets?limit=100");
  const first = items.find(({ name }) => name === DIGITS)?.id ?? (await upload(DIGITS));
  const second = await upload(NEGATIVES, true);
  const learner = await post("/v1/learners", { name: "digits (sample)", architecture: ARCHITECTURE });
  for (const dataset of [first, second]) await post(`/v1/learners/${learner.id}/tasks`, { dataset, labels: LABEL, strategy: { kind: "flashcards" }, ...LESSON });
}
