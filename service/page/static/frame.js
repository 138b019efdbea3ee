// What every view stands in: is the service there, who is looking, and the loop that keeps a view fresh.

import { Away, Problem, get, post, remove } from "./api.js";
import { byId, empty, fill, h } from "./dom.js";
import { many } from "./words.js";

const SLOW_MS = 15_000;
let session = null;
let wakers = [];
let isAway = false;

/** How many workers gave a sign of life, when that was last asked. */
export const standing = { workers: null };

export const idHere = () => decodeURIComponent(location.pathname.split("/")[2] ?? "");
export const maySee = () => session?.signed_in;
export const isLocked = () => Boolean(session?.locked);
export const mayWrite = () => session?.scopes.includes("write");

/** Shows the view again and again while it can be seen. `show` may answer how many ms the next look can wait. */
export async function start(show, pause = 3000) {
  document.addEventListener("service-away", () => setAway(true));
  document.addEventListener("service-here", () => setAway(false));
  document.addEventListener("service-locked", ({ detail }) => setLocked(detail));
  document.addEventListener("visibilitychange", () => document.hidden || wake());
  byId("sign-in-form").addEventListener("submit", signIn);
  byId("sign-out").addEventListener("click", signOut);
  const nav = document.querySelector(".nav");
  nav.scrollLeft = nav.querySelector("[aria-current]").offsetLeft - nav.clientWidth / 2;
  for (;;) {
    const wait = document.hidden ? null : await look(show, pause);
    await new Promise((done) => {
      wakers.push(done);
      if (wait != null) setTimeout(done, wait);
    });
  }
}

/** For what may come after the first sight of a view. */
export const painted = () => new Promise((done) => setTimeout(done));

/** Look now, and not when the pause is over. */
export function wake() {
  for (const done of wakers.splice(0)) done();
}

async function look(show, pause) {
  try {
    session ??= await get("/session");
    showSession();
    if (!session.signed_in) return SLOW_MS;
    const [wait] = await Promise.all([show(), showReadiness()]);
    return wait ?? pause;
  } catch (error) {
    return missed(error, pause);
  }
}

function missed(error, pause) {
  if (error instanceof Away) return 1500;
  if (!(error instanceof Problem)) throw error;
  if (error.status === 404 || error.status === 422) {
    fill(byId("view"), h("div", { class: "title" }, h("h1", {}, "Not here")), empty("There is no such thing", error.detail));
    return SLOW_MS * 4;
  }
  if (error.status !== 401) showBanner(`${error.title}. ${error.detail}`);
  return Math.max(pause, 5000);
}

async function showReadiness() {
  const answer = await fetch("/readyz", { cache: "no-store" }).then((each) => each.json()).catch(() => null);
  if (!answer) return;
  const missing = Object.keys(answer.checks).filter((name) => !answer.checks[name]);
  const workers = Object.values(answer.workers).reduce((sum, each) => sum + each, 0);
  standing.workers = workers;
  showBadge(answer.ready ? "good" : "warn", answer.ready ? many(workers, "worker") : `no ${missing.join(", no ")}`);
  if (!answer.ready && !isAway) showBanner(`Not everything is there: no ${missing.join(", no ")}. Jobs wait until it is.`);
  else if (!isAway) showBanner("");
}

function setAway(away) {
  if (away) {
    showBadge("bad", "not reachable");
    showBanner("The service does not answer. What you see is what it said last; this page goes on by itself when it is back.");
  }
  isAway = away;
}

function showBadge(tone, words) {
  const badge = byId("ready");
  badge.dataset.tone = tone;
  if (badge.textContent !== words) badge.textContent = words;
}

function showBanner(words) {
  const banner = byId("banner");
  banner.hidden = !words;
  if (banner.firstElementChild.textContent !== words) banner.firstElementChild.textContent = words;
}

// Signing in

function setLocked(reason) {
  if (session && !session.signed_in) return;
  session = { locked: true, signed_in: false, scopes: [], reason };
  showSession();
}

function showSession() {
  const out = !session.signed_in;
  byId("view").hidden = out;
  byId("sign-in").hidden = !out;
  byId("sign-out").hidden = out || !session.locked;
  const tenant = byId("tenant");
  tenant.hidden = out || !session.locked;
  tenant.textContent = session.tenant ?? "";
  if (out) {
    showBadge("", "signed out");
    if (session.reason) showKeyProblem(`${session.reason[0].toUpperCase()}${session.reason.slice(1)}.`);
    document.title = "Sign in · Flashcards";
  }
}

function showKeyProblem(words) {
  const problem = byId("key-problem");
  problem.hidden = !words;
  problem.textContent = words;
}

async function signIn(event) {
  event.preventDefault();
  showKeyProblem("");
  try {
    await post("/session", { key: byId("key").value });
    location.reload(); // every view begins afresh: nothing of whoever was here before is left
  } catch (error) {
    showKeyProblem(error.status === 401 ? `That key opens nothing here: ${error.detail}.` : error.detail);
    byId("key").select();
  }
}

async function signOut() {
  await remove("/session").catch(() => null);
  location.reload();
}
