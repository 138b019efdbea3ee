// What came of a job: what this page knows drawn, and every other field in words.

import { chart } from "./chart.js";
import { h } from "./dom.js";
import { facts, figures } from "./links.js";
import { bytes, count, figure, lasting, plain } from "./words.js";

const isCurve = (value) => Array.isArray(value) && value.length > 1 && value.every((each) => typeof each === "number");
const UNITS = { seconds: lasting, parameters: count, cards_size: bytes, parent_parameters: count };
const FEW = 8; // fields: shown at once
const HEADLINES = ["validation_mae", "mae", "psnr", "ssim", "accuracy", "recommended_r", "flsd", "precision", "recall", "constant_mae", "forgetting"];

const CALLED = { validation_mae: "Validation MAE", mae: "MAE", psnr: "PSNR", ssim: "SSIM", flsd: "FLSD", recommended_r: "Recommended r", constant_mae: "MAE of the best constant image" };

export function resultPart({ result, kind }, named) {
  if (!result) return null;
  const fields = Object.entries(result).filter(([name, value]) => value != null && !isCurve(value) && name !== "recipe" && name !== "measures");
  const made = ["model", "flashcards", "learner"].filter((name) => typeof result[name] === "string");
  const large = HEADLINES.filter((name) => typeof result[name] === "number").map((name) => [CALLED[name] ?? `${name[0].toUpperCase()}${plain(name.slice(1))}`, figure(result[name])]);
  const rest = fields.filter(([name]) => !HEADLINES.includes(name)).map(([name, value]) => [name, UNITS[name] && typeof value === "number" ? UNITS[name](value) : value]);
  return h("div", { class: "stack" },
    large.length ? figures(large) : null,
    made.length ? h("p", { class: "line" }, made.map((name) => h("a", { class: "button", href: `/${name === "flashcards" ? name : `${name}s`}/${result[name]}` }, kind === "learn" || kind === "train" || kind === "distill" || kind === "capture" ? `Open the ${name}` : `Its ${name}`))) : null,
    passes(result),
    more("All that it says", rest.length <= FEW, facts(rest, named), Array.isArray(result.measures) ? null : measures(result)));
}

/** What not everybody wants to read. */
export const more = (title, isOpen, ...content) =>
  h("details", { class: "panel more", open: isOpen }, h("summary", {}, title), ...content);

const measures = ({ measures: found }) => (found ? facts(Object.entries(found)) : null);

/** The steps of cards over the passes, and how far their latents are from those of the data. */
export function passes({ gamma1, gamma2, mean_step: mean, flsd, flsd_by_pass: own, eps1, recommended_r: best, p2_at: p2 }) {
  const from = (values, first) => values.map((value, place) => [place + first, value]);
  const steps = [["largest step γ₂", gamma2], ["mean step", mean], ["smallest step γ₁", gamma1]].filter(([, values]) => isCurve(values));
  const distance = isCurve(flsd) ? flsd : own;
  const drawn = [
    steps.length ? chart("How far a pass moves a card", steps.map(([name, values]) => ({ name, points: from(values, 1) })), {
      log: true, xName: "pass", marks: [eps1 != null && { y: eps1, name: "ε₁" }, best != null && best > 0 && { x: best, name: `r = ${best}` }].filter(Boolean),
    }) : null,
    isCurve(distance) ? chart("FLSD: how far the cards' latents are from the data's", [{ name: "FLSD", points: from(distance, 0) }], {
      xName: "pass", marks: p2 != null ? [{ x: p2, name: "first minimum" }] : [],
    }) : null,
  ].filter(Boolean);
  return drawn.length ? h("div", { class: "two" }, drawn) : null;
}

