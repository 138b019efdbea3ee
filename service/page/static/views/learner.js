import { get, maybe, post, remove } from "../api.js";
import { chart } from "../chart.js";
import { button, byId, empty, fill, h, part } from "../dom.js";
import { idHere, mayWrite, painted, start, wake } from "../frame.js";
import { heatmap } from "../heatmap.js";
import { story } from "../imported.js";
import { jobRows } from "../jobrow.js";
import { facts, figures, linkTo } from "../links.js";
import { picture } from "../pictures.js";
import { taskForm } from "../task.js";
import { ago, bytes, figure, lasting, plain } from "../words.js";

const id = idHere();
let form = null;
let lineage = null;

async function show() {
  const [learner, { items: versions }, matrix, jobs] = await Promise.all([
    get(`/v1/learners/${id}`), get(`/v1/learners/${id}/versions?limit=200`), get(`/v1/learners/${id}/matrix`), get(`/v1/jobs?learner=${id}&limit=20`),
  ]);
  lineage ??= await get(`/v1/learners/${id}/lineage`);
  const mine = jobs.items.filter(({ state }) => ["queued", "running", "failed"].includes(state));
  const made = await Promise.all(matrix.versions.map((number) => versions.find((each) => each.number === number)).filter((each) => each?.job).map((each) => maybe(`/v1/jobs/${each.job}`)));
  document.title = `${learner.name} · Flashcards`;
  const isUnderWay = mine.some(({ state }) => state !== "failed");
  fill(byId("learner"), head(learner), headline(learner, matrix, made.filter(Boolean).at(-1)?.result),
    part("At work", mine.length ? jobRows(mine.slice(0, 5)) : null),
    h("div", { class: "two" }, part("What it still knows", matrix.tasks.length ? h("div", { class: "panel" }, heatmap(matrix), withoutId(matrix),
      h("p", { class: "hint" }, `${matrix.metric === "accuracy" ? "Share of right answers" : "Mean error"} on each task after each version; darker is worse. ≈ where no test images are left and cards tell it. `, h("a", { href: `/v1/learners/${id}/matrix?format=csv`, download: "matrix.csv" }, "As CSV"))) : null),
    part("Forgetting", curves(matrix))),
    h("div", { class: form ? "side" : "" },
      part("Timeline", versions.length ? timeline(versions, learner, matrix.versions) : empty("It knows nothing yet", "Its first task makes version 1.")),
      form ? part("Next task", h("div", { class: "panel" }, form)) : null),
    part("Before and after", beforeAfter(matrix, made.filter(Boolean))),
    part("Before it came here", lineage.imported ? story(lineage.imported) : null),
    part("About it", h("div", { class: "panel" }, facts([["architecture", learner.architecture_name], ["images", learner.input], ["scenario", learner.scenario], ["noise", learner.noise], ["began with", learner.model], ["compare", learner.compare], ["keeps images", learner.keeps_data], ["id", h("code", {}, id)]]))));
  if (!form && mayWrite() && !learner.compare) {
    await painted();
    form = await taskForm(learner);
    return 0;
  }
  return isUnderWay ? 2500 : 6000;
}

const head = (learner) => h("div", { "data-key": "head" },
  h("div", { class: "title" }, h("h1", {}, h("bdi", {}, learner.name)), h("span", { class: "badge" }, learner.scenario),
    h("div", { class: "verbs" }, mayWrite() && !learner.compare ? button("Delete", gone, { class: "danger" }) : null)),
  h("p", { class: "lead" }, learner.tasks.length ? h("bdi", {}, learner.tasks.join(" → ")) : "It has not learnt anything yet."));

async function gone() {
  if (!confirm("Delete this learner with all its versions?")) return;
  await remove(`/v1/learners/${id}`);
  location.href = "/learners";
}

const headline = ({ version, memory }, matrix, last) => figures([
  ["Version", version ?? "none"], [matrix.metric === "accuracy" ? "Average accuracy" : "Average error", matrix.average != null ? figure(matrix.average) : null],
  ["Without task id", matrix.average_without_task_id != null ? figure(matrix.average_without_task_id) : null],
  ["BWT", matrix.bwt != null ? signed(matrix.bwt) : null, matrix.bwt < -1e-3 ? "it forgot" : "it kept"],
  ["Worst change by the last task", last?.forgetting != null ? signed(last.forgetting) : null, last?.forgetting_on === "cards" ? "of error, as cards tell it" : "of error, on images"],
  ["FWT", matrix.fwt != null ? signed(matrix.fwt) : null],
  ["Keeps beside the network", memory ? bytes((memory.autoencoder ?? 0) + memory.capsules + memory.images + memory.state) : null],
]);

const signed = (value) => `${value > 0 ? "+" : ""}${Number(value.toPrecision(2))}`;

function timeline(versions, learner, chain) {
  const items = versions.map((version) => h("li", { "data-key": version.number, "data-now": String(version.number === learner.version) },
    h("span", { class: "number" }, version.number),
    h("div", {}, h("strong", {}, h("bdi", {}, version.task)), version.number === learner.version ? [" ", h("span", { class: "badge", "data-tone": "good" }, "next task starts here")] : chain.includes(version.number) ? null : [" ", h("span", { class: "badge" }, "rolled back from")],
      h("p", { class: "small soft" }, [version.strategy && plain(version.strategy.kind), version.parent != null && `from version ${version.parent}`, version.seconds != null && lasting(version.seconds), ago(version.created_at)].filter(Boolean).join(" · ")),
      h("p", { class: "small line" }, version.job ? linkTo(version.job, "its job") : null, h("a", { href: `/v1/learners/${id}/versions/${version.number}/bundle`, download: true }, "bundle"), h("a", { href: `/v1/learners/${id}/versions/${version.number}/weights`, download: true }, "weights"))),
    h("div", {}, version.number !== learner.version && mayWrite() && !learner.compare ? button("Roll back", () => rollBack(version.number), { "aria-label": `Roll back to version ${version.number}` }) : null)));
  return h("div", { class: "panel" }, h("ol", { class: "timeline" }, items));
}

async function rollBack(version) {
  if (!confirm(`The next task starts from version ${version}. The versions after it stay.`)) return;
  await post(`/v1/learners/${id}/rollback`, { version });
  wake();
}

/** Where nobody says which task an image is of. */
const withoutId = (matrix) => (matrix.matrix_without_task_id ? [h("h3", {}, "Without task id"), heatmap({ ...matrix, matrix: matrix.matrix_without_task_id, estimated: null })] : null);

function curves({ tasks, versions, matrix, metric }) {
  if (versions.length < 2) return null;
  const lines = tasks.map((name, j) => ({ name, points: versions.map((number, i) => [number, matrix[i]?.[j]]).filter(([, value]) => value != null) }));
  return chart(`${metric === "accuracy" ? "Accuracy" : "Error"} on each task as the others came`, lines, { xName: "version" });
}

/** Of each task: as the version that learnt it saw it, and as the newest does. */
function beforeAfter({ tasks, versions }, jobs) {
  const rows = tasks.map((task, place) => {
    const name = `reconstructions-${place + 1}.png`;
    const seen = jobs.filter((job) => job.artifacts.some((file) => file.name === name));
    const ends = seen.length > 1 ? [seen[0], seen.at(-1)] : seen;
    if (!ends.length) return null;
    return h("div", { class: "stack", "data-key": name }, h("h3", {}, h("bdi", {}, task)),
      h("div", { class: "pictures pair" }, ends.map((job) => picture(job.id, name, `after version ${job.result?.version ?? versions.at(-1)}`))));
  });
  return rows.some(Boolean) ? h("div", { class: "stack" }, rows) : null;
}

start(show);
