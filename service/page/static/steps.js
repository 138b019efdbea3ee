// The first steps: a sample on real digits that anybody can run with a click, and where to go from there.

import { get } from "./api.js";
import { button, h } from "./dom.js";
import { mayWrite, wake } from "./frame.js";
import { begin, goOn, parts, teach } from "./sample.js";
import { jobWords } from "./words.js";

const FIRST = 20; // whoever has asked for more jobs than that has taken their first steps
const UNFINISHED = new Set(["waiting", "queued", "running"]);
const isDone = (job) => job?.state === "succeeded";

/** Null once somebody has gone their own way. */
export async function firstSteps() {
  const { items, next_cursor: more } = await get(`/v1/jobs?limit=${FIRST}`);
  const sample = parts(items);
  if (more || (!sample && items.length)) return null;
  if (!sample) return panel(stepsOf({ lessons: [] }), mayWrite() ? invitation() : null);
  const last = sample.lessons.at(-1) ?? sample.analyze;
  if (last && !UNFINISHED.has(last.state) && Date.now() - new Date(last.created_at) > 3_600_000) return null;
  if (isDone(sample.train) && !sample.cards && mayWrite()) await goOn(sample.train);
  return panel(stepsOf(sample), isDone(sample.analyze) && !sample.lessons.length && mayWrite() ? secondTask() : null);
}

const panel = (steps, verb) => h("section", { class: "part panel", "aria-labelledby": "steps-title" },
  h("h2", { id: "steps-title" }, "First steps"), h("ol", { class: "steps" }, steps), verb);

const invitation = () => h("p", { class: "line run-sample" }, button("Run the sample", pressed(begin), { class: "main", id: "run-sample" }),
  h("span", { class: "small soft" }, "or drop your own on "), h("a", { href: "/models" }, "Models"), h("span", { class: "small soft" }, "and"), h("a", { href: "/datasets" }, "Datasets"));

const secondTask = () => h("p", { class: "line run-sample" }, button("Teach it a second task", pressed(teach), { class: "main", id: "run-learner" }),
  h("span", { class: "small soft" }, "or bring your own: drop an autoencoder on "), h("a", { href: "/models" }, "Models"));

const pressed = (act) => async (node) => {
  await act(node);
  wake();
};

function stepsOf({ train, cards, mazes, analyze, lessons }) {
  const learner = lessons[0]?.result?.learner;
  const isTaught = lessons.length > 1 && lessons.every(isDone);
  return [
    step("Real digits come in", "1,797 handwritten digits that ship with this service become a dataset.", train, !train),
    step("A network learns them", told(train) ?? "An autoencoder of 14,000 weights, trained in half a minute or less.", isDone(train), train),
    step("Its knowledge is captured", isDone(cards) ? h("a", { href: `/flashcards/${cards.result.flashcards}` }, "Look at the cards")
      : told(cards) ?? "Cards come out of the network alone: no digit is looked at any more.", isDone(cards), isDone(train)),
    step("Mazes turn into digits", isDone(mazes) && isDone(analyze) ? h("a", { href: `/flashcards/${mazes.result.flashcards}` }, "Watch them pass by pass")
      : told(isDone(mazes) ? analyze : mazes) ?? "The paper's way: patterns that pass through the network until they look like what it has learnt.", isDone(analyze), isDone(cards)),
    step("It learns on, and keeps what it knew", isTaught ? h("a", { href: `/learners/${learner}` }, "See what it still knows")
      : told(lessons.find((job) => !isDone(job))) ?? "A learner takes the digits, then their negatives. Cards of the first task stand in for its images.", isTaught, lessons.length),
  ];
}

/** How far a job is, or why it is not; null where there is nothing to tell. */
function told(job) {
  if (!job || isDone(job)) return null;
  return job.error ? `${job.error.title}. ${job.error.detail}` : `${job.state}: ${jobWords(job)}`;
}

function step(title, words, isOver, isNow) {
  return h("li", { "data-done": String(Boolean(isOver)), "data-now": String(Boolean(isNow) && !isOver) },
    h("div", {}, h("strong", {}, title), h("span", { class: "small soft" }, words)));
}
