// Asking the API. Says aloud (as events of the document) when it is there, away, or wants a key.

/** What the API refused, in its own words (RFC 9457). */
export class Problem extends Error {
  constructor(status, body) {
    super(body.title ?? `The service answered ${status}`);
    Object.assign(this, { status, type: body.type, title: this.message, detail: body.detail ?? this.message });
  }
}

/** No answer at all. */
export class Away extends Error {
  constructor() {
    super("The service does not answer.");
    this.detail = "The service does not answer. Look whether it was done before you try again.";
  }
}

export const tell = (name, detail) => document.dispatchEvent(new CustomEvent(name, { detail }));

export async function ask(path, { method = "GET", body, headers = {} } = {}) {
  let answer;
  try {
    answer = await fetch(path, { method, headers: { Accept: "application/json", ...headers }, body, cache: "no-store" });
  } catch {
    tell("service-away");
    throw new Away();
  }
  tell("service-here");
  if (answer.ok) return answer.status === 204 ? null : await read(answer);
  const problem = new Problem(answer.status, await read(answer).catch(() => ({})));
  if (problem.status === 401) tell("service-locked", problem.detail);
  throw problem;
}

const read = (answer) => (answer.headers.get("content-type")?.includes("json") ? answer.json() : answer.text());

export const get = (path) => ask(path);
export const remove = (path) => ask(path, { method: "DELETE" });

/** Every press of a button has a key of its own, or the one that is given: a request that is sent twice is done once. */
export function post(path, value = {}, key = newKey()) {
  const headers = { "Content-Type": "application/json", "Idempotency-Key": key };
  return ask(path, { method: "POST", body: JSON.stringify(value), headers });
}

/** randomUUID exists on https and loopback only. */
export function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const query = (fields) => {
  const said = Object.entries(fields).filter(([, value]) => value != null && value !== "");
  return said.length ? `?${new URLSearchParams(said)}` : "";
};

/** Null where it is gone: what it made or read may have been deleted. */
export const maybe = (path) => get(path).catch((error) => (error.status === 404 ? null : Promise.reject(error)));

const known = new Map();

/** Names by id, each asked for once: of what a view shows, and not of all that there is. */
export async function names(ids) {
  const wanted = [...new Set(ids)].filter((id) => !known.has(id) && NAMED.test(id)).slice(0, MOST_NAMES);
  await Promise.all(wanted.map(async (id) => known.set(id, (await maybe(`/v1/${PLURAL[NAMED.exec(id)[1]]}/${id}`))?.name)));
  return known;
}

const NAMED = /^(model|dataset|flashcards|learner)_[0-9a-f]{32}$/;
const PLURAL = { model: "models", dataset: "datasets", flashcards: "flashcards", learner: "learners" };
const MOST_NAMES = 24;

/** All ids in a record, however deep. */
export function idsIn(value) {
  if (typeof value === "string") return NAMED.test(value) ? [value] : [];
  return value && typeof value === "object" ? Object.values(value).flatMap(idsIn) : [];
}
