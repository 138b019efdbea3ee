// Cards pass by pass: a slider over the columns of an analysis' strip, cut out of the picture by its own numbers.

import { get, maybe } from "./api.js";
import { h } from "./dom.js";
import { linkTo } from "./links.js";
import { figure } from "./words.js";

// As the picture is drawn: room above the cards and beside them, and the gap around each, in pixels.
const [ABOVE, BESIDE, GAP] = [76, 12, 2];

/** Null where the files of the job are gone. */
export async function stripSlider(analysis, shape) {
  const job = await maybe(`/v1/jobs/${analysis}`);
  if (!job?.artifacts.some(({ name }) => name === "strip.png")) return null;
  const told = await get(`/v1/jobs/${job.id}/artifacts/strip.json`);
  const picture = await load(`/v1/jobs/${job.id}/artifacts/strip.png`);
  const [tall, wide] = shape.split("x").map(Number);
  const pitch = (picture.naturalHeight - ABOVE - BESIDE - GAP) / told.cards.length;
  const tile = { height: pitch - GAP, width: Math.round(((pitch - GAP) * wide) / tall) };
  return drawn(job, told, picture, tile);
}

const load = (source) => new Promise((done, fail) => {
  const image = new Image();
  image.onload = () => done(image);
  image.onerror = () => fail(new Error("The strip could not be read."));
  image.src = source;
});

function drawn(job, told, picture, tile) {
  const number = told.cards.length;
  const canvas = h("canvas", { width: number * (tile.width + GAP) + GAP, height: tile.height + 2 * GAP, role: "img" });
  const words = h("output", { for: "passes" });
  const slider = h("input", { type: "range", id: "passes", min: 0, max: told.r.length - 1, step: 1, value: Math.max(0, told.r.indexOf(told.recommended_r)), on: { input: paint } });
  function paint() {
    const place = Number(slider.value);
    const pen = canvas.getContext("2d");
    pen.imageSmoothingEnabled = false;
    for (let card = 0; card < number; card += 1) {
      const [x, y] = [BESIDE + GAP + place * (tile.width + GAP), ABOVE + GAP + card * (tile.height + GAP)];
      pen.drawImage(picture, x, y, tile.width, tile.height, GAP + card * (tile.width + GAP), GAP, tile.width, tile.height);
    }
    const steps = told.step[place];
    const moved = steps ? `, the last moved them by ${figure(steps.reduce((sum, each) => sum + each, 0) / steps.length)} on average` : "";
    words.textContent = `r = ${told.r[place]}${told.r[place] === told.recommended_r ? " (recommended)" : ""}`;
    slider.setAttribute("aria-valuetext", `${told.r[place]} passes`);
    canvas.setAttribute("aria-label", `${number} cards after ${told.r[place]} passes${moved}`);
  }
  paint();
  return h("figure", { class: "hero" }, canvas,
    h("div", { class: "slide" }, h("label", { for: "passes" }, h("span", {}, `Passes through the network, from ${job.result.source}`), words), slider),
    h("figcaption", {}, h("span", {}, job.result.reason), linkTo(job.id, "its analysis")));
}
