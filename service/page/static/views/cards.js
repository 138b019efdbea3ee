import { get, maybe, remove } from "../api.js";
import { asked, copyable, sameAs } from "../copy.js";
import { button, byId, fill, h, part } from "../dom.js";
import { fitting, form, networkField, epochsField, queue } from "../forms.js";
import { idHere, mayWrite, start } from "../frame.js";
import { facts, linkTo } from "../links.js";
import { passes } from "../results.js";
import { titleOf } from "../sheet.js";
import { stripSlider } from "../strip.js";
import { ago, bytes, figure, many } from "../words.js";

const CARD_BYTES = 64 * 1024 ** 2; // what the API gives of a set of cards in one answer
const id = idHere();
const kept = { strip: undefined, form: null, hero: null };

async function show() {
  const set = await get(`/v1/flashcards/${id}`);
  const [job, model, lineage] = await Promise.all([
    maybe(`/v1/jobs/${set.job}`), maybe(`/v1/models/${set.model}`), maybe(`/v1/models/${set.model}/lineage`),
  ]);
  const analysis = lineage?.used_by.find((each) => lineage.names[each] === "analyze job, succeeded");
  if (analysis && kept.strip?.job !== analysis) kept.strip = { job: analysis, node: await stripSlider(analysis, set.recipe.input) };
  kept.hero ??= hero(set, job);
  kept.form ??= distill(set);
  document.title = `${titleOf(set)} · Flashcards`;
  const result = job?.result ?? {};
  fill(byId("cards"), head(set, job),
    h("div", { class: "side" }, kept.hero, h("div", { class: "stack" },
      h("div", { class: "panel" }, h("h2", {}, "How good they are"), badges(result)),
      h("div", { class: "panel" }, h("h2", {}, "Recipe"), facts([
        ["model", linkTo(set.model, model?.name)], ["source", set.recipe.source], ["passes r", set.recipe.r], ["count", set.recipe.count], ["seed", set.recipe.seed],
        ["images", `${set.recipe.input} ${set.recipe.dtype}, ${bytes(set.size)}`], ["made by", linkTo(set.job)], ["cards", set.materialised ? "kept" : "made again when asked for"],
      ])))),
    part("Pass by pass", kept.strip?.node ?? (mayWrite() ? askForStrip(set) : null)),
    part("What the passes did", passes(result)),
    part("Make them again", again(set)),
    mayWrite() ? part("Teach a network with them alone", h("div", { class: "panel" }, kept.form)) : null);
  return 10_000;
}

function head(set, job) {
  const pixels = set.recipe.input.split("x").reduce((product, side) => product * side, 4);
  const atOnce = Math.min(set.recipe.count, 100_000, Math.floor(CARD_BYTES / pixels));
  const whole = job?.artifacts.some(({ name }) => name === "cards.npy");
  return h("div", { "data-key": "head" },
    h("div", { class: "title" }, h("h1", {}, h("bdi", {}, titleOf(set))),
      h("div", { class: "verbs" },
        set.materialised ? h("a", { class: "button", href: `/v1/flashcards/${id}/cards?limit=${atOnce}`, download: true }, atOnce < set.recipe.count ? `First ${atOnce} as npz` : "Download npz") : null,
        set.materialised ? h("a", { class: "button", href: `/v1/flashcards/${id}/cards.parquet`, download: true }, "Parquet") : null,
        whole ? h("a", { class: "button", href: `/v1/jobs/${set.job}/artifacts/cards.npy`, download: true }, "cards.npy") : null,
        mayWrite() ? button("Delete", gone, { class: "danger" }) : null)),
    h("p", { class: "lead" }, `${many(set.recipe.count, "card")}, made ${ago(set.created_at)} · `, h("code", {}, id)));
}

async function gone() {
  if (!confirm("Delete these cards? The recipe goes with them.")) return;
  await remove(`/v1/flashcards/${id}`);
  location.href = "/flashcards";
}

/** They are drawn to teach, not to look at. */
const ROUGH = {
  capsule: "Drawn around what the capsule knows of the data, wider than the data lies and with its blur undone: they look rougher than images, and a network learns more from them than from smooth ones.",
  latent: "Random latents, decoded, with their blur undone. They need not look like images to hold what the network answers to them; with a capsule they come closer.",
};

/** The sheet; and, where the job still has the picture of it, the same cards before their first pass. */
function hero(set, job) {
  const image = h("img", { src: `/v1/flashcards/${id}/sheet.png`, alt: "Contact sheet of the first cards" });
  const hasSource = set.recipe.r > 0 && job?.artifacts.some(({ name }) => name === "source.png");
  const words = h("output", {}, `r = ${set.recipe.r}`);
  const slider = h("input", { type: "range", id: "before", min: 0, max: 1, value: 1, "aria-label": "Before and after the passes", on: { input: turned } });
  function turned() {
    const isAfter = slider.value === "1";
    image.src = isAfter ? `/v1/flashcards/${id}/sheet.png` : `/v1/jobs/${set.job}/artifacts/source.png`;
    words.textContent = isAfter ? `r = ${set.recipe.r}` : `r = 0: ${set.recipe.source}`;
  }
  return h("figure", { class: "hero" }, image, ROUGH[set.recipe.source] ? h("figcaption", {}, ROUGH[set.recipe.source]) : null,
    hasSource ? h("div", { class: "slide" }, h("label", { for: "before" }, h("span", {}, `From ${set.recipe.source} to card`), words), slider) : null);
}

function badges({ p1, p2, measures }) {
  const verdict = (value) => (value == null ? ["", "not known"] : value ? ["good", "holds"] : ["warn", "does not hold"]);
  const rows = [
    ["P1", ...(p1 == null && measures?.flsd != null ? ["", "no pass was taken"] : verdict(p1)), "The last pass moved every card by less than the smallest error on a real image: the network takes them for its own."],
    ["P2", ...(p2 == null && measures?.flsd != null ? ["", "no pass was taken"] : verdict(p2)), "These passes brought the cards' latents as near to the data's as passes can."],
    ["FLSD", measures?.flsd != null ? "live" : "", measures?.flsd != null ? figure(measures.flsd) : "not known", "Fréchet distance between latents of cards and of data: the smaller, the more alike they are."],
    ...(measures?.diversity != null ? [["Spread", measures.diversity > 0.5 ? "good" : "warn", figure(measures.diversity), "How far two cards lie apart, over how far two images do: far below 1 they have collapsed onto a few."]] : []),
  ];
  return h("ul", { class: "badges" }, rows.map(([name, tone, value, words]) => h("li", {},
    h("strong", {}, name), h("div", {}, h("span", { class: "badge", "data-tone": tone === "live" ? "" : tone }, value), h("p", { class: "soft" }, words)))),
  p1 == null && measures?.flsd == null ? h("li", {}, h("span", {}), h("p", { class: "small soft" }, "Without a capsule nothing says how near they are: measure one where the data is.")) : null);
}

const askForStrip = (set) => h("div", { class: "panel line" }, h("p", { class: "soft" }, "No analysis has looked at this model pass by pass."),
  button("Look at every pass", () => queue({ kind: "analyze", model: set.model, max_r: 20, count: 64 })));

function again({ recipe, model }) {
  const { count, r, source, seed, dtype, backend } = recipe;
  return h("div", { class: "stack" }, sameAs(asked({ kind: "capture", model, count, r, source, seed, dtype, backend })),
    h("details", { class: "panel more" }, h("summary", {}, "The recipe"), copyable(JSON.stringify(recipe, null, 2), "the recipe")));
}

const distill = (set) => form([networkField(fitting(set.recipe.input, 16)), epochsField()], "Distill",
  (values) => queue({ kind: "distill", flashcards: set.id, ...values }));

start(show);
