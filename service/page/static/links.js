// Ids are the names of what they point to: `model_0198...` is at /models/.

import { h } from "./dom.js";
import { plain, short, told } from "./words.js";

const PLACES = { job: "jobs", model: "models", dataset: "datasets", flashcards: "flashcards", learner: "learners" };
const ID = /^(job|model|dataset|flashcards|learner)_[0-9a-f]{32}$/;

export const kindOf = (id) => (typeof id === "string" ? ID.exec(id)?.[1] : null);
export const address = (id) => (kindOf(id) ? `/${PLACES[kindOf(id)]}/${id}` : null);

export function linkTo(id, name) {
  return h("a", { href: address(id) }, h("bdi", {}, name ?? `${kindOf(id)} ${short(id)}`));
}

/** A field of a record, whatever it is: ids become links. */
export function shown(value, named = new Map()) {
  if (kindOf(value)) return linkTo(value, named.get(value));
  if (Array.isArray(value) && value.length && value.every(kindOf))
    return value.map((id, place) => [place ? ", " : "", linkTo(id, named.get(id))]);
  return h("bdi", {}, told(value));
}

/** [[name, value], ...] or a record, as a list; what is null is left out. */
export function facts(record, named) {
  const pairs = (Array.isArray(record) ? record : Object.entries(record)).filter(([, value]) => value != null);
  if (!pairs.length) return null;
  return h("dl", { class: "facts" }, pairs.flatMap(([name, value]) => [
    h("dt", {}, plain(name)),
    h("dd", {}, value instanceof Node ? value : shown(value, named)),
  ]));
}

export const figures = (pairs) =>
  h("dl", { class: "figures" }, pairs.filter(([, value]) => value != null).map(([name, value, unit]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, value, unit ? h("small", {}, ` ${unit}`) : null))));
