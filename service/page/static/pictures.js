// What a job drew, with what each picture shows.

import { h } from "./dom.js";

const SHOWS = [
  [/^sheet\.png$/, "Cards, as the job left them"],
  [/^source\.png$/, "The same cards before the first pass"],
  [/^cards\.png$/, "Cards that were replayed"],
  [/^reconstructions\.png$/, "Images above, what the network makes of them below"],
  [/^reconstructions-(\d+)\.png$/, "Task $1: images above, what the network makes of them below"],
  [/^neighbours\.png$/, "Cards, and the nearest images below them"],
  [/^strip\.png$/, "Cards pass by pass"],
  [/^curves\.png$/, "Steps and FLSD over the passes"],
  [/^latents\.png$/, "Latents of cards and images"],
  [/^matrix\.png$/, "The error on each task after each task"],
  [/^forgetting\.png$/, "What was forgotten as the tasks went on"],
  [/^comparison\.png$/, "Strategies beside each other"],
  [/^confusion\.png$/, "What images of each class were taken for"],
  [/^calibration\.png$/, "How often it is right when it is that sure"],
  [/^matrices\.png$/, "The matrix of each strategy"],
];
/** Made of small images, every pixel of which is to be seen; the others are drawings. */
const TILES = /^(sheet|source|cards|reconstructions|neighbours)/;
const STRIP = /^reconstructions/;
/** Drawn here already, from the numbers. */
const DOUBLE = new Set(["matrix.png", "forgetting.png"]);

export function pictureWords(name) {
  const [pattern, words] = SHOWS.find(([each]) => each.test(name)) ?? [/.*/s, name];
  return name.replace(pattern, words);
}

export function picture(job, name, words = pictureWords(name)) {
  const source = `/v1/jobs/${job}/artifacts/${encodeURIComponent(name)}`;
  return h("figure", { class: !TILES.test(name) ? "drawing" : STRIP.test(name) ? "strip" : null, "data-key": `${job}-${name}` },
    h("a", { href: source }, h("img", { class: TILES.test(name) ? "pixels" : null, src: source, alt: words, loading: "lazy" })), h("figcaption", {}, words));
}

/** All pictures of a job; null where there are none. */
export function pictures(job, wanted = () => true) {
  const found = job.artifacts.filter(({ media_type: type, name }) => type === "image/png" && !DOUBLE.has(name) && wanted(name));
  return found.length ? h("div", { class: "pictures" }, found.map(({ name }) => picture(job.id, name))) : null;
}
