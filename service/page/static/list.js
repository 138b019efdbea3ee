// A list that grows by pages. The first page is kept fresh; what was asked for beyond it stays.

import { get, query } from "./api.js";
import { button, byId, fill } from "./dom.js";
import { wake } from "./frame.js";

const MOST = 200;

/** `fields()` are the filters, `draw(items)` what to show of them. */
export function growing(path, draw, fields = () => ({}), first = 25) {
  let limit = first;
  return async function show() {
    const { items, next_cursor: next } = await get(`${path}${query({ ...fields(), limit })}`);
    fill(byId("list"), await draw(items));
    const more = button("Show more", async () => {
      limit = Math.min(MOST, limit * 2);
      wake();
    });
    fill(byId("more"), !next ? null : limit < MOST ? more : `The newest ${MOST}. Beyond them: ${path}?cursor=…`);
    return items;
  };
}
