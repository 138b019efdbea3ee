// A job's events as they happen (SSE). Whatever cuts the line, it goes on after the last event seen, none twice.

import { ENDED } from "./words.js";

const KINDS = ["state", "progress", "log", "resume_point", "note", "warning"];
const LONGEST_PAUSE_MS = 10_000;

/** Calls `onEvent` for each event, in order. Gives a function that ends it. */
export function follow(job, after, { onEvent, onLine = () => {} }) {
  let [last, source, timer, pause, isOver] = [after, null, null, 500, false];

  function open() {
    source = new EventSource(`/v1/jobs/${job}/events?after=${last}`);
    source.onopen = () => {
      pause = 500;
      onLine(true);
    };
    source.onerror = lost;
    for (const kind of KINDS) source.addEventListener(kind, heard);
  }

  function heard({ data }) {
    const event = JSON.parse(data);
    if (event.seq <= last) return;
    last = event.seq;
    onEvent(event);
    if (event.kind === "state" && ENDED.has(event.data.state)) close();
  }

  /** A browser comes back by itself after a cut, but not after a refusal: then it is on us. */
  function lost() {
    if (isOver) return;
    onLine(false);
    if (source.readyState !== EventSource.CLOSED) return;
    clearTimeout(timer);
    timer = setTimeout(open, pause);
    pause = Math.min(LONGEST_PAUSE_MS, pause * 2);
  }

  function close() {
    isOver = true;
    clearTimeout(timer);
    source.close();
  }

  open();
  addEventListener("pagehide", close, { once: true });
  return close;
}
