import { byId, empty, h } from "../dom.js";
import { start, wake } from "../frame.js";
import { jobRows } from "../jobrow.js";
import { growing } from "../list.js";

const filters = byId("filters");
const chosen = () => Object.fromEntries(new FormData(filters));

/** Of a comparison with thirty tasks, or a capture in shards, one line: the job that was asked for. */
function asked() {
  const { parts, ...fields } = chosen();
  return { ...fields, parent: parts || fields.kind === "shard" ? null : "none" };
}

function fromAddress() {
  for (const [name, value] of new URLSearchParams(location.search))
    if (name === "parts") filters.elements.parts.checked = Boolean(value);
    else if (filters.elements[name]) filters.elements[name].value = value;
}

function toAddress() {
  const said = Object.entries(chosen()).filter(([, value]) => value);
  history.replaceState(null, "", said.length ? `?${new URLSearchParams(said)}` : location.pathname);
  wake();
}

function draw(jobs) {
  if (jobs.length) return jobRows(jobs);
  const isFiltered = Object.values(chosen()).some(Boolean);
  return isFiltered
    ? empty("No job is like that", "Take away a filter to see the others.")
    : empty("No jobs yet", "Train on a ", h("a", { href: "/datasets" }, "dataset"), ", or capture cards from a ", h("a", { href: "/models" }, "model"), ".");
}

const show = growing("/v1/jobs", draw, asked);
fromAddress();

filters.addEventListener("submit", (event) => {
  event.preventDefault();
  toAddress();
});
filters.addEventListener("change", toAddress);

start(async () => {
  const jobs = await show();
  return jobs.some(({ state }) => state === "running") ? 2000 : 4000;
});
